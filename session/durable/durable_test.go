package durable

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree describes a folder: name to "mode content".
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if !info.Mode().IsRegular() {
			got[e.Name()] = info.Mode().Type().String()
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got[e.Name()] = fmt.Sprintf("%o %s", info.Mode().Perm(), data)
	}
	return got
}

func check(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
		t.Errorf("folder (-want +got):\n%s", diff)
	}
}

func put(t *testing.T, path, text string, perm os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), perm); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, perm); err != nil {
		t.Fatal(err)
	}
}

func root(t *testing.T, dir string) *os.Root {
	t.Helper()
	r, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestWriteFileCreatesAndReplaces(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	must(t, WriteFile(t.Context(), path, []byte("one"), 0o600))
	check(t, dir, map[string]string{"a": "600 one"})
	must(t, os.Chmod(path, 0o666)) // survives any umask
	must(t, WriteFile(t.Context(), path, []byte("two"), 0o600))
	check(t, dir, map[string]string{"a": "666 two"})
}

func TestWriteFileKeepsTheOwner(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	put(t, path, "one", 0o640)
	must(t, os.Chown(path, 1234, 4321))
	must(t, WriteFile(t.Context(), path, []byte("two"), 0o600))
	info, err := os.Stat(path)
	must(t, err)
	st := info.Sys().(*syscall.Stat_t)
	if got := fmt.Sprint(st.Uid, st.Gid, info.Mode()); got != "1234 4321 -rw-r-----" {
		t.Errorf("owner and mode: %s", got)
	}
}

func TestWriteFileDoesNothingWhenCancelled(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "a"), "one", 0o600)
	cause := errors.New("the person said stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if err := WriteFile(ctx, filepath.Join(dir, "a"), []byte("two"), 0o600); !errors.Is(err, cause) {
		t.Errorf("error: %v", err)
	}
	check(t, dir, map[string]string{"a": "600 one"})
}

func TestOnlyPlainFilesAreReplacedOrRead(t *testing.T) {
	for name, c := range map[string]struct {
		make func(path string) error
		want error
	}{
		"link":          {func(p string) error { return os.Symlink("target", p) }, ErrLink},
		"dangling link": {func(p string) error { return os.Symlink("nowhere", p) }, ErrLink},
		"folder":        {func(p string) error { return os.Mkdir(p, 0o700) }, ErrNotRegular},
		"pipe":          {func(p string) error { return syscall.Mkfifo(p, 0o600) }, ErrNotRegular},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, filepath.Join(dir, "target"), "safe", 0o600)
			path := filepath.Join(dir, "a")
			must(t, c.make(path))
			before := tree(t, dir)

			err := WriteFile(t.Context(), path, []byte("bad"), 0o600)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("write: %v", err)
			}
			_, err = ReadFile(path, 100)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("read: %v", err)
			}
			if s, err := StageRemoval(root(t, dir), "a"); !errors.Is(err, c.want) || s != nil {
				t.Errorf("remove: %v", err)
			}
			check(t, dir, before)
		})
	}
}

func TestReadFileIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	put(t, path, "12345", 0o600)
	got, err := ReadFile(path, 5)
	if string(got) != "12345" || err != nil {
		t.Errorf("at the limit: %q, %v", got, err)
	}
	if _, err = ReadFile(path, 4); !errors.Is(err, ErrTooLarge) {
		t.Errorf("over the limit: %v", err)
	}
	if _, err = ReadFile(path+"x", 4); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// A change is invisible while it is staged, there once it is committed, and
// leaves nothing behind when it is taken back.
func TestStageCommitRestore(t *testing.T) {
	const temp = "(temporary)"
	for name, c := range map[string]struct {
		stage  func(r *os.Root) (*Staged, error)
		before map[string]string
		after  map[string]string
	}{
		"replace": {
			func(r *os.Root) (*Staged, error) { return StageIn(r, "a", []byte("new"), 0o600) },
			map[string]string{"a": "751 old"},
			map[string]string{"a": "751 new"},
		},
		"create": {
			func(r *os.Root) (*Staged, error) { return StageIn(r, "a", []byte("new"), 0o640) },
			map[string]string{},
			map[string]string{"a": "640 new"},
		},
		"create by path": {
			func(r *os.Root) (*Staged, error) { return Stage(filepath.Join(r.Name(), "a"), []byte("new"), 0o640) },
			map[string]string{},
			map[string]string{"a": "640 new"},
		},
		"remove": {
			func(r *os.Root) (*Staged, error) { return StageRemoval(r, "a") },
			map[string]string{"a": "751 old"},
			map[string]string{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if len(c.before) > 0 {
				put(t, filepath.Join(dir, "a"), "old", 0o751)
			}
			visible := func(want map[string]string) {
				t.Helper()
				got := tree(t, dir)
				for name := range got {
					if strings.HasPrefix(name, TempPrefix) {
						delete(got, name)
					}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", temp, diff)
				}
			}
			s, err := c.stage(root(t, dir))
			must(t, err)
			visible(c.before)
			must(t, s.Commit())
			visible(c.after)
			if err := s.Commit(); err == nil {
				t.Error("committed twice")
			}
			must(t, s.Restore())
			must(t, s.Restore())
			must(t, s.Discard())
			check(t, dir, c.before)

			s, err = c.stage(root(t, dir))
			must(t, err)
			must(t, s.Discard())
			must(t, s.Discard())
			check(t, dir, c.before)

			s, err = c.stage(root(t, dir))
			must(t, err)
			must(t, s.Commit())
			must(t, s.Discard())
			check(t, dir, c.after)
		})
	}
}

