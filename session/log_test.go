package session

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// full is one record of each kind and more than one turn.
func full() []Record {
	rs := turn("m1", 100)
	rs = append(rs,
		Accepted{Message: Message{ID: "m2", ClientRequestID: "r", Text: "two\nlines", Mode: "build", Accepted: when(4)}},
		Accepted{Message: message("m3", "three")},
		Dropped{ID: "m2"},
		Titled{Title: "a <title> & more"},
		TurnStarted{ID: "m3", Time: when(5)},
		ItemAdded{Turn: "m3", Item: Item{ID: "i", Answer: &Answer{Text: "cut", Interrupted: true}}},
		Accepted{Message: message("m4", "four")},
	)
	return rs
}

func TestEverythingIsThereAfterReopening(t *testing.T) {
	s := newStore(t)
	root := t.TempDir()
	l, a, err := s.Create(t.Context(), root, []Instruction{{Path: "AGENTS.md", Text: "be kind\n"}})
	must(t, err)
	if l.ID() != a.ID || a.Root != root || a.Created.IsZero() || len(a.Instructions) != 1 || l.Dir() != s.dir(a.ID) {
		t.Errorf("new archive: %+v", a)
	}
	save(t, l, a, full()...)
	if len(a.Turns) != 2 || a.Turns[1].End != nil || len(a.Queue) != 1 || a.Title == "" {
		t.Fatalf("archive: %+v", a)
	}
	l, b := reopen(t, s, l)
	same(t, a, b)
	save(t, l, b, TurnEnded{Turn: "m3", End: End{How: Crashed, Time: when(6)}})
	save(t, l, b, turn("m5", 10)...)
	_, c := reopen(t, s, l)
	same(t, b, c)
}

func TestRecordsOfOneAppendMakeOneLineEach(t *testing.T) {
	s := newStore(t)
	l, a := newSession(t, s)
	rs := turn("m1", 4<<10)
	must(t, l.Append(t.Context(), true, rs...))
	for _, r := range rs {
		must(t, a.Apply(r))
	}
	data, err := os.ReadFile(logFile(s, l.ID()))
	must(t, err)
	if got, want := strings.Count(string(data), "\n"), 2+len(rs); got != want {
		t.Errorf("%d lines, want %d", got, want)
	}
	_, b := reopen(t, s, l)
	same(t, a, b)
}

func TestFilesArePrivate(t *testing.T) {
	s := newStore(t)
	l, a := newSession(t, s)
	save(t, l, a, turn("m1", 10)...)
	must(t, filepath.Walk(s.home.Path(), func(path string, info os.FileInfo, err error) error {
		must(t, err)
		want := os.FileMode(0o600)
		if info.IsDir() {
			want = 0o700
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %o", path, info.Mode().Perm())
		}
		return nil
	}))
}

func TestVeryLargeRecord(t *testing.T) {
	s := newStore(t)
	l, a := newSession(t, s)
	save(t, l, a, turn("m1", 10)...)
	save(t, l, a, Accepted{Message: message("big", strings.Repeat("0123456789\t\"", 10<<20/12))})
	save(t, l, a, Titled{Title: "after"})
	if l.enc.out.Cap() > 2<<20 {
		t.Errorf("the log keeps %d bytes of memory", l.enc.out.Cap())
	}
	_, b := reopen(t, s, l)
	same(t, a, b)
}

// Each invalid byte becomes one U+FFFD; all that is valid stays as it is.
func TestTextThatIsNotUTF8(t *testing.T) {
	for in, want := range map[string]string{
		"a\xffb":                       "a\ufffdb",
		"\xe2\x82":                     "\ufffd\ufffd",
		"\xed\xa0\x80":                 "\ufffd\ufffd\ufffd", // half of a surrogate pair
		"\x00\x1b[0m\r\n\u2028<&>\\\"": "\x00\x1b[0m\r\n\u2028<&>\\\"",
		"\ufffd\U0001F980é":            "\ufffd\U0001F980é",
	} {
		s := newStore(t)
		l, a := newSession(t, s)
		save(t, l, a, Accepted{Message: message("m", in)}, Titled{Title: in})
		_, b := reopen(t, s, l)
		if diff := cmp.Diff([]string{want, want}, []string{b.Queue[0].Text, b.Title}); diff != "" {
			t.Errorf("%q (-want +got):\n%s", in, diff)
		}
	}
}

func TestAppendDoesNothingWhenCancelledOrClosed(t *testing.T) {
	s := newStore(t)
	l, a := newSession(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Append(ctx, true, Titled{Title: "no"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	_, b := reopen(t, s, l)
	same(t, a, b)
	if err := l.Append(t.Context(), true, Titled{Title: "no"}); !errors.Is(err, os.ErrClosed) || !strings.Contains(err.Error(), string(l.ID())) {
		t.Errorf("closed: %v", err)
	}
}

// A log that was removed or changed behind our back takes no records that
// nobody would find again.
func TestAppendNoticesWhatHappenedToTheFile(t *testing.T) {
	t.Run("removed", func(t *testing.T) {
		s := newStore(t)
		l, _ := newSession(t, s)
		must(t, os.RemoveAll(l.Dir()))
		if err := l.Append(t.Context(), true, Titled{Title: "no"}); err == nil || !strings.Contains(err.Error(), "was removed") {
			t.Errorf("error: %v", err)
		}
	})
	t.Run("grown", func(t *testing.T) {
		s := newStore(t)
		l, _ := newSession(t, s)
		path := logFile(s, l.ID())
		before, err := os.ReadFile(path)
		must(t, err)
		must(t, os.WriteFile(path, append(before, "theirs"...), 0o600))
		var damaged *DamagedError
		if err := l.Append(t.Context(), true, Titled{Title: "no"}); !errors.As(err, &damaged) {
			t.Errorf("error: %v", err)
		}
		after, err := os.ReadFile(path)
		must(t, err)
		if string(after) != string(before)+"theirs" {
			t.Error("the file was changed")
		}
	})
}

// When not even the rest of a failed write can be removed, nothing is appended
// until it can.
func TestAppendWaitsForTheMending(t *testing.T) {
	s := newStore(t)
	l, a := newSession(t, s)
	save(t, l, a, turn("m1", 10)...)
	good := l.f
	bad, err := os.Open(good.Name()) // can be neither written nor truncated
	must(t, err)
	l.f = bad
	for range 2 {
		err := l.Append(t.Context(), false, Titled{Title: "no"})
		if !errors.Is(err, syscall.EBADF) || !strings.Contains(err.Error(), "cannot be written since an earlier error") {
			t.Errorf("error: %v", err)
		}
	}
	l.f = good
	must(t, bad.Close())
	// What the failed write would have left.
	_, err = good.WriteAt([]byte("rest of a record"), l.entry.Size)
	must(t, err)
	save(t, l, a, Titled{Title: "yes"})
	_, b := reopen(t, s, l)
	same(t, a, b)
}

// After a failed sync everything since the last good one is written again.
func TestMendingAfterAFailedSync(t *testing.T) {
	s := newStore(t)
	l, a := newSession(t, s)
	save(t, l, a, turn("m1", 100)...)
	l.flaw, l.unsure = syscall.EIO, true
	if l.synced >= l.entry.Size {
		t.Fatal("nothing to write again")
	}
	before := l.entry.Size
	save(t, l, a, Titled{Title: "yes"})
	if l.flaw != nil || l.unsure || l.synced != before {
		t.Errorf("not mended: %v, %v, %d bytes are durable of %d", l.flaw, l.unsure, l.synced, before)
	}
	_, b := reopen(t, s, l)
	same(t, a, b)
}
