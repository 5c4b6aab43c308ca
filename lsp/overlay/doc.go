// Package overlay knows what the editor has open: the text, version and real
// path of every document, kept in step with didOpen, didChange, didSave and
// didClose (LSP 3.18, Text Document Synchronization). Tools read through it, so
// they see what the person sees.
//
// A [Store] holds the documents, a [Doc] is an immutable picture of one, a
// [Change] is one content change in the negotiated [Encoding].
//
// Invariants, as absences: no change is applied to a text that is known to
// differ from the editor's (such a document is [Doc.Unsure] until its whole text
// is sent again); no position, however wrong, makes a call panic or leaves a
// text that is not a concatenation of what was there and what was sent; nothing
// here writes or reads a file's content. Paths are resolved on the first lookup
// and not in Open, because Open runs on the connection's read loop and a link
// may lead to a disk that does not answer.
//
// The package starts no goroutine.
//
//	s := overlay.NewStore()
//	s.Open(overlay.Doc{URI: "file:///w/a.go", Version: 1, Text: "package a\n"})
//	err := s.Change("file:///w/a.go", 2, []overlay.Change{{Range: &r, Text: "b"}})
//	doc, open := s.Lookup("/w/a.go")
package overlay
