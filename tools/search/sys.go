//go:build unix

package search

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// folder is an open directory. Files and folders in it are opened by its
// descriptor and their own name, never by a path and never through a link, so
// nothing that is moved or replaced meanwhile leads the search elsewhere.
type folder struct {
	file *os.File
	fd   int
	// rel is the path from the root with forward slashes and a final one; empty
	// for the root itself.
	rel   string
	depth int
	refs  atomic.Int32
	// open names the documents of the editor that stand for files in here.
	open map[string]bool
	// kinds are the entries, after look; nobody writes to it afterwards.
	kinds map[string]fs.FileMode
}

// look reads what is in the folder.
func (f *folder) look(ctx context.Context) error {
	if _, err := f.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	f.kinds = map[string]fs.FileMode{}
	for {
		entries, err := f.file.ReadDir(readAhead)
		for _, e := range entries {
			f.kinds[e.Name()] = e.Type()
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
	}
}

func (f *folder) hold() *folder {
	f.refs.Add(1)
	return f
}

func (f *folder) drop() {
	if f != nil && f.refs.Add(-1) == 0 {
		f.file.Close() //nolint:errcheck // a directory that was only read
	}
}

func newFolder(fd int, abs, rel string, depth int) *folder {
	f := &folder{file: os.NewFile(uintptr(fd), abs), fd: fd, rel: rel, depth: depth}
	f.refs.Store(1)
	return f
}

// abs is the absolute path that the folder had when it was opened.
func (f *folder) abs() string { return f.file.Name() }

// child opens a folder in f.
func (f *folder) child(name string) (*folder, error) {
	fd, err := openAt(f.fd, name, unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	return newFolder(fd, filepath.Join(f.abs(), name), f.rel+name+"/", f.depth+1), nil
}

// openRoot opens the root and descends to rel, which has forward slashes and
// is empty for the root.
func openRoot(root, rel string) (*folder, error) {
	fd, err := openAt(unix.AT_FDCWD, root, unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	f := newFolder(fd, root, "", 0)
	if rel == "" {
		return f, nil
	}
	for name := range strings.SplitSeq(rel, "/") {
		next, err := f.child(name)
		f.drop()
		if err != nil {
			return nil, err
		}
		f = next
	}
	f.depth = 0
	return f, nil
}

// openAt opens for reading and follows no link in the last place. Files need
// O_NONBLOCK: the opening of a pipe would wait for its other end.
func openAt(dir int, name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, flags|unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// isLink, isGone and isFolder sort the errors of openAt.
func isLink(err error) bool { return errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EMLINK) }
func isGone(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) }

// isExhausted: this process or the machine has nothing left to open it with,
// which says nothing about the file.
func isExhausted(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOMEM)
}

// isSpecial: a socket, or a device without a driver.
func isSpecial(err error) bool {
	return errors.Is(err, unix.ENXIO) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.EOPNOTSUPP)
}

// readFull fills buf from fd and returns how much there was.
func readFull(fd int, buf []byte) (int, error) {
	n := 0
	for n < len(buf) {
		m, err := unix.Read(fd, buf[n:])
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return n, err
		case m == 0:
			return n, nil
		default:
			n += m
		}
	}
	return n, nil
}
