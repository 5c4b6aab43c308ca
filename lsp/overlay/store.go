package overlay

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Encoding is the unit in which the editor counts characters (LSP 3.18,
// PositionEncodingKind).
type Encoding string

// The encodings of the protocol. UTF16 holds where nothing was negotiated.
const (
	UTF8  Encoding = "utf-8"
	UTF16 Encoding = "utf-16"
	UTF32 Encoding = "utf-32"
)

// Doc is an open document as it was when it was asked for. It never changes.
type Doc struct {
	URI      string // as the editor spells it
	Path     string // real absolute path; empty unless URI names a file of this machine
	Language string
	Version  int32
	Text     string
	// Unsure: changes were missed, so the editor shows something else than Text.
	// Such a document is neither read from nor written over.
	Unsure bool
}

// Position is a place in a document: lines and characters from 0, characters in
// the store's encoding (LSP 3.18, Position).
type Position struct{ Line, Character uint32 }

// Range is [Start, End).
type Range struct{ Start, End Position }

// Change is one content change; without a Range, Text is the whole new text.
type Change struct {
	Range *Range
	Text  string
}

// ErrNotOpen is wrapped by Change and Save for a document that is not open.
var ErrNotOpen = errors.New("document is not open")

// StaleError says that a change was not applied because its version is not
// above the last one, or because the document is out of step already.
type StaleError struct {
	URI       string
	Have, Got int32
}

// Error names the document and both versions.
func (e *StaleError) Error() string {
	return fmt.Sprintf("%s: change to version %d after version %d: the document is out of step until it is opened again or sent whole", e.URI, e.Got, e.Have)
}

// ClampedError says that changes were applied, but that positions of them were
// not inside the document and were moved to the nearest place that is.
type ClampedError struct {
	URI     string
	Version int32
	Ranges  []Range // as the editor sent them
}

// Error names the first of the ranges.
func (e *ClampedError) Error() string {
	r := e.Ranges[0]
	return fmt.Sprintf("%s: change to version %d has %d range(s) outside the text, the first %d:%d-%d:%d; moved to the nearest place",
		e.URI, e.Version, len(e.Ranges), r.Start.Line, r.Start.Character, r.End.Line, r.End.Character)
}

// Store holds the open documents. Safe for concurrent use.
type Store struct {
	mu     sync.Mutex // guards all below; never held while a disk is asked
	enc    Encoding
	docs   map[string]*document // by identity of the URI
	recent uint64               // counts opens and changes
}

type document struct {
	meta     Doc // Text stays empty here
	text     *text
	resolved bool // meta.Path has had its links followed
	touched  uint64
}

func (d *document) doc() Doc {
	out := d.meta
	out.Text = d.text.String()
	return out
}

// NewStore makes an empty store that counts in UTF-16.
func NewStore() *Store { return &Store{enc: UTF16, docs: map[string]*document{}} }

// SetEncoding says what the connection has negotiated. It is called once,
// before the first document is opened.
func (s *Store) SetEncoding(e Encoding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enc = e
}

// Open adds a document, or replaces one that is open already. d.Path is not
// read. It touches no disk.
func (s *Store) Open(d Doc) {
	t := newText(d.Text)
	d.Text, d.Unsure = "", false
	d.Path, _ = FilePath(d.URI)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recent++
	s.docs[identity(d.URI)] = &document{meta: d, text: t, resolved: d.Path == "", touched: s.recent}
}

// Change applies content changes in their order, each to the result of the one
// before (LSP 3.18, didChange).
//
// It returns an error wrapping [ErrNotOpen]; a *[StaleError], when nothing was
// applied and the document is unsure from now on; or a *[ClampedError], when
// all was applied. An unsure document becomes sure by a whole text, whatever
// its version.
func (s *Store) Change(uri string, version int32, changes []Change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, ok := s.docs[identity(uri)]
	if !ok {
		return fmt.Errorf("change %s: %w", uri, ErrNotOpen)
	}
	whole := slices.IndexFunc(changes, func(c Change) bool { return c.Range == nil })
	if d.meta.Unsure && whole < 0 || !d.meta.Unsure && version <= d.meta.Version {
		have := d.meta.Version
		d.meta.Unsure = true
		d.meta.Version = max(have, version)
		return &StaleError{URI: uri, Have: have, Got: version}
	}
	if d.meta.Unsure {
		changes = changes[whole:] // what comes before has nothing to stand on
	}
	clamped := d.apply(changes, s.enc)
	s.recent++
	d.touched = s.recent
	d.meta.Version, d.meta.Unsure = version, false
	if clamped != nil {
		return &ClampedError{URI: uri, Version: version, Ranges: clamped}
	}
	return nil
}

func (d *document) apply(changes []Change, enc Encoding) (clamped []Range) {
	for _, c := range changes {
		if c.Range == nil {
			d.text = newText(c.Text)
			continue
		}
		from, ok1 := d.text.find(c.Range.Start, enc)
		to, ok2 := d.text.find(c.Range.End, enc)
		backwards := to.less(from)
		if backwards {
			from, to = to, from
		}
		if !ok1 || !ok2 || backwards {
			clamped = append(clamped, *c.Range)
		}
		d.text.replace(from, to, valid(c.Text))
	}
	return clamped
}

// Save notes that the editor has written the document. A text that came along
// is the truth about it. Saving a document that is not open does nothing.
func (s *Store) Save(uri string, text *string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, ok := s.docs[identity(uri)]
	if !ok || text == nil {
		return
	}
	if t := newText(*text); d.meta.Unsure || t.flat != d.text.String() {
		s.recent++
		d.text, d.touched, d.meta.Unsure = t, s.recent, false
	}
}

// Close forgets a document.
func (s *Store) Close(uri string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.docs, identity(uri))
}

// Lookup returns the open document of a real path. Where several URIs lead to
// one file it is the one that was touched last. It may follow links on the disk.
func (s *Store) Lookup(path string) (Doc, bool) {
	s.resolve()
	s.mu.Lock()
	defer s.mu.Unlock()
	var found *document
	for _, d := range s.docs {
		if d.meta.Path == path && path != "" && (found == nil || d.touched > found.touched) {
			found = d
		}
	}
	if found == nil {
		return Doc{}, false
	}
	return found.doc(), true
}

// Docs lists the open documents in the order of their URIs. It may follow links
// on the disk.
func (s *Store) Docs() []Doc {
	s.resolve()
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Doc, 0, len(s.docs))
	for _, d := range s.docs {
		out = append(out, d.doc())
	}
	slices.SortFunc(out, func(a, b Doc) int { return strings.Compare(a.URI, b.URI) })
	return out
}

// resolve follows the links of the paths that are new since the last call.
func (s *Store) resolve() {
	type job struct {
		d    *document
		path string
	}
	var jobs []job
	s.mu.Lock()
	for _, d := range s.docs {
		if !d.resolved {
			jobs = append(jobs, job{d, d.meta.Path})
		}
	}
	s.mu.Unlock()
	for _, j := range jobs {
		real := realPath(j.path)
		s.mu.Lock()
		if !j.d.resolved {
			j.d.meta.Path, j.d.resolved = real, true
		}
		s.mu.Unlock()
	}
}

// realPath follows links as far as the path exists: a new file in a linked
// folder has a real path too.
func realPath(name string) string {
	if real, err := filepath.EvalSymlinks(name); err == nil {
		return real
	}
	dir := filepath.Dir(name)
	if dir == name {
		return name
	}
	return filepath.Join(realPath(dir), filepath.Base(name))
}
