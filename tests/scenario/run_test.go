package scenario

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// headless is one run of "lakecode run".
type headless struct {
	w              *world
	cmd            *exec.Cmd
	stdout, stderr output
}

// output is what a process has printed so far.
type output struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// printed waits until the run has printed text.
func (h *headless) printed(text string) {
	h.w.t.Helper()
	for deadline := time.Now().Add(patience); !strings.Contains(h.stdout.String(), text); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			h.w.t.Fatalf("%q was not printed: %q", text, &h.stdout)
		}
	}
}

// headless starts the binary with the model of the world, unless args name one.
func (w *world) headless(stdin string, args ...string) *headless {
	w.t.Helper()
	h := &headless{w: w, cmd: exec.Command(binary, append([]string{"run"}, args...)...)}
	h.cmd.Dir, h.cmd.Env = w.root, w.env
	h.cmd.Stdin, h.cmd.Stdout, h.cmd.Stderr = strings.NewReader(stdin), &h.stdout, &h.stderr
	h.cmd.WaitDelay = patience
	if err := h.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = h.cmd.Process.Kill() })
	return h
}

// end waits for the process and checks its exit code.
func (h *headless) end(code int) *headless {
	h.w.t.Helper()
	kill := time.AfterFunc(patience, func() { _ = h.cmd.Process.Kill() })
	defer kill.Stop()
	_ = h.cmd.Wait()
	if got := h.cmd.ProcessState.ExitCode(); got != code {
		h.w.t.Errorf("%q exited with %d, want %d\nstdout: %s\nstderr: %s", h.cmd.Args[1:], got, code, &h.stdout, &h.stderr)
	}
	return h
}

// session is the id that a run names at its end.
func (h *headless) session() string {
	h.w.t.Helper()
	_, id, ok := strings.Cut(h.stderr.String(), "session ")
	if !ok {
		h.w.t.Fatalf("no session is named: %s", &h.stderr)
	}
	return strings.TrimSpace(id)
}

var fake = []string{"--provider", "fake", "--model", "m"}

func with(args ...string) []string { return append(args, fake...) }

func TestRunPrintsTheAnswerAndGoesOn(t *testing.T) {
	w := newWorld(t, `
		expect user is "what does a.txt say?"
		call read_file {"path": "a.txt"}
		end
		say It says hello.
		end
		expect body contains "It says hello."
		expect user is "and now?"
		say Still hello.
		end
		expect user is "and then?"
		say The same.`, map[string]string{"a.txt": "hello\n"})
	first := w.headless("", with("-p", "what does a.txt say?")...).end(0)
	if got := first.stdout.String(); got != "It says hello.\n" {
		t.Errorf("stdout %q", got)
	}
	wantContains(t, "stderr", first.stderr.String(), "✓ read_file a.txt\n", "session ")
	second := w.headless("", with("-p", "and now?", "--continue")...).end(0)
	third := w.headless("and then?", with("-p", "-", "--session", first.session(), "--cwd", "..")...).end(0)
	if a, b, c := first.session(), second.session(), third.session(); a != b || a != c {
		t.Errorf("sessions %s, %s, %s", a, b, c)
	}
}

func TestExitCodesOfRun(t *testing.T) {
	for _, c := range []struct {
		name, script string
		args         []string
		code         int
		stderr       []string
	}{
		{"no prompt", "", with(), 2, []string{"no prompt", "-h"}},
		{"an empty prompt", "", with("-p", " "), 2, []string{"no prompt"}},
		{"an unknown flag", "", with("-p", "x", "--what"), 2, []string{"-what"}},
		{"a prompt without quotes", "", with("-p", "x", "y"), 2, []string{`"y"`, "quote"}},
		{"an unknown mode", "", with("-p", "x", "--mode", "plan"), 2, []string{"plan", "build"}},
		{"two sessions", "", with("-p", "x", "--session", "a", "--continue"), 2, []string{"exclude"}},
		{"an unknown session", "", with("-p", "x", "--session", "a"), 2, []string{"no such session"}},
		{"nothing to continue", "", with("-p", "x", "--continue"), 2, []string{"no session", "without --continue"}},
		{"an unknown connection", "", []string{"-p", "x", "--provider", "nope", "--model", "m"}, 2, []string{`"nope"`, "fake"}},
		{"an unknown folder", "", with("-p", "x", "--cwd", "nope"), 2, []string{"nope", "existing folder"}},
		{"a person was needed", `
			call ask_user {"question": "Which?"}
			end
			expect result contains "nobody"
			say I took the first.`, with("-p", "x"), 3, []string{"ask_user Which?", "nobody is connected"}},
		{"the provider refuses", `status 401 {"error":{"message":"bad key"}}`, with("-p", "x"), 4, []string{"Fake model", "401", "bad key"}},
		{"a call fails and the turn goes on", `
			call read_file {"path": "absent.txt"}
			end
			say It is not there.`, with("-p", "x"), 0, []string{"✗ read_file absent.txt"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			script, world := c.script, newWorld
			if script == "" {
				script, world = "say unused", partialWorld
			}
			w := world(t, script, nil)
			h := w.headless("", c.args...).end(c.code)
			wantContains(t, "stderr", h.stderr.String(), c.stderr...)
			if strings.Count(h.stderr.String(), "lakecode") > 2 || strings.Contains(h.stderr.String(), "..") {
				t.Errorf("stderr repeats itself: %s", &h.stderr)
			}
			if c.code == 2 {
				if entries, err := filepath.Glob(filepath.Join(w.home, "sessions", "*", "log")); err != nil || len(entries) > 0 {
					t.Errorf("a refused run leaves %v, %v", entries, err)
				}
			}
		})
	}
}

