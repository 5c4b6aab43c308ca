//go:build unix

package search

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// settled is how old the last change of a folder must be before its times
	// are believed: a change right after it may have left the same ones. Some
	// file systems count in whole seconds.
	settled = 2 * time.Second
	// maxBarren bounds the folders without a listed file that git is asked about
	// after a listing. With more of them the listing is not kept.
	maxBarren = 5000
)

// stamp is what the system says about a folder or a file; the zero stamp stands
// for nothing being there. The changed time cannot be set by a program.
type stamp struct {
	dev, ino, size   uint64
	changed, written int64 // in nanoseconds
}

func stampOf(st *unix.Stat_t) stamp {
	return stamp{uint64(st.Dev), st.Ino, uint64(st.Size), st.Ctim.Nano(), st.Mtim.Nano()} //nolint:unconvert // Dev is an int32 on macOS
}

// lstamp returns the stamp of a name, links not followed; false when it cannot
// be told.
func lstamp(name string) (stamp, bool) {
	var st unix.Stat_t
	err := unix.Lstat(name, &st)
	switch {
	case err == nil:
		return stampOf(&st), true
	case isGone(err):
		return stamp{}, true
	}
	return stamp{}, false
}

// marked is a name with the stamp that it had.
type marked struct {
	abs string
	stamp
}

// watch notes during a listing all that the listing depends on, so that later a
// look at the same folders and files tells whether it still holds: folders by
// their times, which change with every name that comes or goes; files of ignore
// rules and the indexes of work trees by theirs; git's configuration by its
// whole text. It is safe for the workers of a walk.
type watch struct {
	latest int64  // what changed after this is too fresh, in nanoseconds
	rules  string // the person's own ignore rules, by default

	mu      sync.Mutex // guards all below
	marks   []marked
	configs []config
	barren  []barren
	devices map[uint64]bool // whether the times of its folders are believed
	lost    bool            // something cannot be told: the listing must not be kept
}

// config is the text of the configuration that a work tree had.
type config struct {
	top  string
	text []byte
}

// barren is a folder of a work tree without a file in git's list: it may be
// ignored, or empty.
type barren struct{ top, abs, rel string }

// below is the path of the folder from the top of its work tree.
func (q barren) below() string {
	return filepath.ToSlash(strings.TrimPrefix(q.abs, strings.TrimSuffix(q.top, "/")+"/"))
}

func newWatch(rules string, settle time.Duration) *watch {
	return &watch{latest: time.Now().Add(-settle).UnixNano(), rules: rules, devices: map[uint64]bool{}}
}

// folder marks an open folder. It comes before the folder is read.
func (w *watch) folder(dir *folder) {
	var st unix.Stat_t
	err := unix.Fstat(dir.fd, &st)
	s := stampOf(&st)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.marks = append(w.marks, marked{dir.abs(), s})
	believed, known := w.devices[s.dev]
	if !known {
		believed = timesAreKept(dir.fd)
		w.devices[s.dev] = believed
	}
	w.lost = w.lost || err != nil || !believed || !w.isSettled(s)
}

// file marks a file, or that there is none.
func (w *watch) file(abs string) {
	s, ok := lstamp(abs)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.marks = append(w.marks, marked{abs, s})
	w.lost = w.lost || !ok || !w.isSettled(s)
}

func (w *watch) isSettled(s stamp) bool {
	return max(s.changed, s.written) < w.latest
}

// lose makes sure that the listing is not kept.
func (w *watch) lose() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost = true
}

// ask notes a folder that git's list has nothing of.
func (w *watch) ask(top, abs, rel string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.barren) == maxBarren {
		w.lost = true
		return
	}
	w.barren = append(w.barren, barren{top, abs, rel})
}

func (w *watch) asked() []barren {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := w.barren
	w.barren = nil
	return q
}

// tree marks what the list of the work tree at top depends on beside its
// folders. It comes before git lists them. below is the folder that is listed.
func (w *watch) tree(ctx context.Context, g *git, top, below string) {
	text, err := g.config(ctx, top)
	paths, err2 := g.sources(ctx, top)
	if err != nil || err2 != nil {
		w.lose()
		return
	}
	w.mu.Lock()
	w.configs = append(w.configs, config{top, text})
	w.mu.Unlock()
	if paths.rules == "" {
		paths.rules = w.rules
	}
	for _, p := range []string{paths.index, paths.exclude, paths.rules} {
		if p != "" {
			w.file(p)
		}
	}
	// The folders on the way to what is listed are not walked.
	for dir := below; dir != ""; {
		dir, _ = filepath.Split(dir)
		dir = strings.TrimSuffix(dir, "/")
		w.file(filepath.Join(top, dir, ".gitignore"))
	}
}

// holds says whether everything is as it was.
func (w *watch) holds(ctx context.Context, g *git) bool {
	if w.lost {
		return false
	}
	var changed atomic.Bool
	var wait sync.WaitGroup
	workers := min(runtime.GOMAXPROCS(0), maxWorkers)
	size := len(w.marks)/workers + 1
	for from := 0; from < len(w.marks); from += size {
		wait.Go(func() {
			for i, m := range w.marks[from:min(from+size, len(w.marks))] {
				if i%256 == 0 && (changed.Load() || ctx.Err() != nil) {
					return
				}
				if s, ok := lstamp(m.abs); !ok || s != m.stamp {
					changed.Store(true)
					return
				}
			}
		})
	}
	for _, c := range w.configs {
		if text, err := g.config(ctx, c.top); err != nil || !bytes.Equal(text, c.text) {
			changed.Store(true)
			break
		}
	}
	wait.Wait()
	return !changed.Load() && ctx.Err() == nil
}

// sources are the files that say what is ignored and what is tracked.
type sources struct{ index, exclude, rules string }

// config returns git's whole configuration for a work tree and where it is from.
func (g *git) config(ctx context.Context, top string) ([]byte, error) {
	return g.run(ctx, g.command(top, "config", "-z", "--list", "--show-origin"), top)
}

func (g *git) sources(ctx context.Context, top string) (sources, error) {
	out, err := g.run(ctx, g.command(top, "rev-parse", "--git-path", "index", "--git-path", "info/exclude"), top)
	if err != nil {
		return sources{}, err
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(lines) != 2 {
		return sources{}, errors.New("git names its files in a way that cannot be read")
	}
	// Without such a setting the exit code is that of an error. What the
	// setting is shows in config too.
	out, _ = g.run(ctx, g.command(top, "config", "-z", "--path", "--get", "core.excludesFile"), top)
	s := sources{lines[0], lines[1], strings.TrimSuffix(string(out), "\x00")}
	for _, p := range []*string{&s.index, &s.exclude, &s.rules} {
		if *p != "" && !filepath.IsAbs(*p) {
			*p = filepath.Join(top, *p)
		}
	}
	return s, nil
}
