package session

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func mountTmpfs(t *testing.T, dir, options string) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Fatalf("this test needs to mount a tmpfs: %v", err)
	}
	t.Cleanup(func() { must(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
}

// memStore is a store in memory, where thousands of syncs cost nothing.
func memStore(t *testing.T) *Store {
	t.Helper()
	dir := t.TempDir()
	mountTmpfs(t, dir, "size=64m")
	h, err := OpenHome(filepath.Join(dir, "home"))
	must(t, err)
	return NewStore(h)
}

// On a full disk a record is refused whole, the ones before stay, and with room
// the next one goes through.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	mountTmpfs(t, dir, "size=512k")
	ballast := filepath.Join(dir, "ballast")
	must(t, os.WriteFile(ballast, make([]byte, 200<<10), 0o600))
	h, err := OpenHome(filepath.Join(dir, "home"))
	must(t, err)
	s := NewStore(h)
	l, a := newSession(t, s)

	failures := 0
	for i := range 40 {
		r := Accepted{Message: message(fmt.Sprint(i), strings.Repeat("x", 30_000))}
		before, err := os.ReadFile(l.path)
		must(t, err)
		err = l.Append(t.Context(), i%2 == 0, r)
		if err == nil {
			must(t, a.Apply(r))
			continue
		}
		failures++
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("error: %v", err)
		}
		after, err := os.ReadFile(l.path)
		must(t, err)
		if string(after) != string(before) {
			t.Fatalf("a refused record left %d bytes", len(after)-len(before))
		}
	}
	if failures == 0 || len(a.Queue) < 2 {
		t.Fatalf("%d failures, %d records stored", failures, len(a.Queue))
	}
	if _, _, err := s.Create(t.Context(), t.TempDir(), []Instruction{{Text: strings.Repeat("x", 100_000)}}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("create: %v", err)
	}
	if list, err := s.List(t.Context(), ""); err != nil || len(list) != 1 || list[0].Queued != len(a.Queue) {
		t.Errorf("list: %+v, %v", list, err)
	}
	must(t, os.Remove(ballast))
	save(t, l, a, turn("after", 1000)...)
	_, b := reopen(t, s, l)
	same(t, a, b)
}

func TestReadOnlyHome(t *testing.T) {
	dir := t.TempDir()
	mountTmpfs(t, dir, "size=512k")
	path := filepath.Join(dir, "home")
	_, err := OpenHome(path)
	must(t, err)
	must(t, syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	for _, path := range []string{path, filepath.Join(dir, "new")} {
		var bad *HomeError
		if _, err := OpenHome(path); !errors.As(err, &bad) || !errors.Is(err, syscall.EROFS) ||
			!strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "LAKECODE_HOME") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