func TestRunFailsWhenItCannotBeSaved(t *testing.T) {
	w := partialWorld(t, "say Hello\ngate half\nsay and goodbye.", nil)
	h := w.headless("", with("-p", "x")...)
	w.model.Reached("half")
	logs, err := filepath.Glob(filepath.Join(w.home, "sessions", "*", "log"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("logs %v, %v", logs, err)
	}
	if err := os.Remove(logs[0]); err != nil {
		t.Fatal(err)
	}
	w.model.Release("half")
	h.end(1)
	wantContains(t, "stderr", h.stderr.String(), "cannot be written", "was removed", "not saved")
	wantContains(t, "stdout", h.stdout.String(), "Hello", "goodbye")
}

func TestRunNamesAnUnusableHome(t *testing.T) {
	w := bare(t, nil)
	for home, want := range map[string]string{"relative": "must be an absolute path", "/proc/none": "cannot be used"} {
		w.env[0] = "LAKECODE_HOME=" + home
		h := w.headless("", "-p", "x").end(2)
		wantContains(t, "stderr", h.stderr.String(), home, want, "LAKECODE_HOME")
		if strings.Contains(h.stderr.String(), "by hand") {
			t.Errorf("the wrong next step: %s", &h.stderr)
		}
	}
}

// covers CONV-1 partly
func TestSignalStopsRun(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			// Whoever runs the tests may ignore the signal (nohup), which a child
			// inherits; one that is caught here has its default there.
			caught := make(chan os.Signal, 1)
			signal.Notify(caught, sig)
			defer signal.Stop(caught)
			w := partialWorld(t, "say Half an answer\ngate half\nsay never", nil)
			h := w.headless("", with("-p", "x")...)
			h.printed("answer")
			if err := h.cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			h.end(130)
			if got := h.stdout.String(); got != "Half an answer\n" {
				t.Errorf("stdout %q", got)
			}
			w.conv = h.session()
			wantContains(t, "log", w.log(), "turnEnded", "stopped")
		})
	}
}

// A run in the background whose terminal goes away is not stopped (nohup).
func TestIgnoredHangupStaysIgnored(t *testing.T) {
	w := newWorld(t, "say One\ngate half\nsay two.", nil)
	h := &headless{w: w, cmd: exec.Command("sh", append([]string{"-c", `trap "" HUP; exec "$0" run "$@"`, binary}, with("-p", "x")...)...)}
	h.cmd.Dir, h.cmd.Env, h.cmd.Stdout, h.cmd.Stderr = w.root, w.env, &h.stdout, &h.stderr
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.model.Reached("half")
	if err := h.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	w.model.Release("half")
	h.end(0)
}

func TestJSONPrintsTheEventsOfTheProtocol(t *testing.T) {
	w := newWorld(t, `
		say Looking.
		call read_file {"path": "a.txt"}
		end
		say It says hello.`, map[string]string{"a.txt": "hello\n"})
	h := w.headless("", with("-p", "x", "--json")...).end(0)
	var kinds []string
	last := uint64(0)
	for l := range strings.Lines(h.stdout.String()) {
		var e event
		if err := json.Unmarshal([]byte(l), &e); err != nil || e.Kind == "" {
			t.Fatalf("line %q: %v", l, err)
		}
		if e.Seq <= last {
			t.Errorf("event %d follows %d", e.Seq, last)
		}
		last = e.Seq
		if len(kinds) == 0 || kinds[len(kinds)-1] != e.Kind {
			kinds = append(kinds, e.Kind)
		}
	}
	wantContains(t, "kinds", strings.Join(kinds, " "), "turnStarted", "messageDelta", "callProposed", "callStarted", "callEnded", "turnFinished")
	if h.stderr.String() != "" {
		t.Errorf("stderr %q", &h.stderr)
	}
}

// A reader that leaves neither ends nor hangs the run: what it was asked to do
// is done, and the exit code tells.
func TestReaderThatLeavesDoesNotEndTheRun(t *testing.T) {
	for _, extra := range [][]string{nil, {"--json"}} {
		w := newWorld(t, `
			say "one\ntwo\n"
			tokens 5000
			call write_file {"path": "late.txt", "content": "done\n"}
			end
			tokens 2000`, nil)
		h := &headless{w: w, cmd: exec.Command("bash", append(append([]string{"-c", `"$0" run "$@" | head -1; exit ${PIPESTATUS[0]}`, binary}, with("-p", "x")...), extra...)...)}
		h.cmd.Dir, h.cmd.Env, h.cmd.Stdout, h.cmd.Stderr = w.root, w.env, &h.stdout, &h.stderr
		if err := h.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		h.end(0)
		if n := strings.Count(h.stdout.String(), "\n"); n != 1 {
			t.Errorf("head printed %d lines", n)
		}
		if got := w.read("late.txt"); got != "done\n" {
			t.Errorf("late.txt is %q", got)
		}
	}
}

// Children have the signals' usual effects, whatever we do about our own pipes.
func TestChildrenDieOfABrokenPipe(t *testing.T) {
	w := newWorld(t, `
		call bash {"command": "./pipe", "description": "a script with a pipe"}
		end
		expect result contains "y\n141 0"
		say Fine.`, map[string]string{"pipe": "#!/bin/bash\nyes | head -1\necho ${PIPESTATUS[@]}\n"})
	if err := os.Chmod(w.path("pipe"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.headless("", with("-p", "x")...).end(0)
}
