package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/gofrs/flock"
)

// Log is the open log of one session. It holds the session's lock until Close.
// Safe for concurrent use.
type Log struct {
	dir  string
	path string
	lock *flock.Flock

	mu     sync.Mutex // guards all below
	f      *os.File
	closed bool
	enc    encoder
	index  string // file that gets the entry
	entry  entry  // says what the log holds, with its size and checksum
	noted  int64  // size in the last entry written to the index
	synced int64  // what is durable for sure
	flaw   error  // why the log must be mended before the next record
	unsure bool   // a sync failed: what lies after synced must be written again
}

// ID returns the session's id.
func (l *Log) ID() ID { return ID(filepath.Base(l.dir)) }

// Dir returns the session's folder.
func (l *Log) Dir() string { return l.dir }

// Append writes the records behind the others, in one write; with sync they are
// on the disk, with all before them, when it returns nil. It costs what the
// records cost, however long the log is. A process killed afterwards loses
// nothing; one killed meanwhile leaves the first few of the records, whole, or
// none.
//
// After an error none of the records is in the log, and the same call may be
// repeated: ctx had ended, a record could not be encoded, the disk is full, the
// log was closed. When not even the rest of a failed write can be removed, all
// calls fail until that succeeds; each tries it again.
func (l *Log) Append(ctx context.Context, sync bool, rs ...Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.append(ctx, sync, rs); err != nil {
		return fmt.Errorf("save session %s: %w", l.ID(), err)
	}
	return nil
}

func (l *Log) append(ctx context.Context, sync bool, rs []Record) error {
	if l.closed {
		return os.ErrClosed
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := l.mend(); err != nil {
		return err
	}
	next, note := l.entry, false
	l.enc.reset()
	for _, r := range rs {
		sum, err := l.enc.add(next.Sum, r.kind(), r)
		if err != nil {
			return err
		}
		next.Sum = sum
		next.add(r)
		switch r.(type) {
		case TurnEnded, Titled:
			note = true
		}
	}
	next.Size += int64(l.enc.out.Len())
	if err := l.untouched(); err != nil {
		return err
	}
	if _, err := l.f.WriteAt(l.enc.out.Bytes(), l.entry.Size); err != nil {
		l.flaw = err
		return errors.Join(err, l.mend())
	}
	if sync {
		if err := l.f.Sync(); err != nil {
			l.flaw, l.unsure = err, true
			return errors.Join(err, l.mend())
		}
		l.synced = next.Size
	}
	l.entry = next
	if note {
		l.note()
	}
	return nil
}

// untouched says whether the file is as we left it. Writing into a file that
// somebody removed would lose the records without a word; writing behind
// somebody's bytes would spoil the log.
func (l *Log) untouched() error {
	info, err := l.f.Stat()
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Nlink == 0 {
		return fmt.Errorf("%s was removed while it was open", l.path)
	}
	if info.Size() != l.entry.Size {
		return &DamagedError{Path: l.path, Offset: min(info.Size(), l.entry.Size), Reason: "it was changed by something else while it was open"}
	}
	return nil
}

// mend removes what a failed write left. After a failed sync the system may
// hold pages for clean that never reached the disk, so they are written again.
func (l *Log) mend() error {
	if l.flaw == nil {
		return nil
	}
	err := l.f.Truncate(l.entry.Size)
	if err == nil && l.unsure {
		err = l.rewrite()
	}
	if err != nil {
		return fmt.Errorf("%s cannot be written since an earlier error (%w), and mending it failed: %w. Make room or reconnect the disk, then try again", l.path, l.flaw, err)
	}
	l.flaw, l.unsure = nil, false
	return nil
}

func (l *Log) rewrite() error {
	data := make([]byte, l.entry.Size-l.synced)
	if _, err := l.f.ReadAt(data, l.synced); err != nil {
		return err
	}
	if _, err := l.f.WriteAt(data, l.synced); err != nil {
		return err
	}
	if err := l.f.Sync(); err != nil {
		return err
	}
	l.synced = l.entry.Size
	return nil
}

// note writes the present entry to the index. The index can be rebuilt, so a
// failure costs only time at the next listing.
func (l *Log) note() {
	info, err := l.f.Stat()
	if err != nil || info.Size() != l.entry.Size {
		return
	}
	l.entry.Mtime = info.ModTime().UnixNano()
	if appendIndex(l.index, l.entry) == nil {
		l.noted = l.entry.Size
	}
}

// Close syncs the log, closes it and unlocks the session. Closing again does
// nothing.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	var errs []error
	if l.f != nil {
		errs = append(errs, l.mend())
		if l.synced < l.entry.Size {
			errs = append(errs, l.f.Sync())
		}
		if l.noted != l.entry.Size {
			l.note()
		}
		errs = append(errs, l.f.Close())
	}
	errs = append(errs, unlock(l.lock))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close session %s: %w", l.ID(), err)
	}
	return nil
}
