package workspace

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/lakecode/lakecode/lsp/overlay"
	"github.com/lakecode/lakecode/tools"
)

// readTime bounds the wait for a file that has nothing to read yet.
const readTime = 3 * time.Second

// maxEntries bounds what ReadDir reads of one folder.
const maxEntries = 50_000

// File is what was read at a path. Data belongs to the caller.
type File struct {
	Path Path
	Data []byte
	// FromBuffer: Data is the editor's text, and differs from the disk.
	FromBuffer bool
	Version    int32 // of the buffer
	// OutOfStep: the editor has the file open, but what it shows is not known.
	// Data is from the disk.
	OutOfStep bool
	// OnDisk: there is a file on the disk; Mode and Hash are its.
	OnDisk bool
	Mode   fs.FileMode
	Hash   [sha256.Size]byte
}

// Read returns the content of a file of at most limit bytes as a person sees
// it: the editor's text where that differs from the disk by more than byte
// order mark, line ends and the final line end, and the disk's bytes otherwise.
//
// Errors: NotFound, TooLarge, Cancelled, and Other for a folder and for what is
// not a regular file, which is never opened.
func (w *Workspace) Read(ctx context.Context, p Path, limit int64) (File, error) {
	f := File{Path: p}
	doc, open := w.lookup(p)
	data, info, err := w.readDisk(ctx, p, limit)
	var te *tools.Error
	switch {
	case err == nil:
		f.OnDisk, f.Mode, f.Hash = true, info.Mode(), sha256.Sum256(data)
	case !open || doc.Unsure || !errors.As(err, &te) || te.Code != tools.NotFound && te.Code != tools.TooLarge:
		return f, err
	}
	switch {
	case open && doc.Unsure:
		f.OutOfStep = true
	case open && (err != nil || !clean(doc.Text, data)):
		if int64(len(doc.Text)) > limit {
			return f, tooLarge(p, int64(len(doc.Text)), limit)
		}
		f.FromBuffer, f.Version, data = true, doc.Version, []byte(doc.Text)
	}
	f.Data = data
	return f, nil
}

func (w *Workspace) lookup(p Path) (overlay.Doc, bool) {
	if w.docs == nil {
		return overlay.Doc{}, false
	}
	return w.docs.Lookup(p.Abs)
}

// readDisk reads a regular file. ctx is looked at between pieces.
func (w *Workspace) readDisk(ctx context.Context, p Path, limit int64) ([]byte, fs.FileInfo, error) {
	f, err := w.OpenDisk(p)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, failed("read", p.Rel, err)
	}
	if info.Size() > limit {
		return nil, nil, tooLarge(p, info.Size(), limit)
	}
	var buf bytes.Buffer
	buf.Grow(int(info.Size()) + bytes.MinRead)
	for {
		if ctx.Err() != nil {
			return nil, nil, cancelled(ctx)
		}
		_, err := io.CopyN(&buf, f, 1<<20)
		if int64(buf.Len()) > limit { // it has grown
			return nil, nil, tooLarge(p, int64(buf.Len()), limit)
		}
		if errors.Is(err, io.EOF) {
			return buf.Bytes(), info, nil
		}
		if err != nil {
			return nil, nil, failed("read", p.Rel, err)
		}
	}
}

// OpenDisk opens the bytes on the disk of a regular file for reading, without
// the editor's text. The caller closes it. A pipe, device or socket is refused
// without being opened. Errors as for Read.
func (w *Workspace) OpenDisk(p Path) (*os.File, error) {
	info, err := w.root.Lstat(p.Rel)
	if err != nil {
		return nil, failed("read", p.Rel, err)
	}
	if err := regular(p, info); err != nil {
		return nil, err
	}
	// Without O_NONBLOCK a pipe that took the file's place would block here.
	f, err := w.root.OpenFile(p.Rel, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, failed("read", p.Rel, err)
	}
	if info, err = f.Stat(); err == nil {
		err = regular(p, info)
	}
	// What lies on a disk cannot be waited for and takes no deadline. What can, as
	// /proc/kmsg, calls itself a regular file, and may have nothing for ever.
	_ = f.SetReadDeadline(time.Now().Add(readTime))
	if err != nil {
		_ = f.Close() // nothing was written to it
		return nil, err
	}
	return f, nil
}

// ReadDir lists a folder in no particular order; links are not followed. more
// is true when it holds more than was read.
//
// Errors: NotFound, Cancelled, and Other for what is no folder.
func (w *Workspace) ReadDir(ctx context.Context, p Path) (entries []fs.DirEntry, more bool, err error) {
	info, err := w.root.Lstat(p.Rel)
	if err != nil {
		return nil, false, failed("list", p.Rel, err)
	}
	if !info.IsDir() {
		return nil, false, tools.Errorf(tools.Other, "Use read_file for a file.", "%s is not a folder.", p.Rel)
	}
	d, err := w.root.Open(p.Rel)
	if err != nil {
		return nil, false, failed("list", p.Rel, err)
	}
	defer d.Close()
	for len(entries) <= maxEntries {
		if ctx.Err() != nil {
			return nil, false, cancelled(ctx)
		}
		some, err := d.ReadDir(1024)
		entries = append(entries, some...)
		if errors.Is(err, io.EOF) {
			return entries, false, nil
		}
		if err != nil {
			return nil, false, failed("list", p.Rel, err)
		}
	}
	return entries[:maxEntries], true, nil
}

// Readlink returns the text of the link name in the folder p.
func (w *Workspace) Readlink(p Path, name string) (string, error) {
	return w.root.Readlink(filepath.Join(p.Rel, name))
}

func regular(p Path, info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		return tools.Errorf(tools.Other, "Use list_directory for a folder.", "%s is a folder.", p.Rel)
	default:
		return tools.Errorf(tools.Other, "", "%s is a %s, not a regular file; it was not opened.", p.Rel, kind(mode))
	}
}

func kind(m fs.FileMode) string {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return "named pipe"
	case m&fs.ModeSocket != 0:
		return "socket"
	case m&fs.ModeDevice != 0:
		return "device"
	case m&fs.ModeSymlink != 0:
		return "link"
	}
	return "special file"
}

var bom = []byte("\uFEFF")

// clean reports whether a buffer shows what the disk holds: editors drop the
// byte order mark, and line ends belong to how a file is saved.
func clean(text string, disk []byte) bool {
	if text == string(disk) {
		return true
	}
	return bytes.Equal(plain([]byte(text)), plain(disk))
}

func plain(b []byte) []byte {
	b = bytes.TrimPrefix(b, bom)
	b = bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))
	b = bytes.ReplaceAll(b, []byte("\r"), []byte("\n"))
	return bytes.TrimSuffix(b, []byte("\n"))
}
