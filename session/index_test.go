package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// listed checks List for a root: ids in order, and each summary against what
// opening says. Sessions must be closed.
func listed(t *testing.T, s *Store, root string, want ...ID) {
	t.Helper()
	list, err := s.List(t.Context(), root)
	must(t, err)
	var ids []ID
	for _, sum := range list {
		ids = append(ids, sum.ID)
		l, a, err := s.Open(t.Context(), sum.ID)
		must(t, err)
		must(t, l.Close())
		if diff := cmp.Diff(summary(a), sum); diff != "" {
			t.Errorf("summary (-want +got):\n%s", diff)
		}
	}
	if diff := cmp.Diff(want, ids); diff != "" {
		t.Errorf("list of %q (-want +got):\n%s", root, diff)
	}
}

// summary is what the whole archive says.
func summary(a *Archive) Summary {
	s := Summary{ID: a.ID, Root: a.Root, Title: a.Heading(), Created: a.Created, Updated: a.Created, Turns: len(a.Turns), Queued: len(a.Queue)}
	for _, m := range a.Queue {
		if m.Accepted.After(s.Updated) {
			s.Updated = m.Accepted
		}
	}
	for _, t := range a.Turns {
		if t.Started.After(s.Updated) {
			s.Updated = t.Started
		}
		if t.End != nil && t.End.Time.After(s.Updated) {
			s.Updated = t.End.Time
		}
	}
	return s
}

// used makes a closed session of n turns whose last one ended at the second n
// after all others.
func used(t *testing.T, s *Store, root string, n int) ID {
	t.Helper()
	l, a, err := s.Create(t.Context(), root, nil)
	must(t, err)
	for i := range n {
		id := fmt.Sprint("m", i)
		save(t, l, a, accept(id), TurnStarted{ID: id, Time: when(i)}, answer(id),
			TurnEnded{Turn: id, End: End{How: Completed, Time: when(i).AddDate(1, 0, 0)}})
	}
	save(t, l, a, accept("waiting"), Titled{Title: fmt.Sprint(n, " turns")})
	must(t, l.Close())
	return l.ID()
}

func TestListIsOfOneWorkspaceAndNewestFirst(t *testing.T) {
	s := newStore(t)
	one, two := t.TempDir(), t.TempDir()
	a, b, c, d := used(t, s, one, 3), used(t, s, two, 4), used(t, s, one, 5), used(t, s, one, 1)
	listed(t, s, one, c, a, d)
	listed(t, s, two, b)
	listed(t, s, "", c, b, a, d)
	listed(t, s, t.TempDir())

	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(one, link))
	listed(t, s, link, c, a, d)
	must(t, os.Remove(two)) // its sessions stay
	listed(t, s, two, b)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.List(ctx, one); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// Whatever the index holds, the list says what the logs say.
func TestListDoesNotDependOnTheIndex(t *testing.T) {
	for name, spoil := range map[string]func(path string, data []byte) error{
		"intact":  func(string, []byte) error { return nil },
		"missing": func(p string, _ []byte) error { return os.Remove(p) },
		"folder missing": func(p string, _ []byte) error {
			return os.RemoveAll(filepath.Dir(p))
		},
		"empty": func(p string, _ []byte) error { return os.WriteFile(p, nil, 0o600) },
		"garbage": func(p string, _ []byte) error {
			return os.WriteFile(p, bytes.Repeat([]byte("\x00garbage {}\n"), 1000), 0o600)
		},
		"torn": func(p string, d []byte) error { return os.WriteFile(p, d[:len(d)-20], 0o600) },
		"changed": func(p string, d []byte) error {
			return os.WriteFile(p, bytes.ReplaceAll(d, []byte("turns"), []byte("TURNS")), 0o600)
		},
		"outdated": func(p string, d []byte) error {
			return os.WriteFile(p, d[:bytes.IndexByte(d, '\n')+1], 0o600)
		},
		"only the newest lines": func(p string, d []byte) error {
			return os.WriteFile(p, d[bytes.LastIndexByte(d[:len(d)-1], '\n')+1:], 0o600)
		},
		"of another root": func(p string, d []byte) error {
			return errors.Join(os.WriteFile(filepath.Join(filepath.Dir(p), strings.Repeat("0", 32)), d, 0o600), os.Remove(p))
		},
		"a link": func(p string, d []byte) error {
			return errors.Join(os.Remove(p), os.Symlink("/etc/passwd", p))
		},
		"a folder": func(p string, d []byte) error {
			return errors.Join(os.Remove(p), os.Mkdir(p, 0o700))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			root := t.TempDir()
			a, b, c := used(t, s, root, 2), used(t, s, root, 3), used(t, s, root, 1)
			path := s.indexFile(root)
			data, err := os.ReadFile(path)
			must(t, err)
			must(t, spoil(path, data))
			for range 2 {
				listed(t, s, root, b, a, c)
			}
			if strings.HasPrefix(name, "a ") || name == "folder missing" {
				return
			}
			if entries, _ := readIndex(path); len(entries) != 3 {
				t.Errorf("the index was not mended: %d entries", len(entries))
			}
		})
	}
}

