package profiles

import (
	"os"
	"runtime"
	"syscall"
	"testing"
)

// A file that may not be read is named, with its mode and what to do.
func TestUnreadableFile(t *testing.T) {
	path := place(t, file(conn("local")))
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		// Root reads everything. The file system's user id of this one thread is
		// not root's while the file is opened; the thread ends with the goroutine.
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread()
			if err := syscall.Setfsuid(65534); err != nil {
				t.Error(err)
				return
			}
			refused(t, path)
		}()
		<-done
		return
	}
	refused(t, path)
}

func refused(t *testing.T, path string) {
	_, err := Load(path)
	if err == nil {
		t.Error("the file was read")
		return
	}
	checkText(t, err.Error(), path, "permission denied", "chmod 600")
}
