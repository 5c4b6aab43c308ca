package durable

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A full disk is met while staging, and costs neither the old file nor space.
func TestFullDiskLeavesTheFormerFile(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatalf("this test needs to mount a tmpfs: %v", err)
	}
	t.Cleanup(func() { must(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	path := filepath.Join(dir, "a")
	put(t, path, "old", 0o600)
	err := WriteFile(t.Context(), path, bytes.Repeat([]byte("x"), 100<<10), 0o600)
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), path) {
		t.Errorf("error: %v", err)
	}
	check(t, dir, map[string]string{"a": "600 old"})

	// Putting a former file back needs no space.
	s, err := Stage(path, []byte("new"), 0o600)
	must(t, err)
	must(t, s.Commit())
	if err := WriteFile(t.Context(), filepath.Join(dir, "b"), bytes.Repeat([]byte("x"), 100<<10), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("error: %v", err)
	}
	must(t, s.Restore())
	must(t, s.Discard())
	check(t, dir, map[string]string{"a": "600 old"})
}
