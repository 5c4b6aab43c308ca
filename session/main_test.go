package session

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"
)

// The test binary is also the other process of some tests.
func TestMain(m *testing.M) {
	if role := os.Getenv("LAKECODE_TEST_ROLE"); role != "" {
		if err := play(role); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newStore(t testing.TB) *Store {
	t.Helper()
	h, err := OpenHome(filepath.Join(t.TempDir(), "home"))
	must(t, err)
	return NewStore(h)
}

// newSession creates a session and closes it when the test ends.
func newSession(t testing.TB, s *Store) (*Log, *Archive) {
	t.Helper()
	l, a, err := s.Create(t.Context(), t.TempDir(), nil)
	must(t, err)
	t.Cleanup(func() { must(t, l.Close()) })
	return l, a
}

// save applies records and appends them, one write each.
func save(t testing.TB, l *Log, a *Archive, rs ...Record) {
	t.Helper()
	for _, r := range rs {
		must(t, a.Apply(r))
		must(t, l.Append(t.Context(), false, r))
	}
}

// reopen closes the log and opens the session again.
func reopen(t testing.TB, s *Store, l *Log) (*Log, *Archive) {
	t.Helper()
	must(t, l.Close())
	l, a, err := s.Open(t.Context(), l.ID())
	must(t, err)
	t.Cleanup(func() { must(t, l.Close()) })
	return l, a
}

func same(t testing.TB, want, got *Archive) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("archive (-want +got):\n%s", diff)
	}
}

// when is a fixed time plus n seconds.
func when(n int) time.Time {
	return time.Date(2026, 1, 2, 3, 4, n, 5000, time.UTC)
}

func message(id, text string) Message {
	return Message{ID: id, Text: text, Mode: "build", Main: Assignment{Provider: "p", Model: "m", Effort: "high"}, Accepted: when(1)}
}

// turn is a whole turn with one call, of about size bytes of text.
func turn(id string, size int) []Record {
	text := strings.Repeat("word ", size/10)
	return []Record{
		Accepted{Message: message(id, "do "+id)},
		TurnStarted{ID: id, Time: when(2)},
		ItemAdded{Turn: id, Item: Item{ID: id + ".1", Answer: &Answer{
			Reasoning: "hm", Text: text,
			Calls: []Call{{ID: "c1", Name: "write_file", Args: `{"path":"a"}`}}, Usage: &Usage{Input: 10, Output: 3},
		}}},
		CallStarted{Turn: id, Call: "c1"},
		ItemAdded{Turn: id, Item: Item{ID: id + ".2", Result: &Result{
			Call: "c1", Outcome: OK, Text: text, Millis: 3,
			Changed: []Change{{Path: "a", Kind: "create", Added: 1, Diff: "+a\n"}},
		}}},
		ItemAdded{Turn: id, Item: Item{ID: id + ".3", Note: &Note{Kind: "stopped", Text: "stopped"}}},
		TurnEnded{Turn: id, End: End{How: Completed, Time: when(3), Calls: 1, Usage: &Usage{Input: 10, Output: 3}, FirstMs: 7}},
	}
}

// logFile returns the path of a session's log.
func logFile(s *Store, id ID) string { return filepath.Join(s.dir(id), "log") }
