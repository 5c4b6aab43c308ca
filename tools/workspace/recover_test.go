package workspace

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lakecode/lakecode/session/durable"
)

// The child process commits one change to many files and is killed in it.
const (
	childRoot    = "WORKSPACE_TEST_ROOT"
	childJournal = "WORKSPACE_TEST_JOURNAL"
	many         = 60
)

func TestMain(m *testing.M) {
	if root := os.Getenv(childRoot); root != "" {
		if err := commitMany(root, os.Getenv(childJournal)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func manyName(i int) string { return fmt.Sprintf("d%d/f%d", i%3, i) }

// commitMany replaces a third of the files, deletes a third and makes a third.
func commitMany(root, dir string) error {
	w, err := Open(Config{Root: root, Journal: dir})
	if err != nil {
		return err
	}
	cs := ChangeSet{Call: "c", Title: "change many"}
	for i := range many {
		p, err := w.Resolve(manyName(i))
		if err != nil {
			return err
		}
		fc := FileChange{Path: p}
		if i%3 < 2 {
			sum := sha256.Sum256([]byte("before " + p.Rel))
			fc.Before = &sum
		}
		if i%3 != 1 {
			fc.Data = []byte("after " + p.Rel)
		}
		cs.Files = append(cs.Files, fc)
	}
	_, err = w.Commit(context.Background(), cs)
	return err
}

func manyTree(after bool) map[string]string {
	want := map[string]string{"d0": "/", "d1": "/"}
	if after {
		want["d2"] = "/"
	}
	for i := range many {
		name := manyName(i)
		switch {
		case after && i%3 != 1:
			want[name] = "after " + name
		case !after && i%3 < 2:
			want[name] = "before " + name
		}
	}
	return want
}

// killed starts the child and kills it -9 as soon as reached says so.
func (b *bench) killed(reached func() bool) {
	b.t.Helper()
	exe, err := os.Executable()
	must(b.t, err)
	cmd := exec.Command(exe)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	cmd.Env = append(os.Environ(), childRoot+"="+b.Root(), childJournal+"="+b.journal.dir)
	must(b.t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	deadline := time.After(30 * time.Second)
	for !reached() {
		select {
		case err := <-ended: // faster than this loop: a sound outcome, too
			if err != nil {
				b.t.Fatalf("child: %v\n%s", err, stderr.String())
			}
			return
		case <-deadline:
			_ = cmd.Process.Kill()
			b.t.Fatal("the point was not reached")
		default:
		}
	}
	_ = cmd.Process.Kill()
	<-ended
}

func TestAChangeThatWasKilledIsUndoneOrStands(t *testing.T) {
	exists := func(path string) func() bool {
		return func() bool { _, err := os.Lstat(path); return err == nil }
	}
	gone := func(path string) func() bool { return func() bool { return !exists(path)() } }
	for name, point := range map[string]func(b *bench) func() bool{
		"journal begins":    func(b *bench) func() bool { return exists(filepath.Join(b.journal.dir, objects)) },
		"intent is written": func(b *bench) func() bool { return func() bool { return len(b.pending()) > 0 } },
		"while staging":     func(b *bench) func() bool { return exists(b.abs("d2")) },
		"first file":        func(b *bench) func() bool { return gone(b.abs(manyName(1))) },
		"early":             func(b *bench) func() bool { return exists(b.abs(manyName(2 + 3*4))) },
		"half way":          func(b *bench) func() bool { return gone(b.abs(manyName(1 + 3*10))) },
		"last file":         func(b *bench) func() bool { return exists(b.abs(manyName(many - 1))) },
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{}
			for name, text := range manyTree(false) {
				if text != "/" {
					files[name] = text
				}
			}
			b := open(t, files)
			b.killed(point(b))
			left := b.tree()
			say, err := b.Recover(t.Context())
			must(t, err)
			if left, _ := filepath.Glob(filepath.Join(b.journal.dir, "*", durable.TempPrefix+"*")); len(left) > 0 {
				t.Errorf("left in the journal: %v", left)
			}
			after := b.tree()["d0/f0"] == "after d0/f0"
			b.check(manyTree(after))
			t.Logf("%d paths before recovery, stands %v: %.120q", len(left), after, say)
			for name := range left {
				if strings.HasPrefix(filepath.Base(name), durable.TempPrefix) && len(say) == 0 {
					t.Errorf("%s was left and nothing said", name)
				}
			}
			if again, err := b.Recover(t.Context()); err != nil || len(again) != 0 {
				t.Errorf("a second time: %q, %v", again, err)
			}
		})
	}
}

// interrupted leaves the journal as a process does that dies with the files as
// put makes them: the change has ended, its record is made pending again.
func interrupted(b *bench, put func(), files ...FileChange) {
	b.t.Helper()
	_, err := b.Commit(b.t.Context(), ChangeSet{Title: "rename all", Files: files})
	must(b.t, err)
	entries, err := os.ReadDir(filepath.Join(b.journal.dir, changes))
	must(b.t, err)
	last := entries[len(entries)-1].Name()
	must(b.t, os.Rename(filepath.Join(b.journal.dir, changes, last), filepath.Join(b.journal.dir, pending, last)))
	put()
}

func checkSaid(t *testing.T, say []string, err error, want ...string) {
	t.Helper()
	must(t, err)
	if len(say) != 1 {
		t.Fatalf("said: %q", say)
	}
	for _, s := range want {
		if !strings.Contains(say[0], s) {
			t.Errorf("%q lacks %q", say[0], s)
		}
	}
}

func TestRecoverSaysWhatItDid(t *testing.T) {
	for name, c := range map[string]struct {
		state map[string]string // put after the change was applied; "-" removes
		want  map[string]string
		say   []string
	}{
		"all written":  {nil, map[string]string{"a": "A", "n": "N"}, []string{`"rename all"`, "It stands", "a, d, n"}},
		"half written": {map[string]string{"a": "a", "n": "-"}, map[string]string{"a": "a", "d": "d"}, []string{"undone", "put back: d."}},
		"none written": {map[string]string{"a": "a", "d": "d", "n": "-"}, map[string]string{"a": "a", "d": "d"}, []string{"before anything was written"}},
		"somebody wrote since": {
			map[string]string{"a": "theirs"},
			map[string]string{"a": "theirs", "d": "d"},
			[]string{"undone", "put back: d, n", "left alone: a."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, map[string]string{"a": "a", "d": "d"})
			interrupted(b, func() {
				for name, text := range c.state {
					if text == "-" {
						must(t, os.Remove(b.abs(name)))
						continue
					}
					put(t, b.abs(name), text)
				}
			}, b.change("a", "A"), b.change("d", "-"), b.change("n", "N"))
			say, err := b.Recover(t.Context())
			checkSaid(t, say, err, c.say...)
			b.check(c.want)
		})
	}
}

func TestRecoverLeavesOtherRootsAndWhatItCannotRead(t *testing.T) {
	b := open(t, map[string]string{"a": "a"})
	if say, err := b.Recover(t.Context()); err != nil || say != nil {
		t.Errorf("without a journal: %q, %v", say, err)
	}
	interrupted(b, func() {}, b.change("a", "A"))
	other, err := Open(Config{Root: t.TempDir(), Journal: b.journal.dir})
	must(t, err)
	defer other.Close()
	if say, err := other.Recover(t.Context()); err != nil || len(say) != 0 || len(b.pending()) != 1 {
		t.Errorf("another root: %q, %v", say, err)
	}
	put(t, b.abs("a"), "a")
	for name, text := range map[string]string{"0.json": "{torn", "1.json": `{"version":99}`, "2.json": `{"version":1,"new":true}`} {
		put(t, filepath.Join(b.journal.dir, pending, name), text)
	}
	say, err := b.Recover(t.Context())
	must(t, err)
	if len(say) != 4 || !strings.Contains(say[1], "version 99") || len(b.pending()) != 3 {
		t.Errorf("said %q, pending %v", say, b.pending())
	}
}

func TestRecoverKeepsWhatItCannotSettle(t *testing.T) {
	b := open(t, map[string]string{"a": "a", "b": "b"})
	interrupted(b, func() { put(t, b.abs("b"), "b") }, b.change("a", "A"), b.change("b", "B"))
	put(t, filepath.Join(b.journal.dir, objects, digest([]byte("a"))), "damaged")
	say, err := b.Recover(t.Context())
	checkSaid(t, say, err, "could not be settled", "damaged")
	if len(b.pending()) != 1 {
		t.Errorf("pending: %v", b.pending())
	}
	put(t, filepath.Join(b.journal.dir, objects, digest([]byte("a"))), "a")
	say, err = b.Recover(t.Context())
	checkSaid(t, say, err, "undone")
	b.check(map[string]string{"a": "a", "b": "b"})
}
