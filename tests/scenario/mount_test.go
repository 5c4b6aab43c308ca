package scenario

import (
	"testing"

	"golang.org/x/sys/unix"
)

// readOnly mounts a read-only file system on dir until the test ends. The tests
// run as root, for whom permission bits mean nothing.
func readOnly(t *testing.T, dir string) {
	t.Helper()
	mount(t, dir, "ro,size=64k")
}

// tiny mounts a file system of the given size on dir until the test ends.
func tiny(t *testing.T, dir, size string) {
	t.Helper()
	mount(t, dir, "size="+size)
}

func mount(t *testing.T, dir, options string) {
	t.Helper()
	flags := uintptr(0)
	if options[:2] == "ro" {
		flags, options = unix.MS_RDONLY, options[3:]
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", flags, options); err != nil {
		t.Fatalf("mount a tmpfs on %s (the tests need root): %v", dir, err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
}
