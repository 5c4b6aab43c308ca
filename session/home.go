package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// Home is the folder that holds everything Lakecode stores, ~/.lakecode by
// default (spec 20: Sessions on disk). Only this package builds paths in it.
// Immutable.
type Home struct{ path string }

// OpenHome takes the folder at path as the home, creating it (0700) and the
// folders in it where they are missing. A folder that others may enter is
// narrowed to 0700.
//
// It fails with a *[HomeError] when path or one of the folders is a symbolic
// link, is no folder, belongs to another user or cannot be written.
func OpenHome(path string) (*Home, error) {
	if path == "" {
		return nil, &HomeError{Path: `""`, Reason: "its path is empty"}
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, &HomeError{Path: path, Reason: "its path has no start", Err: err}
	}
	h := &Home{path: abs}
	if err := os.MkdirAll(filepath.Dir(abs), 0o700); err != nil {
		return nil, &HomeError{Path: abs, Reason: "it cannot be created", Err: err}
	}
	for _, dir := range []string{abs, h.Logs(), h.Sessions(), h.index()} {
		if err := ensure(dir); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// ensure makes dir a private folder of our own.
func ensure(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return &HomeError{Path: dir, Reason: "it cannot be created", Err: err}
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return &HomeError{Path: dir, Reason: "it cannot be looked at", Err: err}
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return &HomeError{Path: dir, Reason: "it is a symbolic link, which is not followed"}
	case !info.IsDir():
		return &HomeError{Path: dir, Reason: "it is not a folder"}
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return &HomeError{Path: dir, Reason: fmt.Sprintf("it belongs to another user (%d)", st.Uid)}
	}
	if err := unix.Faccessat(unix.AT_FDCWD, dir, unix.R_OK|unix.W_OK|unix.X_OK, unix.AT_EACCESS); err != nil {
		return &HomeError{Path: dir, Reason: "it cannot be written", Err: err}
	}
	if info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(dir, 0o700); err != nil {
			return &HomeError{Path: dir, Reason: "others may enter it, and that cannot be changed", Err: err}
		}
	}
	return nil
}

// Path returns the absolute path of the home.
func (h *Home) Path() string { return h.path }

// Providers returns the path of providers.json, which need not exist.
func (h *Home) Providers() string { return filepath.Join(h.path, "providers.json") }

// Settings returns the path of settings.json, which need not exist.
func (h *Home) Settings() string { return filepath.Join(h.path, "settings.json") }

// Logs returns the folder of the program's own log files.
func (h *Home) Logs() string { return filepath.Join(h.path, "logs") }

// Sessions returns the folder that holds one folder per session.
func (h *Home) Sessions() string { return filepath.Join(h.path, "sessions") }

func (h *Home) index() string { return filepath.Join(h.path, "sessions", "index") }
