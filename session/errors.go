package session

import (
	"errors"
	"fmt"
	"time"
)

// ErrNotFound says that there is no session with that id. It comes wrapped.
var ErrNotFound = errors.New("no such session")

// LockedError says that another process, or another part of this one, has the
// session open. PID is 0 when the owner has not written its name yet.
type LockedError struct {
	ID    ID
	PID   int
	Host  string
	Since time.Time
}

// Error names the owner.
func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("session %s is open in another process. Close it there first.", e.ID)
	}
	return fmt.Sprintf("session %s is open in process %d on %s since %s. Close it there first.",
		e.ID, e.PID, e.Host, e.Since.Local().Format("2006-01-02 15:04:05"))
}

// DamagedError says that a stored file cannot be used; it was left as it is.
// Everything before Offset, in bytes, is sound. Err is the cause when the file could not
// be opened or read at all.
type DamagedError struct {
	Path   string
	Offset int64
	Reason string
	Err    error
}

// Error says where the damage is and what a person can do.
func (e *DamagedError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s cannot be used: %v. It was left as it is; make it a file of your own that can be read and written.", e.Path, e.Err)
	}
	if e.Offset == 0 {
		return fmt.Sprintf("%s is damaged: %s. It was left as it is; put a backup in its place, or move the folder away.", e.Path, e.Reason)
	}
	return fmt.Sprintf("%s is damaged at byte %d: %s. It was left as it is. What is before that byte is sound; "+
		"to go on with it, keep a copy of the file and cut the rest off: truncate -s %d '%s'",
		e.Path, e.Offset, e.Reason, e.Offset, e.Path)
}

// Unwrap returns the cause.
func (e *DamagedError) Unwrap() error { return e.Err }

// NewerError says that the file was written by a newer program.
type NewerError struct {
	Path    string
	Version int
}

// Error says which versions do not fit.
func (e *NewerError) Error() string {
	return fmt.Sprintf("%s has version %d of the format and this program knows only up to %d. Open it with a newer Lakecode.",
		e.Path, e.Version, Version)
}

// HomeError says that the folder for settings and sessions cannot be used.
type HomeError struct {
	Path   string
	Reason string
	Err    error // may be nil
}

// Error names the folder, the reason and the way out.
func (e *HomeError) Error() string {
	s := fmt.Sprintf("the folder %s for settings and sessions cannot be used: %s", e.Path, e.Reason)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s + ". Mend it, or set LAKECODE_HOME to a folder of your own that can be written."
}

// Unwrap returns the cause.
func (e *HomeError) Unwrap() error { return e.Err }
