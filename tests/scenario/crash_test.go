package scenario

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lakecode/lakecode/lsp/wire"
	"github.com/lakecode/lakecode/tests/editor"
)

// marked lists the processes that bear a mark in their environment.
func marked(t *testing.T, mark string) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		env, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if err != nil || !strings.Contains(string(env), mark) {
			continue
		}
		cmd, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if len(cmd) > 0 { // a zombie has none
			out = append(out, e.Name()+" "+strings.ReplaceAll(string(cmd), "\x00", " "))
		}
	}
	return out
}

// gone waits until no process bears the mark.
func gone(t *testing.T, mark string, within time.Duration) {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		left := marked(t, mark)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still there after %s:\n%s", within, strings.Join(left, "\n"))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// exitBound is three times what decisions allow for the end of everything.
const exitBound = 6 * time.Second

// covers ED-7
func TestEverythingEndsWithTheEditor(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(w *world)
		code int
	}{
		{"the pipe closes", func(w *world) { _ = w.ed.CloseInput() }, 1},
		{"shutdown and exit", func(w *world) {
			if code, err := w.ed.Shutdown(); err != nil || code != 0 {
				w.t.Errorf("exit code %d, %v", code, err)
			}
		}, 0},
		{"SIGKILL of the binary", func(w *world) { w.ed.Kill() }, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			mark := fmt.Sprintf("SCENARIO_MARK=%d-%d", os.Getpid(), rand.Uint64())
			// A child in a session of its own, and one that ignores SIGTERM.
			w := partialWorld(t, `
				call bash {"command": "./deaf", "description": "a script that does not end"}
				end
				say unused`, map[string]string{"deaf": "#!/bin/bash\ntrap '' TERM\nsetsid sleep 300 &\nsleep 301\n"})
			if err := os.Chmod(w.path("deaf"), 0o755); err != nil {
				t.Fatal(err)
			}
			w.env = append(w.env, mark)
			w.open()
			w.submit("go")
			w.await("the start", func(e event) bool { return e.Kind == string(wire.KindCallStarted) })
			deadline := time.Now().Add(patience)
			for len(marked(t, mark)) < 4 && time.Now().Before(deadline) { // server, reaper, script, sleeps
				time.Sleep(10 * time.Millisecond)
			}
			c.end(w)
			gone(t, mark, exitBound)
			<-w.ed.Exited()
			if code := w.ed.ExitCode(); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
		})
	}
}

// covers CONV-7
func TestKillAtRandomMomentsLosesNothingThatWasAppended(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 0))
	rounds := 12
	if testing.Short() {
		rounds = 3
	}
	t.Logf("seed %d", seed)
	script := `
		repeat 500 {
			say Looking at round {{n}}.
			call bash {"command": "touch f{{n}}", "description": "leave a mark"}
			call read_file {"path": "a.txt"}
			end
		}`
	for round := range rounds {
		mark := fmt.Sprintf("SCENARIO_MARK=%d-%d", os.Getpid(), rng.Uint64())
		w := partialWorld(t, script, map[string]string{"a.txt": "hello\n"})
		w.env = append(w.env, mark)
		w.open()
		w.submit("go")
		// Kill after a random number of events, so that every place is hit.
		n := 1 + rng.IntN(60)
		for range n {
			w.kindAny()
		}
		seen := w.callsEnded()
		w.ed.Kill()
		gone(t, mark, exitBound)
		w.env = w.env[:len(w.env)-1]
		w.reopen()
		tr := w.transcript()
		if len(tr.Turns) == 0 && len(tr.State.Queue) == 1 && tr.State.QueuePaused {
			w.ed.Kill() // killed before the turn began
			continue
		}
		if len(tr.Turns) != 1 || tr.Turns[0].How != "crashed" {
			t.Fatalf("round %d: turns %+v", round, tr.Turns)
		}
		have := map[string]string{}
		for _, it := range tr.Turns[0].Items {
			if it.Kind == "call" {
				if it.Outcome == "" {
					t.Errorf("round %d: call %s has no result after the repair", round, it.CallID)
				}
				have[it.CallID] = it.Outcome
			}
		}
		for id, outcome := range seen { // a result is told after it is appended
			if have[id] != outcome {
				t.Errorf("round %d: call %s was told to be %s and is %q", round, id, outcome, have[id])
			}
		}
		if tr.State.Phase != "idle" {
			t.Errorf("round %d: phase %s", round, tr.State.Phase)
		}
		w.ed.Kill()
	}
}

func (w *world) kindAny() {
	w.t.Helper()
	_, at, err := w.ed.Wait(w.at, patience, func(editor.Message) bool { return true })
	if err != nil {
		w.t.Fatal(err)
	}
	w.at = at
}

// callsEnded maps the calls that the editor has seen end to their outcomes.
func (w *world) callsEnded() map[string]string {
	out := map[string]string{}
	_, _, _ = w.ed.Wait(0, 0, func(m editor.Message) bool {
		for _, e := range eventsOf(m) {
			if e.Kind == string(wire.KindCallEnded) {
				out[e.CallID] = e.Outcome
			}
		}
		return false
	})
	return out
}
