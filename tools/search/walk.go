package search

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	// batch is how many files of a folder one worker takes at a time.
	batch = 64
	// readAhead is how many entries of a folder are read between two looks at
	// the budget and the context.
	readAhead = 1024
)

// errIsFolder is returned by a visitor for a name that git lists as a file and
// that is a folder: a submodule.
var errIsFolder = errors.New("is a folder")

// budgetError says that a search was given up because of a limit.
type budgetError struct{ what string }

func (e *budgetError) Error() string { return e.what }

// tally counts what one worker, or the whole walk, came across.
type tally struct {
	searched   int // read to the end
	looked     int // files whose names were judged by the glob
	binary     int
	unreadable int
	large      int
	links      int
	special    int // pipes, sockets, devices
	hidden     int // folders passed over by their names
}

func (t *tally) add(o tally) {
	t.searched += o.searched
	t.looked += o.looked
	t.binary += o.binary
	t.unreadable += o.unreadable
	t.large += o.large
	t.links += o.links
	t.special += o.special
	t.hidden += o.hidden
}

// visitor looks at the files of a walk. It belongs to one worker.
type visitor interface {
	visit(ctx context.Context, dir *folder, name string, t *tally) error
}

// walk meets every file below a folder that the ignore rules leave, in no
// certain order. One lives for one call; its workers are joined before run
// returns.
type walk struct {
	limits Limits
	hidden map[string]bool            // names of folders that an own walk passes over
	open   map[string]map[string]bool // documents of the editor by folder, then name
	git    *git                       // nil: never asked
	watch  *watch                     // nil: nothing is noted, and folders of a work tree are not read

	queue   *queue
	entries atomic.Int64
	mu      sync.Mutex // guards the fields below
	total   tally
	notes   []string // what the reader of the result must know
}

// run works off first and all that comes of it, with one worker for each
// visitor. It returns the context's cause or a *budgetError when it did not
// come to the end.
func (w *walk) run(ctx context.Context, first task, visitors []visitor) error {
	w.queue = newQueue()
	w.queue.push(first)
	var workers sync.WaitGroup
	for _, v := range visitors {
		workers.Go(func() {
			var t tally
			for {
				job, ok := w.queue.pop()
				if !ok {
					break
				}
				err := context.Cause(ctx)
				if err == nil {
					err = w.guard(ctx, job, v, &t)
				}
				job.dir.drop()
				w.queue.done(err)
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.total.add(t)
		})
	}
	workers.Wait()
	err := w.queue.close()
	var p *panicError
	if errors.As(err, &p) {
		panic(p) // in the goroutine of the call, where it becomes its result
	}
	return err
}

// panicError carries a panic from a worker to the goroutine of the call.
type panicError struct {
	value any
	stack []byte
}

func (p *panicError) Error() string { return fmt.Sprintf("%v\n%s", p.value, p.stack) }

func (w *walk) guard(ctx context.Context, job task, v visitor, t *tally) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{p, debug.Stack()}
		}
	}()
	return w.do(ctx, job, v, t)
}

func (w *walk) do(ctx context.Context, job task, v visitor, t *tally) error {
	if job.kind == files {
		return w.files(ctx, job.dir, job.names, v, t)
	}
	dir := job.dir
	if job.name != "" {
		var err error
		dir, err = job.dir.child(job.name)
		switch {
		case err != nil && isGone(err): // moved meanwhile, or a link in its place
			return nil
		case err != nil && isLink(err):
			t.links++
			return nil
		case err != nil && isExhausted(err):
			return &budgetError{err.Error()}
		case err != nil:
			t.unreadable++
			return nil
		}
	} else {
		dir.hold()
	}
	defer dir.drop()
	if dir.depth > w.limits.Depth {
		return &budgetError{fmt.Sprintf("folders are nested more than %d deep at %s", w.limits.Depth, dir.rel)}
	}
	dir.open = w.open[dir.rel]
	if w.watch != nil {
		w.watch.folder(dir)
	}
	if job.kind == listed {
		return w.list(ctx, dir, job, v, t)
	}
	return w.read(ctx, dir, v, t)
}

// met counts entries against the budget.
func (w *walk) met(n int) error {
	if w.entries.Add(int64(n)) > int64(w.limits.Entries) {
		return &budgetError{fmt.Sprintf("there are more than %d files and folders", w.limits.Entries)}
	}
	return nil
}

// note adds a remark once.
func (w *walk) note(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.notes, text) {
		w.notes = append(w.notes, text)
	}
}

