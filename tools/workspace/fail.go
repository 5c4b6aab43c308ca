package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/lakecode/lakecode/session/durable"
	"github.com/lakecode/lakecode/tools"
)

// failed turns an error of the file system into one for the model. The path in
// err is left out: it may be a temporary name or lie outside the root.
func failed(what, rel string, err error) *tools.Error {
	var te *tools.Error
	if errors.As(err, &te) {
		return te
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return tools.Errorf(tools.NotFound, "", "%s does not exist.", rel)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return tools.Errorf(tools.Other, "Tell the person that the disk is full.", "Could not %s %s: no space is left on the disk.", what, rel)
	case errors.Is(err, syscall.EROFS):
		return tools.Errorf(tools.NotAllowed, "Tell the person; do not try another way around it.", "Could not %s %s: its file system is read-only.", what, rel)
	case errors.Is(err, fs.ErrPermission):
		return tools.Errorf(tools.NotAllowed, "Tell the person; do not try another way around it.", "Could not %s %s: permission denied.", what, rel)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return tools.Errorf(tools.Other, "", "Could not %s %s: it is no ordinary file, and nothing came out of it.", what, rel)
	case errors.Is(err, syscall.ENAMETOOLONG):
		return tools.Errorf(tools.BadArguments, "Use a shorter name.", "Could not %s %s: the name is too long.", what, rel)
	case errors.Is(err, syscall.ENOTDIR):
		return tools.Errorf(tools.NotFound, "", "%s does not exist: a part of the path is a file, not a folder.", rel)
	case errors.Is(err, fs.ErrExist):
		return tools.Errorf(tools.Stale, "Read it, then decide again.", "Could not %s %s: it has appeared meanwhile.", what, rel)
	case errors.Is(err, durable.ErrLink), errors.Is(err, durable.ErrNotRegular):
		return tools.Errorf(tools.Stale, "", "Could not %s %s: it is no longer a regular file.", what, rel)
	}
	return tools.Errorf(tools.Other, "", "Could not %s %s: %v.", what, rel, cause(err))
}

// cause drops the operation and path that the os package puts before an error.
func cause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}

// unwritten adds to an error of a writer that nothing has changed.
func unwritten(e *tools.Error) *tools.Error {
	c := *e
	c.Text += " Nothing was written."
	return &c
}

func tooLarge(p Path, size, limit int64) *tools.Error {
	return tools.Errorf(tools.TooLarge, "", "%s has %d bytes; the limit is %d.", p.Rel, size, limit)
}

func cancelled(ctx context.Context) *tools.Error {
	return tools.Errorf(tools.Cancelled, "", "Stopped: %v.", context.Cause(ctx))
}
