// Package workspace is the one place where tools meet the files of a root: it
// resolves paths, reads, lists, and is the only writer.
//
// [Workspace.Resolve] turns a name that a model wrote into a [Path],
// [Workspace.Read] returns what a person sees of it (an unsaved buffer before
// the disk), [Workspace.Commit] applies a [ChangeSet] as a whole or not at all,
// and [Workspace.Recover] settles what a killed process left half done.
//
// Invariants, as absences: nothing outside the root is opened, whatever links
// do between the check and the use, because every access goes through one
// os.Root; no pipe, device or socket is opened; no text that the editor has not
// saved is overwritten; no file changes before the former bytes of every file of
// the set are in the journal; a link is never replaced, only what it leads to;
// nothing is written into git's own folder. Errors are *tools.Error, ready for
// the model, and say that nothing was written.
//
// The package starts no goroutine. A file that is open in the editor is written
// on the disk when its buffer is clean, and refused otherwise; Commit decides
// that for each file in one place, where a port to the editor's buffers fits.
//
//	p, err := w.Resolve("cmd/main.go")
//	f, err := w.Read(ctx, p, workspace.MaxWritable)
//	hash := f.Hash
//	changes, err := w.Commit(ctx, workspace.ChangeSet{Call: id, Title: "edit cmd/main.go",
//		Files: []workspace.FileChange{{Path: p, Before: &hash, Data: text}}})
package workspace
