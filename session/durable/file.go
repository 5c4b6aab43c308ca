package durable

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// TempPrefix begins the name of every temporary file, which lies in the folder
// of the file it is meant for. One that is found later was left by a killed
// process.
const TempPrefix = ".lakecode-tmp-"

// Errors of a path that is not a plain file; they come wrapped in an
// *[fs.PathError].
var (
	ErrLink       = errors.New("is a symbolic link, which is not followed here")
	ErrNotRegular = errors.New("is not a regular file")
	ErrTooLarge   = errors.New("is larger than allowed")
)

// WriteFile replaces the file at path, or creates it with perm (before umask).
// The data is on the disk before it takes the name, and the name is on the disk
// when WriteFile returns nil. ctx is looked at right before the rename; after an
// error the former file is untouched.
//
// Errors: [ErrLink] and [ErrNotRegular] for what may not be replaced, the cause
// of ctx, and those of the file system.
func WriteFile(ctx context.Context, path string, data []byte, perm os.FileMode) error {
	s, err := Stage(path, data, perm)
	if err != nil {
		return err
	}
	if err := context.Cause(ctx); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), s.Discard())
	}
	return errors.Join(s.replace(), s.Discard())
}

// ReadFile returns the content of a regular file of at most limit bytes. Its
// last path element may not be a symbolic link, and a pipe or a device is
// refused instead of waited for.
//
// Errors: [ErrLink], [ErrNotRegular], [ErrTooLarge] and those of the file
// system, all with the path.
func ReadFile(path string, limit int64) ([]byte, error) {
	f, err := OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// One byte more shows a file that is larger, also one that grows meanwhile.
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("%w: %d bytes", ErrTooLarge, limit)}
	}
	return data, nil
}

// OpenFile is os.OpenFile for regular files only. It does not follow a symbolic
// link at the last path element and does not wait for the other end of a pipe.
// The caller closes the file. Errors: [ErrLink], [ErrNotRegular].
func OpenFile(path string, flag int, perm os.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, flag|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, perm)
	switch {
	case errors.Is(err, syscall.ELOOP):
		return nil, &fs.PathError{Op: "open", Path: path, Err: ErrLink}
	case errors.Is(err, syscall.ENXIO):
		return nil, &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	case err != nil:
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// SyncDir makes the names in a folder durable: files created, renamed or
// removed there are so after a power cut. A file system that cannot do that for
// folders is taken as it is.
func SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return syncClose(f)
}

func syncClose(dir *os.File) error {
	err := dir.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil
	}
	return errors.Join(err, dir.Close())
}

// split opens the folder that holds path.
func split(path string) (*os.Root, string, error) {
	dir, base := filepath.Split(filepath.Clean(path))
	if dir == "" {
		dir = "."
	}
	root, err := os.OpenRoot(dir)
	return root, base, err
}
