package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.uber.org/zap"

	"github.com/lakecode/lakecode/lsp/overlay"
)

// MaxWritable is the size in bytes above which a file is not changed, because
// its former content is kept in memory and in the journal.
const MaxWritable = 8 << 20

// Config is what a Workspace is made of.
type Config struct {
	Root string         // an existing folder
	Docs *overlay.Store // the editor's documents; nil: there is no editor
	// Journal is the folder for pre-images and commit intents, outside of Root,
	// made with mode 0700 at the first write. Empty: nothing can be written.
	Journal string
	// Locks is shared by all workspaces of the process that may meet at a file.
	// Nil: this one shares with nobody.
	Locks *Locks
	Log   *zap.Logger // nil: no log
}

// Workspace is a root as one conversation uses it. Safe for concurrent use.
type Workspace struct {
	root  *os.Root
	real  string // the root without links
	given string // the root as it was named, cleaned and absolute
	docs  *overlay.Store
	log   *zap.Logger
	locks *Locks

	journal journal
	reads   reads
}

// Open makes the workspace of a root and holds the folder open until Close. It
// fails when the root is not a folder that can be read.
func Open(cfg Config) (*Workspace, error) {
	given, err := filepath.Abs(cfg.Root)
	if err != nil {
		return nil, fmt.Errorf("open workspace %s: %w", cfg.Root, err)
	}
	real, err := filepath.EvalSymlinks(given)
	if err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	w := &Workspace{root: root, real: real, given: given, docs: cfg.Docs, log: cfg.Log, locks: cfg.Locks}
	if w.log == nil {
		w.log = zap.NewNop()
	}
	if w.locks == nil {
		w.locks = new(Locks)
	}
	w.journal = journal{dir: cfg.Journal}
	w.reads.load(cfg.Journal, w.log)
	return w, nil
}

// Close lets go of the root. Calls that are running fail.
func (w *Workspace) Close() error { return w.root.Close() }

// Root returns the real absolute path of the root.
func (w *Workspace) Root() string { return w.real }

// Docs lists the editor's open documents that lie inside the root, in the order
// of their URIs. It takes whole texts: ask once per call.
func (w *Workspace) Docs() []overlay.Doc {
	if w.docs == nil {
		return nil
	}
	all := w.docs.Docs()
	in := all[:0]
	for _, d := range all {
		if _, ok := within(w.real, d.Path); ok {
			in = append(in, d)
		}
	}
	return in
}

// Locate returns the Path of a real absolute path, such as that of an open
// document, and whether it is inside the root. It touches no disk.
func (w *Workspace) Locate(abs string) (Path, bool) {
	rel, ok := within(w.real, abs)
	return Path{Abs: abs, Rel: filepath.ToSlash(rel)}, ok
}

// within returns name relative to dir; both are absolute and cleaned.
func within(dir, name string) (string, bool) {
	if name == dir {
		return ".", true
	}
	if dir != "/" {
		dir += "/"
	}
	rel, ok := strings.CutPrefix(name, dir)
	return rel, ok && rel != ""
}
