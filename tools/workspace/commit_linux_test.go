package workspace

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lakecode/lakecode/tools"
)

// A rename over a mount point fails whoever tries it, and shows only then.
func TestCommitUndoesTheFilesBeforeAFailedRename(t *testing.T) {
	b := open(t, map[string]string{"1": "one", "2": "two", "3": "three", "4": "four"})
	must(t, syscall.Mount(b.abs("4"), b.abs("3"), "", syscall.MS_BIND, ""))
	mounted := true
	t.Cleanup(func() {
		if mounted {
			must(t, syscall.Unmount(b.abs("3"), syscall.MNT_DETACH))
		}
	})
	before, err := os.Stat(b.abs("1"))
	must(t, err)
	_, err = b.Commit(t.Context(), ChangeSet{Files: []FileChange{
		b.change("1", "I"), b.change("new/dir/file", "N"), b.change("2", "-"), b.change("3", "III"),
	}})
	refused(t, err, tools.Other, "Could not write 3", "Nothing was written.")
	must(t, syscall.Unmount(b.abs("3"), syscall.MNT_DETACH))
	mounted = false
	b.check(map[string]string{"1": "one", "2": "two", "3": "three", "4": "four"})
	if after, err := os.Stat(b.abs("1")); err != nil || !os.SameFile(before, after) {
		t.Errorf("1 is another file now: %v", err)
	}
}

func TestCommitOnAFullOrReadOnlyDiskChangesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		data  string
		flags uintptr
		code  tools.Code
		text  string
	}{
		"full":      {strings.Repeat("x", 200<<10), 0, tools.Other, "no space is left"},
		"read-only": {"x", syscall.MS_RDONLY, tools.NotAllowed, "read-only"},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, map[string]string{"a": "a", "mnt/gone": ""})
			must(t, syscall.Mount("tmpfs", b.abs("mnt"), "tmpfs", 0, "size=64k"))
			t.Cleanup(func() { must(t, syscall.Unmount(b.abs("mnt"), syscall.MNT_DETACH)) })
			put(t, b.abs("mnt/b"), "b")
			if c.flags != 0 {
				must(t, syscall.Mount("", b.abs("mnt"), "", syscall.MS_REMOUNT|c.flags, "size=64k"))
			}
			for _, target := range []string{"mnt/b", "mnt/new/file"} {
				_, err := b.Commit(t.Context(), ChangeSet{Files: []FileChange{b.change("a", "A"), b.change(target, c.data)}})
				refused(t, err, c.code, target, c.text, "Nothing was written.")
				b.check(map[string]string{"a": "a", "mnt": "/", "mnt/b": "b"})
			}
		})
	}
}

// As another user than root, for whom permissions mean something.
func TestCommitWithoutPermissionChangesNothing(t *testing.T) {
	b := open(t, map[string]string{"a": "a", "dir/b": "b", "mine": "m", "secret": "s"})
	must(t, os.MkdirAll(b.journal.dir, 0o700))
	for _, path := range []string{b.Root(), b.abs("a"), b.abs("dir/b"), b.journal.dir} {
		must(t, os.Chown(path, nobody, nobody))
	}
	must(t, os.Chmod(b.abs("secret"), 0o600))
	for dir := b.journal.dir; dir != os.TempDir(); dir = filepath.Dir(dir) {
		must(t, os.Chmod(dir, 0o755))
	}
	set := ChangeSet{Files: []FileChange{b.change("a", "A"), b.change("dir/b", "B")}}
	foreign := ChangeSet{Files: []FileChange{b.change("mine", "M")}}
	asNobody(t, func() {
		_, err := b.Commit(t.Context(), set)
		refused(t, err, tools.NotAllowed, "Could not write dir/b: permission denied", "Nothing was written.")
		_, err = b.Commit(t.Context(), foreign)
		refused(t, err, tools.NotAllowed, "mine is read-only", "Nothing was written.")
		_, err = b.Read(t.Context(), Path{Abs: b.abs("secret"), Rel: "secret"}, 10)
		refused(t, err, tools.NotAllowed, "permission denied")
		_, err = b.Commit(t.Context(), ChangeSet{Files: set.Files[:1]})
		must(t, err)
	})
	b.check(map[string]string{"a": "A", "dir": "/", "dir/b": "b", "mine": "m", "secret": "s"})
}

const nobody = 65534

// asNobody runs f with the file rights of another user, which on Linux belong
// to a thread.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	old, err := unix.SetfsuidRetUid(nobody)
	must(t, err)
	defer func() {
		_, err := unix.SetfsuidRetUid(old)
		must(t, err)
	}()
	f()
}