// A session that is open, here or elsewhere, is listed as it is now, and a list
// leaves its torn end alone.
func TestListOfASessionThatIsBeingWritten(t *testing.T) {
	s := newStore(t)
	l, a := newSession(t, s)
	check := func() {
		t.Helper()
		list, err := s.List(t.Context(), a.Root)
		must(t, err)
		if diff := cmp.Diff([]Summary{summary(a)}, list); diff != "" {
			t.Errorf("list (-want +got):\n%s", diff)
		}
	}
	check()
	for _, r := range full() {
		save(t, l, a, r)
		check()
	}
	must(t, l.Close())
	data, err := os.ReadFile(l.path)
	must(t, err)
	torn := append(bytes.Clone(data), "0123abcd 5000 itemAdded {"...)
	must(t, os.WriteFile(l.path, torn, 0o600))
	for range 2 {
		check()
	}
	after, err := os.ReadFile(l.path)
	must(t, err)
	if !bytes.Equal(torn, after) {
		t.Error("listing changed a log")
	}
}

func TestListShowsWhatIsDamaged(t *testing.T) {
	s := newStore(t)
	root := t.TempDir()
	fine, bad := used(t, s, root, 2), used(t, s, root, 1)
	path := logFile(s, bad)
	data, err := os.ReadFile(path)
	must(t, err)
	middle := bytes.Clone(data)
	middle[len(data)/2] ^= 1
	for name, content := range map[string][]byte{
		"middle": middle,
		"newer":  append([]byte("lakecode-session 2\n"), data[len(header()):]...),
		"empty":  {},
		"grown":  append(bytes.Clone(data), "no record\nnor this\n"...),
		"zeros":  make([]byte, 100),
	} {
		for _, indexed := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s indexed=%v", name, indexed), func(t *testing.T) {
				must(t, os.WriteFile(path, data, 0o600))
				_, err := s.List(t.Context(), root)
				must(t, err)
				must(t, os.WriteFile(path, content, 0o600))
				if !indexed {
					must(t, os.Remove(s.indexFile(root)))
				}
				for range 2 {
					list, err := s.List(t.Context(), root)
					must(t, err)
					got := map[ID]bool{}
					for _, sum := range list {
						got[sum.ID] = sum.Problem != ""
						if sum.ID == bad && !strings.Contains(sum.Problem, path) {
							t.Errorf("problem: %s", sum.Problem)
						}
					}
					if diff := cmp.Diff(map[ID]bool{fine: false, bad: true}, got); diff != "" {
						t.Errorf("problems (-want +got):\n%s", diff)
					}
				}
				after, err := os.ReadFile(path)
				must(t, err)
				if !bytes.Equal(after, content) {
					t.Error("listing changed a log")
				}
			})
		}
	}
}

func TestIndexDoesNotGrowForEver(t *testing.T) {
	s := newStore(t)
	root := t.TempDir()
	id := used(t, s, root, 400)
	listed(t, s, root, id)
	if _, lines := readIndex(s.indexFile(root)); lines > 80 {
		t.Errorf("%d lines for one session", lines)
	}
	listed(t, s, root, id)
}
