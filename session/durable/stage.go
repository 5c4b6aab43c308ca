package durable

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Staged is one prepared change of one name in a folder: a new content or a
// removal. It holds one open folder until Discard. Not safe for concurrent use.
type Staged struct {
	dir    *os.Root
	base   string
	path   string      // for messages
	before os.FileInfo // nil: there was nothing at the name
	temp   string      // staged content; empty: a removal, or already in place
	remove bool
	kept   string // link to the former file after Commit; empty: none
	state  state
}

type state uint8

const (
	staged state = iota
	committed
	restored
	discarded
)

// Stage writes data to a temporary file beside path and syncs it. Nothing that
// others see has changed when it returns. A new file gets perm (before umask),
// an existing one keeps its own. The caller must call Discard in the end.
//
// Errors: [ErrLink] and [ErrNotRegular] when path exists and is no plain file,
// fs.ErrNotExist when its folder does not, and those of the file system.
func Stage(path string, data []byte, perm os.FileMode) (*Staged, error) {
	dir, base, err := split(path)
	if err != nil {
		return nil, err
	}
	return stage(dir, base, path, data, perm)
}

// StageIn is Stage for a name inside root. The folder is found once, inside
// root, and held: replacing it by a link afterwards leads nowhere else.
func StageIn(root *os.Root, name string, data []byte, perm os.FileMode) (*Staged, error) {
	dir, err := root.OpenRoot(filepath.Dir(name))
	if err != nil {
		return nil, err
	}
	return stage(dir, filepath.Base(name), filepath.Join(root.Name(), name), data, perm)
}

// StageRemoval prepares the removal of the plain file name inside root. The
// errors are those of Stage; fs.ErrNotExist also when there is no such file.
func StageRemoval(root *os.Root, name string) (*Staged, error) {
	dir, err := root.OpenRoot(filepath.Dir(name))
	if err != nil {
		return nil, err
	}
	s := &Staged{dir: dir, base: filepath.Base(name), path: filepath.Join(root.Name(), name), remove: true}
	s.before, err = s.look()
	if err == nil && s.before == nil {
		err = &fs.PathError{Op: "remove", Path: s.path, Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, errors.Join(err, s.Discard())
	}
	return s, nil
}

func stage(dir *os.Root, base, path string, data []byte, perm os.FileMode) (*Staged, error) {
	s := &Staged{dir: dir, base: base, path: path}
	var err error
	s.before, err = s.look()
	if err == nil {
		err = s.fill(data, perm)
	}
	if err != nil {
		return nil, errors.Join(err, s.Discard())
	}
	return s, nil
}

// look returns what is at the name now; nil when nothing is.
func (s *Staged) look() (os.FileInfo, error) {
	info, err := s.dir.Lstat(s.base)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, &fs.PathError{Op: "replace", Path: s.path, Err: ErrLink}
	case !info.Mode().IsRegular():
		return nil, &fs.PathError{Op: "replace", Path: s.path, Err: ErrNotRegular}
	}
	return info, nil
}

// fill writes the temporary file.
func (s *Staged) fill(data []byte, perm os.FileMode) error {
	if s.before != nil {
		perm = s.before.Mode().Perm()
	}
	name := tempName()
	f, err := s.dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm.Perm())
	if err != nil {
		return fmt.Errorf("write %s: %w", s.path, err)
	}
	s.temp = name
	_, err = f.Write(data)
	if err == nil && s.before != nil {
		err = resemble(f, s.before)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", s.path, err)
	}
	return nil
}