// read walks a folder by its entries, or by git's list where a work tree begins.
func (w *walk) read(ctx context.Context, dir *folder, v visitor, t *tally) error {
	var names, subs []string
	var passed tally // counted where git does not list them again
	repository := false
	for {
		entries, err := dir.file.ReadDir(readAhead)
		if over := w.met(len(entries)); over != nil {
			return over
		}
		for _, e := range entries {
			name := e.Name()
			switch kind := e.Type(); {
			case name == ".git":
				repository = true
			case kind.IsRegular():
				names = append(names, name)
			case kind.IsDir():
				subs = append(subs, name)
			case kind&fs.ModeSymlink != 0:
				passed.links++
			default:
				passed.special++
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.unreadable++
			break
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if repository && w.git != nil {
		if w.watch != nil {
			w.watch.tree(ctx, w.git, dir.abs(), "")
		}
		list, err := w.git.list(ctx, dir.abs(), "", w.hidden)
		if err == nil {
			w.entries.Add(-int64(len(names) + len(subs))) // they come again
			return w.list(ctx, dir, task{top: dir.abs(), names: list}, v, t)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		w.note(gitNote(dir.rel, err))
	}
	t.add(passed)
	for _, name := range subs {
		if w.hidden[name] {
			t.hidden++
			continue
		}
		w.queue.push(task{dir: dir.hold(), kind: plain, name: name})
	}
	return w.spread(ctx, dir, names, v, t)
}

// list walks a folder of a work tree by the sorted paths of job from git, whose
// first skip bytes lead to it.
func (w *walk) list(ctx context.Context, dir *folder, job task, v visitor, t *tally) error {
	var names, both []string
	paths, skip := job.names, job.skip
	if w.watch != nil {
		if err := dir.look(ctx); err != nil {
			return err
		}
	}
	subs := map[string]bool{}
	for i := 0; i < len(paths); {
		name, _, deep := strings.Cut(paths[i][skip:], "/")
		first := i
		if i++; !deep {
			if !leadsAway(name) {
				names = append(names, name)
			}
			continue
		}
		after := skip + len(name) + 1
		for i < len(paths) && len(paths[i]) >= after && paths[i][skip:after-1] == name && paths[i][after-1] == '/' {
			i++
		}
		if leadsAway(name) {
			continue
		}
		if err := w.met(1); err != nil {
			return err
		}
		if at, twice := slices.BinarySearch(names, name); twice {
			// One of them is tracked and has given way to the other.
			names, both = slices.Delete(names, at, at+1), append(both, name)
		}
		sub := task{dir: dir.hold(), kind: listed, top: job.top, name: name, names: paths[first:i], skip: after}
		if len(paths[first]) == after { // "name/": a repository that git leaves alone
			sub.kind, sub.names = plain, nil
		}
		w.queue.push(sub)
		subs[name] = true
	}
	if err := w.met(len(names)); err != nil {
		return err
	}
	for _, name := range both {
		if err := w.file(ctx, dir, name, v, t); err != nil && !errors.Is(err, errIsFolder) {
			return err
		}
	}
	w.rest(dir, job.top, subs)
	return w.spread(ctx, dir, names, v, t)
}

// rest notes what else is in a folder of a work tree and matters when the list
// is asked for again: rules, and the folders that are in no listed path.
func (w *walk) rest(dir *folder, top string, subs map[string]bool) {
	for name, kind := range dir.kinds {
		switch {
		case name == ".gitignore":
			w.watch.file(filepath.Join(dir.abs(), name))
		case kind.IsDir() && !subs[name] && !w.hidden[name]:
			w.watch.ask(top, filepath.Join(dir.abs(), name), dir.rel+name)
		}
	}
}

// spread visits files and lets other workers take part where there are many.
func (w *walk) spread(ctx context.Context, dir *folder, names []string, v visitor, t *tally) error {
	for len(names) > batch {
		w.queue.push(task{dir: dir.hold(), kind: files, names: names[:batch]})
		names = names[batch:]
	}
	return w.files(ctx, dir, names, v, t)
}

func (w *walk) files(ctx context.Context, dir *folder, names []string, v visitor, t *tally) error {
	for _, name := range names {
		err := w.file(ctx, dir, name, v, t)
		switch {
		case errors.Is(err, errIsFolder):
			w.queue.push(task{dir: dir.hold(), kind: plain, name: name})
		case err != nil:
			return err
		}
	}
	return nil
}

func (w *walk) file(ctx context.Context, dir *folder, name string, v visitor, t *tally) error {
	if dir.open[name] {
		return nil // the editor's text stands for it
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return v.visit(ctx, dir, name, t)
}

// leadsAway: an index can be made to hold names that git would never list.
func leadsAway(name string) bool {
	return name == "" || name == "." || name == ".." || name == ".git"
}
