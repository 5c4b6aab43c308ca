package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/lakecode/lakecode/session/durable"
)

// owner is the content of a lock file. It only explains: what locks is the
// kernel's lock on the open file, which ends with its process.
type owner struct {
	PID   int       `json:"pid"`
	Host  string    `json:"host"`
	Since time.Time `json:"since"`
}

// lock takes the lock of the session in dir, or returns a *LockedError.
func lock(id ID, dir string) (*flock.Flock, error) {
	path := filepath.Join(dir, "lock")
	l := flock.New(path,
		flock.SetFlag(os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK),
		flock.SetPermissions(0o600))
	switch ok, err := l.TryLock(); {
	case err != nil:
		return nil, fmt.Errorf("lock session %s: %w", id, err)
	case !ok:
		o := readOwner(path)
		return nil, &LockedError{ID: id, PID: o.PID, Host: o.Host, Since: o.Since}
	}
	writeOwner(path)
	return l, nil
}

// unlock removes the owner's name and frees the lock. The file stays: removing
// it would let two processes lock two files of the same name.
func unlock(l *flock.Flock) error {
	_ = os.Truncate(l.Path(), 0) // only a name; the lock counts
	return l.Close()
}

// readOwner returns the zero owner when there is no name to read.
func readOwner(path string) owner {
	const limit = 4 << 10 // bytes; a name has some 100
	var o owner
	data, err := durable.ReadFile(path, limit)
	if err != nil {
		return o
	}
	line, _, _ := bytes.Cut(data, []byte("\n"))
	if json.Unmarshal(line, &o) != nil {
		return owner{}
	}
	return o
}

// writeOwner leaves a name for others. It reports no error, because the lock
// holds without it; on a full disk the owner stays unnamed.
func writeOwner(path string) {
	host, err := os.Hostname()
	if err != nil {
		host = "this machine"
	}
	data, err := json.Marshal(owner{PID: os.Getpid(), Host: host, Since: time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return
	}
	f, err := durable.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = f.Write(append(data, '\n'))
}
