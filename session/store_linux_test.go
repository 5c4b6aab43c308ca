package session

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/lakecode/lakecode/session/durable"
)

func TestCreateNeedsAFolder(t *testing.T) {
	s := newStore(t)
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	for _, root := range []string{file, file + "x"} {
		if _, _, err := s.Create(t.Context(), root, nil); err == nil || !strings.Contains(err.Error(), root) {
			t.Errorf("%s: %v", root, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.Create(ctx, t.TempDir(), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if list, err := s.List(t.Context(), ""); len(list) != 0 || err != nil {
		t.Errorf("left behind: %v, %v", list, err)
	}
}

func TestOpenOfNothing(t *testing.T) {
	s := newStore(t)
	l, _ := newSession(t, s)
	empty := ID("01890a5d-ac96-774b-bcce-b302099a8057")
	must(t, os.Mkdir(s.dir(empty), 0o700)) // as a crash during Create leaves it
	for _, id := range []ID{
		"", ".", "..", "index", "../sessions/" + l.ID(), l.ID() + "/", "/etc", empty,
		ID(strings.ToUpper(string(l.ID()))), "urn:uuid:" + l.ID(), "01890a5d-ac96-774b-bcce-b302099a8058",
	} {
		if _, _, err := s.Open(t.Context(), id); !errors.Is(err, ErrNotFound) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// What is no readable file of a session is refused with its path, and stays.
func TestOpenRefusesStrangeFiles(t *testing.T) {
	for name, c := range map[string]struct {
		change func(dir string) error
		bad    string // the file that is named
		want   error
	}{
		"log is a link": {func(d string) error {
			return errors.Join(os.Rename(d+"/log", d+"/x"), os.Symlink("x", d+"/log"))
		}, "/log", durable.ErrLink},
		"log is a pipe": {func(d string) error {
			return errors.Join(os.Remove(d+"/log"), syscall.Mkfifo(d+"/log", 0o600))
		}, "/log", durable.ErrNotRegular},
		"log is a folder": {func(d string) error {
			return errors.Join(os.Remove(d+"/log"), os.Mkdir(d+"/log", 0o700))
		}, "/log", syscall.EISDIR},
		"log is gone": {func(d string) error {
			return errors.Join(os.Remove(d+"/log"), os.WriteFile(d+"/other", nil, 0o600))
		}, "/log", fs.ErrNotExist},
		"folder is a link": {func(d string) error {
			return errors.Join(os.Rename(d, d+"x"), os.Symlink(d+"x", d))
		}, "", durable.ErrLink},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			l, _ := newSession(t, s)
			must(t, l.Close())
			must(t, c.change(l.Dir()))
			var damaged *DamagedError
			if _, _, err := s.Open(t.Context(), l.ID()); !errors.As(err, &damaged) || !errors.Is(err, c.want) ||
				damaged.Path != l.Dir()+c.bad || !strings.Contains(err.Error(), damaged.Path) {
				t.Errorf("error: %v", err)
			}
			list, err := s.List(t.Context(), "")
			if err != nil || len(list) != 1 || list[0].ID != l.ID() || list[0].Problem == "" {
				t.Errorf("list: %+v, %v", list, err)
			}
		})
	}
	t.Run("lock is a link", func(t *testing.T) {
		s := newStore(t)
		l, _ := newSession(t, s)
		must(t, l.Close())
		target := filepath.Join(t.TempDir(), "target")
		must(t, os.WriteFile(target, []byte("safe"), 0o600))
		must(t, os.Remove(l.Dir()+"/lock"))
		must(t, os.Symlink(target, l.Dir()+"/lock"))
		if _, _, err := s.Open(t.Context(), l.ID()); !errors.Is(err, syscall.ELOOP) || !strings.Contains(err.Error(), l.Dir()) {
			t.Errorf("error: %v", err)
		}
		if data, err := os.ReadFile(target); string(data) != "safe" || err != nil {
			t.Errorf("target: %q, %v", data, err)
		}
	})
	t.Run("log of another session", func(t *testing.T) {
		s := newStore(t)
		a, _ := newSession(t, s)
		b, _ := newSession(t, s)
		must(t, errors.Join(a.Close(), b.Close()))
		data, err := os.ReadFile(a.path)
		must(t, err)
		must(t, os.WriteFile(b.path, data, 0o600))
		var damaged *DamagedError
		if _, _, err := s.Open(t.Context(), b.ID()); !errors.As(err, &damaged) || !strings.Contains(err.Error(), string(a.ID())) {
			t.Errorf("error: %v", err)
		}
	})
}

func TestOpenOfAnUnreadableLog(t *testing.T) {
	s := newStore(t)
	l, _ := newSession(t, s)
	must(t, l.Close())
	// All folders may be entered, only the log may not be read.
	for dir := l.Dir(); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		must(t, os.Chmod(dir, 0o755))
	}
	asNobody(func() {
		var damaged *DamagedError
		_, _, err := s.Open(t.Context(), l.ID())
		if !errors.As(err, &damaged) || !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), l.path) {
			t.Errorf("open: %v", err)
		}
		list, err := s.List(t.Context(), "")
		if err != nil || len(list) != 1 || list[0].Problem == "" {
			t.Errorf("list: %+v, %v", list, err)
		}
	})
	l, _, err := s.Open(t.Context(), l.ID())
	must(t, err)
	must(t, l.Close())
}

func TestOpenIsCancelled(t *testing.T) {
	s := newStore(t)
	l, _ := newSession(t, s)
	must(t, l.Close())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.Open(ctx, l.ID()); !errors.Is(err, context.Canceled) {
		t.Errorf("error: %v", err)
	}
	l, _, err := s.Open(t.Context(), l.ID()) // the lock is free
	must(t, err)
	must(t, l.Close())
}

func TestSecondOpenInTheSameProcess(t *testing.T) {
	s := newStore(t)
	l, _ := newSession(t, s)
	var locked *LockedError
	if _, _, err := s.Open(t.Context(), l.ID()); !errors.As(err, &locked) || locked.PID != os.Getpid() || locked.ID != l.ID() {
		t.Errorf("error: %v", err)
	}
	save(t, l, &Archive{ID: l.ID()}, Titled{Title: "still works"})
	l, _ = reopen(t, s, l)
	must(t, l.Close())
	must(t, l.Close())
}
