package workspace

import (
	"testing"
	"time"
)

// /proc/kmsg calls itself a regular file and blocks its reader once it has told
// everything; who is not allowed to read it is refused.
func TestFileWithoutEndIsGivenUp(t *testing.T) {
	w, err := Open(Config{Root: "/proc"})
	must(t, err)
	defer w.Close()
	p, err := w.Resolve("kmsg")
	must(t, err)
	read := make(chan error, 1)
	go func() {
		_, err := w.Read(t.Context(), p, 64<<20)
		read <- err
	}()
	select {
	case err := <-read:
		if err == nil {
			t.Error("all of /proc/kmsg was read")
		}
	case <-time.After(10 * readTime):
		t.Fatal("the read hangs")
	}
}
