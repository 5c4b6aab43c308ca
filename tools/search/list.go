//go:build unix

package search

import (
	"context"
	"io/fs"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/lakecode/lakecode/tools"
)

// maxLists is how many listings are kept: that of the whole workspace and one of
// a folder in it.
const maxLists = 2

// listing is every file below a folder that the ignore rules leave. Immutable.
type listing struct {
	paths *pathList // relative to the root
	tally tally
	notes []string
	watch *watch
}

// lists keeps the newest listings. Safe for concurrent use.
type lists struct {
	rules  string        // see Config.UserRules
	settle time.Duration // see settled

	mu   sync.Mutex // guards kept
	kept []keptList // newest first
}

type keptList struct {
	rel string
	*listing
}

func (l *lists) get(rel string) *listing {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range l.kept {
		if k.rel == rel {
			return k.listing
		}
	}
	return nil
}

// put keeps a listing of rel, or drops the one that is kept when it is nil.
func (l *lists) put(rel string, n *listing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var kept []keptList
	if n != nil {
		kept = append(kept, keptList{rel, n})
	}
	for _, k := range l.kept {
		if k.rel != rel && len(kept) < maxLists {
			kept = append(kept, k)
		}
	}
	l.kept = kept
}

// list returns the files of a folder: the last listing if nothing that it
// depends on has changed, else a new one. The error is that of walk.run or a
// *tools.Error.
func (s *searcher) list(ctx context.Context, at place) (*listing, error) {
	if l := s.lists.get(at.rel); l != nil {
		if l.watch.holds(ctx, s.git) {
			return l, nil
		}
		s.lists.put(at.rel, nil)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	l, err := s.listAfresh(ctx, at)
	if err != nil {
		return nil, err
	}
	if !l.watch.lost && len(l.notes) == 0 {
		s.lists.put(at.rel, l)
	}
	return l, nil
}

func (s *searcher) listAfresh(ctx context.Context, at place) (*listing, error) {
	w := &walk{limits: s.limits, hidden: s.hidden, git: s.git, watch: newWatch(s.lists.rules, s.lists.settle)}
	var listers []*lister
	var visitors []visitor
	for range min(runtime.GOMAXPROCS(0), maxWorkers) {
		v := &lister{}
		listers, visitors = append(listers, v), append(visitors, v)
	}
	dir, err := openRoot(s.tree.Root(), strings.TrimSuffix(at.base(), "/"))
	if err != nil {
		return nil, tools.Errorf(tools.Other, "", "%s could not be opened: %v.", at.rel, err)
	}
	first := task{dir: dir, kind: plain}
	if err := s.start(ctx, w, &first, at); err != nil {
		dir.drop()
		return nil, err
	}
	if err := w.run(ctx, first, visitors); err != nil {
		return nil, err
	}
	if err := s.barren(ctx, w, visitors); err != nil {
		return nil, err
	}
	var all []string
	for _, v := range listers {
		all = append(all, v.paths...)
	}
	return &listing{newPathList(all), w.total, w.notes, w.watch}, nil
}

// barren walks the folders that git's list has nothing of and that are not
// ignored: a file may appear there.
func (s *searcher) barren(ctx context.Context, w *walk, visitors []visitor) error {
	for asked := w.watch.asked(); len(asked) > 0; asked = w.watch.asked() {
		byTop := map[string][]barren{}
		for _, q := range asked {
			byTop[q.top] = append(byTop[q.top], q)
		}
		for top, some := range byTop {
			var paths []string
			for _, q := range some {
				paths = append(paths, q.below())
			}
			ignored, err := s.git.ignored(ctx, top, paths)
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case err != nil:
				w.watch.lose()
				continue
			}
			for i, q := range some {
				if ignored[paths[i]] {
					continue
				}
				if err := s.barrenFolder(ctx, w, q, visitors); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (s *searcher) barrenFolder(ctx context.Context, w *walk, q barren, visitors []visitor) error {
	dir, err := openRoot(s.tree.Root(), q.rel)
	if err != nil {
		w.watch.lose() // moved meanwhile, or not to be read
		return nil
	}
	return w.run(ctx, task{dir: dir, kind: listed, top: q.top}, visitors)
}

// lister gathers the paths of a walk. It belongs to one worker.
type lister struct{ paths []string }

func (l *lister) visit(_ context.Context, dir *folder, name string, t *tally) error {
	if dir.kinds != nil {
		switch kind, there := dir.kinds[name]; {
		case !there: // tracked, and deleted from the disk
			return nil
		case kind.IsDir():
			return errIsFolder
		case kind&fs.ModeSymlink != 0:
			t.links++
			return nil
		case !kind.IsRegular():
			t.special++
			return nil
		}
	}
	t.looked++
	l.paths = append(l.paths, dir.rel+name)
	return nil
}
