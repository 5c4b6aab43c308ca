//go:build unix

package search

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/lakecode/lakecode/tools"
	"github.com/lakecode/lakecode/tools/workspace"
)

// maxWorkers bounds the goroutines of a search: beyond it the disk or the
// kernel's locks are what it waits for.
const maxWorkers = 8

// unsavedNote marks what was found in the editor's text.
const unsavedNote = "unsaved editor text"

// searcher is what the calls share. Safe for concurrent use.
type searcher struct {
	tree   *workspace.Workspace
	git    *git
	hidden map[string]bool
	limits Limits
	lists  lists // what find_files has listed last
}

func newSearcher(cfg Config) (*searcher, error) {
	if cfg.Workspace == nil {
		return nil, errors.New("search: a workspace is required")
	}
	s := &searcher{tree: cfg.Workspace, hidden: map[string]bool{}, limits: cfg.Limits.orDefault()}
	s.lists.rules, s.lists.settle = cfg.UserRules, settled
	for _, name := range hiddenFolders {
		s.hidden[name] = true
	}
	var err error
	s.git, err = newGit(cfg)
	return s, err
}

// place is what a call searches.
type place struct {
	abs, rel string // rel is "." for the root
	file     bool
}

// base is the folder's path with a final slash, empty for the root.
func (p place) base() string {
	dir := p.rel
	if p.file {
		dir = path.Dir(p.rel)
	}
	if dir == "." {
		return ""
	}
	return dir + "/"
}

// holds says whether a path relative to the root is searched.
func (p place) holds(rel string) bool {
	if p.file {
		return rel == p.rel
	}
	return strings.HasPrefix(rel, p.base())
}

func (s *searcher) place(name string) (place, error) {
	if name == "" {
		name = "."
	}
	p, err := s.tree.Resolve(name)
	if err != nil {
		return place{}, err
	}
	info, err := os.Lstat(p.Abs)
	switch {
	case err == nil && info.IsDir():
		return place{p.Abs, p.Rel, false}, nil
	case err == nil && !info.Mode().IsRegular():
		return place{}, tools.Errorf(tools.Other, "", "%s is neither a file nor a folder; it was not opened.", p.Rel)
	case err == nil, errors.Is(err, fs.ErrNotExist) && s.isOpen(p.Abs):
		return place{p.Abs, p.Rel, true}, nil
	case errors.Is(err, fs.ErrNotExist):
		return place{}, tools.Errorf(tools.NotFound, "list_directory shows what is there.", "%s does not exist.", p.Rel)
	}
	return place{}, tools.Errorf(tools.Other, "", "%s could not be looked at: %v.", p.Rel, errors.Unwrap(err))
}

func (s *searcher) isOpen(abs string) bool {
	for _, d := range s.tree.Docs() {
		if d.Path == abs {
			return true
		}
	}
	return false
}

// found is the outcome of a search that came to its end.
type found struct {
	job   *job
	files []fileHits
	tally tally
	notes []string
}

// run searches a place. The error is the context's cause, a *budgetError or a
// *tools.Error.
func (s *searcher) run(ctx context.Context, j *job, at place) (*found, error) {
	w := &walk{limits: s.limits, hidden: s.hidden, git: s.git, open: map[string]map[string]bool{}}
	first := newReader(j)
	if err := s.documents(ctx, w, first, at); err != nil {
		return nil, err
	}
	if err := s.disk(ctx, w, first, at); err != nil {
		return nil, err
	}
	return &found{job: j, files: j.hits.sorted(), tally: w.total, notes: w.notes}, nil
}

// documents searches what is open in the editor and keeps the walk from meeting
// it again. Every document inside the place counts, an ignored one too: it is
// in front of the person.
func (s *searcher) documents(ctx context.Context, w *walk, r *reader, at place) error {
	for _, doc := range s.tree.Docs() {
		p, ok := s.tree.Locate(doc.Path)
		if !ok || !at.holds(p.Rel) {
			continue
		}
		dir, name := path.Split(p.Rel)
		if w.open[dir][name] {
			continue // two URIs of one file
		}
		if w.open[dir] == nil {
			w.open[dir] = map[string]bool{}
		}
		w.open[dir][name] = true
		w.total.looked++
		if r.glob != nil && !r.glob.fits(dir, name) {
			continue
		}
		if err := s.document(ctx, w, r, p); err != nil {
			return err
		}
	}
	return nil
}

func (s *searcher) document(ctx context.Context, w *walk, r *reader, p workspace.Path) error {
	f, err := s.tree.Read(ctx, p, s.limits.FileBytes)
	var te *tools.Error
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &te) && te.Code == tools.TooLarge:
		w.total.large++
		return nil
	case err != nil:
		w.total.unreadable++
		return nil
	case slices.Contains(f.Data[:min(len(f.Data), sniff)], 0):
		w.total.binary++
		return nil
	}
	note := ""
	if f.FromBuffer {
		note = unsavedNote
	}
	if f.OutOfStep {
		w.note(fmt.Sprintf("The editor's text of %s is not known at the moment; the file on the disk was searched.", p.Rel))
	}
	dir, name := path.Split(p.Rel)
	return r.search(ctx, f.Data, dir, name, note, &w.total)
}

// disk searches the files.
func (s *searcher) disk(ctx context.Context, w *walk, first *reader, at place) error {
	dir, err := openRoot(s.tree.Root(), strings.TrimSuffix(at.base(), "/"))
	if err != nil {
		if at.file && isGone(err) {
			return nil // a document in a folder that is not there yet
		}
		return tools.Errorf(tools.Other, "", "%s could not be opened: %v.", at.rel, err)
	}
	job := task{dir: dir, kind: plain}
	if at.file {
		dir.open = w.open[dir.rel]
		job.kind, job.names = files, []string{path.Base(at.rel)}
	} else if err := s.start(ctx, w, &job, at); err != nil {
		dir.drop()
		return err
	}
	visitors := []visitor{first}
	if !at.file {
		for range min(runtime.GOMAXPROCS(0), maxWorkers) - 1 {
			visitors = append(visitors, newReader(first.job))
		}
	}
	return w.run(ctx, job, visitors)
}

// start decides how the walk of a folder begins. Inside a work tree git lists
// it, unless it is ignored or hidden itself: who names such a folder means it.
func (s *searcher) start(ctx context.Context, w *walk, job *task, at place) error {
	if s.git == nil {
		if _, _, ok := workTree(at.abs); ok {
			w.note(gitNote("", os.ErrNotExist))
		}
		return nil
	}
	top, below, ok := workTree(at.abs)
	if !ok || below == "" { // none, or the walk will meet its .git first thing
		return nil
	}
	for name := range strings.SplitSeq(below, "/") {
		if s.hidden[name] {
			return nil
		}
	}
	ignored, err := s.git.ignores(ctx, top, below)
	if err != nil || ignored {
		return err
	}
	if w.watch != nil {
		w.watch.tree(ctx, s.git, top, below)
	}
	paths, err := s.git.list(ctx, top, below, s.hidden)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		w.note(gitNote("", err))
		return nil
	}
	job.kind, job.top, job.names, job.skip = listed, top, paths, len(below)+1
	return nil
}