// resemble gives f the owner of the former file, if that is allowed, and its
// permission bits whatever the umask. The owner comes first: changing it may
// clear bits.
func resemble(f *os.File, before os.FileInfo) error {
	if st, ok := before.Sys().(*syscall.Stat_t); ok && (int(st.Uid) != os.Geteuid() || int(st.Gid) != os.Getegid()) {
		if err := f.Chown(int(st.Uid), int(st.Gid)); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return f.Chmod(before.Mode().Perm())
}

// Commit puts the change into place and syncs the folder. Until Discard the
// former file is kept under a temporary name, so Restore needs no space.
//
// Errors: [ErrLink] and [ErrNotRegular] when the name has become something else
// since it was staged, fs.ErrExist when a file has appeared where there was
// none, fs.ErrNotExist when the file to replace or remove is gone. Then nothing
// was changed. A failing sync is an error too, after which the change is in
// place: Restore undoes it.
func (s *Staged) Commit() error {
	if s.state != staged {
		return fmt.Errorf("write %s: committed before", s.path)
	}
	now, err := s.look()
	switch {
	case err != nil:
		return err
	case s.before == nil:
		return s.create()
	case now == nil:
		return &fs.PathError{Op: "replace", Path: s.path, Err: fs.ErrNotExist}
	}
	if err := s.keep(); err != nil {
		return fmt.Errorf("keep the former %s: %w", s.path, err)
	}
	if s.remove {
		if err := s.dir.Remove(s.base); err != nil {
			return err
		}
		s.state = committed
		return s.sync()
	}
	return s.replace()
}

// create gives the new content its name, which must be free.
func (s *Staged) create() error {
	err := s.dir.Link(s.temp, s.base)
	switch {
	case errors.Is(err, fs.ErrExist):
		return &fs.PathError{Op: "create", Path: s.path, Err: fs.ErrExist}
	case err != nil:
		// A file system without hard links. What appeared between look and here
		// would be replaced; there is nothing better on such a system.
		return s.replace()
	}
	s.state = committed
	if s.dir.Remove(s.temp) == nil { // else Discard does it
		s.temp = ""
	}
	return s.sync()
}

// replace gives the new content its name, whatever has it now.
func (s *Staged) replace() error {
	if err := s.dir.Rename(s.temp, s.base); err != nil {
		return err
	}
	s.temp, s.state = "", committed
	return s.sync()
}

// keep gives the former file a second name, or makes a copy where a hard link
// is impossible: on some file systems, and for files of other users.
func (s *Staged) keep() error {
	if s.kept != "" { // left by a Commit that went no further
		if err := s.dir.Remove(s.kept); err != nil {
			return err
		}
		s.kept = ""
	}
	name := tempName()
	if err := s.dir.Link(s.base, name); err == nil {
		s.kept = name
		return nil
	}
	return s.copyAside(name)
}

// copyAside copies the former file to name.
func (s *Staged) copyAside(name string) error {
	from, err := s.dir.Open(s.base)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := s.dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, s.before.Mode().Perm())
	if err != nil {
		return err
	}
	s.kept = name
	_, err = io.Copy(to, from)
	if err == nil {
		err = resemble(to, s.before)
	}
	if err == nil {
		err = to.Sync()
	}
	return errors.Join(err, to.Close())
}

// Restore undoes a Commit: the former file has its name again, or the name is
// free again. It does nothing when nothing was committed. After an error it may
// be repeated; the former file stays under its temporary name until Discard.
func (s *Staged) Restore() error {
	if s.state != committed {
		return nil
	}
	if s.before == nil {
		if err := s.dir.Remove(s.base); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("restore %s: %w", s.path, err)
		}
	} else {
		if err := s.dir.Rename(s.kept, s.base); err != nil {
			return fmt.Errorf("restore %s: %w", s.path, err)
		}
		s.kept = ""
	}
	s.state = restored
	return s.sync()
}

// Discard removes the temporary files: the new content of a change that was
// not committed, the former one of a change that was. It never touches the file
// itself and may be called more than once, so it can be deferred.
func (s *Staged) Discard() error {
	if s.state == discarded {
		return nil
	}
	s.state = discarded
	var errs []error
	for _, name := range []string{s.temp, s.kept} {
		if name == "" {
			continue
		}
		if err := s.dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errors.Join(errs...), s.dir.Close())
}

// sync makes the names of the folder durable.
func (s *Staged) sync() error {
	d, err := s.dir.Open(".")
	if err != nil {
		return err
	}
	return syncClose(d)
}

func tempName() string { return TempPrefix + rand.Text() }