func TestRestoreBringsTheSameFileBack(t *testing.T) {
	for _, copied := range []bool{false, true} {
		t.Run(fmt.Sprintf("copied=%v", copied), func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "a")
			put(t, path, "old", 0o751)
			before, err := os.Stat(path)
			must(t, err)
			s, err := Stage(path, []byte("new"), 0o600)
			must(t, err)
			must(t, s.Commit())
			if copied { // as keep does where a hard link is impossible
				must(t, s.dir.Remove(s.kept))
				must(t, os.WriteFile(path, []byte("old"), 0o600))
				must(t, s.copyAside(tempName()))
				must(t, os.WriteFile(path, []byte("new"), 0o600))
			}
			must(t, s.Restore())
			must(t, s.Discard())
			check(t, dir, map[string]string{"a": "751 old"})
			after, err := os.Stat(path)
			must(t, err)
			if !copied && !os.SameFile(before, after) { // a copy is another file
				t.Error("another file has the name")
			}
		})
	}
}

// What happens to the name between Stage and Commit is not overwritten.
func TestCommitRefusesWhatItWasNotStagedFor(t *testing.T) {
	for name, c := range map[string]struct {
		old  bool
		then func(path string) error
		want error
	}{
		"file appeared": {false, func(p string) error { return os.WriteFile(p, []byte("theirs"), 0o600) }, fs.ErrExist},
		"link appeared": {false, func(p string) error { return os.Symlink("b", p) }, ErrLink},
		"file gone":     {true, os.Remove, fs.ErrNotExist},
		"became a folder": {true, func(p string) error {
			return errors.Join(os.Remove(p), os.Mkdir(p, 0o700))
		}, ErrNotRegular},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "a")
			put(t, filepath.Join(dir, "b"), "safe", 0o600)
			if c.old {
				put(t, path, "old", 0o600)
			}
			s, err := Stage(path, []byte("ours"), 0o600)
			must(t, err)
			must(t, c.then(path))
			for range 2 {
				if err := s.Commit(); !errors.Is(err, c.want) {
					t.Errorf("commit: %v, want %v", err, c.want)
				}
			}
			must(t, s.Discard())
			for name, text := range tree(t, dir) {
				if strings.HasPrefix(name, TempPrefix) || strings.Contains(text, "ours") {
					t.Errorf("left behind: %s %s", name, text)
				}
			}
		})
	}
}

func TestStagingStaysInsideTheRoot(t *testing.T) {
	out, dir := t.TempDir(), t.TempDir()
	must(t, os.Symlink(out, filepath.Join(dir, "exit")))
	for _, name := range []string{"exit/a", "../a", filepath.Join(out, "a")} {
		if s, err := StageIn(root(t, dir), name, []byte("x"), 0o600); err == nil {
			t.Errorf("%s: staged", name)
			must(t, s.Discard())
		}
	}
	must(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
	s, err := StageIn(root(t, dir), "sub/a", []byte("x"), 0o600)
	must(t, err)
	defer s.Discard()
	// The folder is swapped for a link that leads out.
	must(t, os.Rename(filepath.Join(dir, "sub"), filepath.Join(dir, "moved")))
	must(t, os.Symlink(out, filepath.Join(dir, "sub")))
	must(t, s.Commit())
	check(t, out, map[string]string{})
	check(t, filepath.Join(dir, "moved"), map[string]string{"a": "600 x"})
}

func TestStageNeedsTheFolder(t *testing.T) {
	if _, err := Stage(filepath.Join(t.TempDir(), "no", "a"), nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error: %v", err)
	}
}
