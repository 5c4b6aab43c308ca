package session

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// asNobody runs f on a thread that touches files as a user without rights.
func asNobody(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if _, _, e := syscall.RawSyscall(syscall.SYS_SETFSUID, 65534, 0, 0); e != 0 {
			panic(e)
		}
		f()
	}()
	<-done
}

func TestHomeIsCreatedPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "home")
	h, err := OpenHome(path)
	must(t, err)
	for _, dir := range []string{filepath.Dir(path), h.Path(), h.Logs(), h.Sessions()} {
		info, err := os.Lstat(dir)
		must(t, err)
		if info.Mode() != os.ModeDir|0o700 {
			t.Errorf("%s: %v", dir, info.Mode())
		}
	}
	if h.Path() != path || h.Providers() != path+"/providers.json" || h.Settings() != path+"/settings.json" {
		t.Errorf("paths: %s, %s, %s", h.Path(), h.Providers(), h.Settings())
	}
	must(t, os.Chmod(path, 0o755))
	_, err = OpenHome(path)
	must(t, err)
	info, err := os.Lstat(path)
	must(t, err)
	if info.Mode().Perm() != 0o700 {
		t.Errorf("an open home stayed %v", info.Mode())
	}
}

func TestHomeIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		make func(path string) error
		bad  string // below the home
		want string
	}{
		"link": {func(p string) error {
			return errors.Join(os.Mkdir(p+"2", 0o700), os.Symlink(p+"2", p))
		}, "", "symbolic link"},
		"dangling link": {func(p string) error { return os.Symlink(p+"2", p) }, "", "symbolic link"},
		"file":          {func(p string) error { return os.WriteFile(p, nil, 0o600) }, "", "not a folder"},
		"another user": {func(p string) error {
			return errors.Join(os.Mkdir(p, 0o700), os.Chown(p, 1234, 1234))
		}, "", "another user (1234)"},
		"link inside": {func(p string) error {
			return errors.Join(os.Mkdir(p, 0o700), os.Symlink("/tmp", p+"/sessions"))
		}, "/sessions", "symbolic link"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "home")
			must(t, c.make(path))
			var bad *HomeError
			if _, err := OpenHome(path); !errors.As(err, &bad) || bad.Path != path+c.bad || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error: %v", err)
			}
		})
	}
	if _, err := OpenHome(""); err == nil {
		t.Error("an empty path was taken")
	}
}

func TestHomeWithoutRights(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Chmod(filepath.Dir(dir), 0o755))
	path := filepath.Join(dir, "home")
	asNobody(func() {
		var bad *HomeError
		if _, err := OpenHome(path); !errors.As(err, &bad) || !errors.Is(err, os.ErrPermission) || !strings.Contains(err.Error(), path) {
			t.Errorf("error: %v", err)
		}
	})
}
