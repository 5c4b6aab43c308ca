package proc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lakecode/lakecode/tools/proc"
)

func start(t testing.TB, s *proc.Supervisor, spec proc.Spec) *proc.Child {
	t.Helper()
	c, err := s.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func wait(t testing.TB, c *proc.Child) proc.ExitState {
	t.Helper()
	select {
	case <-c.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("the child did not end within 20 s")
	}
	st, err := c.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// check runs a shell command to its end and compares how it ended.
func check(t *testing.T, command string, want proc.ExitState, output string) {
	t.Helper()
	s := newSupervisor(t)
	var out bytes.Buffer
	c := start(t, s, proc.Spec{Argv: []string{"sh", "-c", command}, Output: func(p []byte) { out.Write(p) }})
	got := wait(t, c)
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(proc.ExitState{}, "Took")); d != "" {
		t.Errorf("%s (-want +got):\n%s", command, d)
	}
	if d := cmp.Diff(output, out.String()); d != "" {
		t.Errorf("output of %s (-want +got):\n%s", command, d)
	}
}

func TestEndOfAChildIsTold(t *testing.T) {
	check(t, "echo out; echo err >&2; echo out", proc.ExitState{}, "out\nerr\nout\n")
	check(t, "exit 3", proc.ExitState{Code: 3}, "")
	check(t, "kill -SEGV $$", proc.ExitState{Code: -1, Signal: "SIGSEGV"}, "")
	check(t, "cat", proc.ExitState{}, "") // the null device as input
}

func TestAProgramThatIsNotThereIsAnError(t *testing.T) {
	s := newSupervisor(t)
	_, err := s.Start(t.Context(), proc.Spec{Argv: []string{"no-such-program"}})
	if !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if _, err := s.Start(t.Context(), proc.Spec{}); err == nil {
		t.Error("an empty argv was accepted")
	}
	if _, err := s.Start(t.Context(), proc.Spec{Argv: []string{"true"}, Dir: "/no/such/folder"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestInputAndSeparateOutputs(t *testing.T) {
	s := newSupervisor(t)
	var out, errs strings.Builder
	c := start(t, s, proc.Spec{Argv: []string{"sh", "-c", "cat; echo e >&2"}, Input: true, Stdout: &out, Stderr: &errs})
	if _, err := io.WriteString(c.Input, "in"); err != nil {
		t.Fatal(err)
	}
	if err := c.Input.Close(); err != nil {
		t.Fatal(err)
	}
	wait(t, c)
	if out.String() != "in" || errs.String() != "e\n" {
		t.Errorf("got %q and %q", out.String(), errs.String())
	}
}

func TestWhatAChildInherits(t *testing.T) {
	s := proc.New(proc.Config{Run: "r", Env: []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/h", "LAKECODE_HOME=/secret", "LAKECODE_KEY=canary", "BASH_ENV=/x", "ENV=/x",
		"BASH_FUNC_ls%%=() { echo; }", "PROMPT_COMMAND=x", "SHELLOPTS=xtrace", "PS4=$(x)", "A=1", "B=1", "broken",
	}})
	defer s.Close(t.Context())
	var out strings.Builder
	dir := t.TempDir()
	wait(t, start(t, s, proc.Spec{Argv: []string{"env"}, Dir: dir, Env: []string{"B=2", "LAKECODE_RUN=forged"}, Stdout: &out}))
	got := map[string]string{}
	for line := range strings.Lines(out.String()) {
		k, v, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		got[k] = v
	}
	want := map[string]string{"PATH": os.Getenv("PATH"), "HOME": "/h", "A": "1", "B": "2", "PWD": dir, "LAKECODE_RUN": "r:1"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestStopEndsAChildThatIgnoresSIGTERM(t *testing.T) {
	s := newSupervisor(t)
	file := filepath.Join(t.TempDir(), "pid")
	c := start(t, s, proc.Spec{Argv: append([]string{"/proc/self/exe"}, "hold", file), Grace: 50 * time.Millisecond})
	pid := pidIn(t, file)
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if alive(pid) {
		t.Error("it is alive after Stop")
	}
	want := proc.ExitState{Code: -1, Signal: "SIGKILL", Stopped: true}
	if d := cmp.Diff(want, wait(t, c), cmpopts.IgnoreFields(proc.ExitState{}, "Took")); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Errorf("second Stop: %v", err)
	}
}

func TestSIGTERMComesFirst(t *testing.T) {
	s := newSupervisor(t)
	ready := make(chan struct{}, 1)
	var out strings.Builder
	c := start(t, s, proc.Spec{Argv: []string{"sh", "-c", "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.02; done"}, Grace: 10 * time.Second, Output: func(p []byte) {
		if out.Len() == 0 {
			ready <- struct{}{}
		}
		out.Write(p)
	}})
	<-ready
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if st := wait(t, c); st.Code != 0 || !st.Stopped || !strings.HasSuffix(out.String(), "bye\n") {
		t.Errorf("got %+v, output %q", st, out.String())
	}
}

func TestTheEndOfTheContextStops(t *testing.T) {
	s := newSupervisor(t)
	ctx, cancel := context.WithCancel(t.Context())
	c, err := s.Start(ctx, proc.Spec{Argv: []string{"sleep", "600"}})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if st := wait(t, c); !st.Stopped || st.Signal != "SIGTERM" {
		t.Errorf("got %+v", st)
	}
}

// A process that has left the group and whose parent is gone still bears the
// mark; one without the mark still has its session.
//
// covers ED-7 partly
func TestNothingOutlivesAStop(t *testing.T) {
	for name, argv := range map[string][]string{
		"setsid and orphaned": {"daemon"}, "environment wiped": {"daemon", "wipe"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSupervisor(t)
			dir := t.TempDir()
			file := filepath.Join(dir, "pid")
			args := strings.Join(append([]string{argv[0], file}, argv[1:]...), " ")
			c := start(t, s, proc.Spec{Argv: []string{"sh", "-c", fmt.Sprintf("%s %s; exec %s hold %s", exe(t), args, exe(t), filepath.Join(dir, "second"))}, Grace: -1})
			grandchild, child := pidIn(t, file), pidIn(t, filepath.Join(dir, "second"))
			if !alive(grandchild) {
				t.Fatal("the grandchild did not live to be killed")
			}
			if err := c.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			if alive(child) || alive(grandchild) {
				t.Errorf("alive after Stop: child %t, grandchild %t", alive(child), alive(grandchild))
			}
		})
	}
}

// The daemon holds the output open too, which must not hold up the end.
func TestWhatANormalEndLeavesIsKilledAndNamed(t *testing.T) {
	s := newSupervisor(t)
	file := filepath.Join(t.TempDir(), "pid")
	var out strings.Builder
	c := start(t, s, proc.Spec{Argv: append([]string{"/proc/self/exe"}, "daemon", file), Output: func(p []byte) { out.Write(p) }})
	st := wait(t, c)
	if alive(pidIn(t, file)) {
		t.Error("the daemon is alive")
	}
	if st.Code != 0 || st.Stopped || st.Cut || len(st.Left) != 1 {
		t.Errorf("got %+v", st)
	}
}

func TestAChildOfAnotherMarkIsSpared(t *testing.T) {
	s := newSupervisor(t)
	file := filepath.Join(t.TempDir(), "pid")
	other := start(t, s, proc.Spec{Argv: append([]string{"/proc/self/exe"}, "hold", file)})
	pid := pidIn(t, file)
	for range 12 { // marks 2 to 13: one that begins with another's text is not it
		wait(t, start(t, s, proc.Spec{Argv: []string{"true"}}))
	}
	if err := start(t, s, proc.Spec{Argv: []string{"sleep", "600"}}).Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !alive(pid) {
		t.Error("stopping one child ended another")
	}
	if err := other.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestNoReaperIsAnError(t *testing.T) {
	s := newSupervisor(t, "/no/such/reaper")
	if _, err := s.Start(t.Context(), proc.Spec{Argv: []string{"true"}}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestCloseEndsEverything(t *testing.T) {
	s := newSupervisor(t, exe(t), "reap")
	dir := t.TempDir()
	var pids []int
	for i := range 4 {
		file := filepath.Join(dir, fmt.Sprint(i))
		start(t, s, proc.Spec{Argv: append([]string{"/proc/self/exe"}, "hold", file), Grace: 20 * time.Millisecond})
		pids = append(pids, pidIn(t, file))
	}
	reaper := reaperOf(t, os.Getpid())
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, pid := range append(pids, reaper) {
		if alive(pid) {
			t.Errorf("process %d is alive after Close", pid)
		}
	}
	if _, err := s.Start(t.Context(), proc.Spec{Argv: []string{"true"}}); !errors.Is(err, proc.ErrClosed) {
		t.Errorf("start after close: %v", err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func TestManyChildrenLeaveNoZombie(t *testing.T) {
	s := newSupervisor(t, exe(t), "reap")
	for range 20 {
		var batch []*proc.Child
		for i := range 10 {
			argv := []string{"true"}
			if i%2 == 0 {
				argv = []string{"sleep", "600"}
			}
			batch = append(batch, start(t, s, proc.Spec{Argv: argv, Grace: -1}))
		}
		for i, c := range batch {
			if i%2 == 0 {
				if err := c.Stop(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			wait(t, c)
			if _, err := os.Stat(fmt.Sprintf("/proc/%d", c.Pid())); err == nil {
				t.Fatalf("process %d is still in the table", c.Pid())
			}
		}
	}
}

func TestAFloodOfOutputTakesNoMemory(t *testing.T) {
	s := newSupervisor(t)
	var total atomic.Int64
	c := start(t, s, proc.Spec{Argv: []string{"head", "-c", "200000000", "/dev/zero"}, Output: func(p []byte) { total.Add(int64(len(p))) }})
	wait(t, c)
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if total.Load() != 200_000_000 || m.HeapAlloc > 32<<20 {
		t.Errorf("got %d bytes with %d bytes of heap", total.Load(), m.HeapAlloc)
	}
}

func exe(t *testing.T) string {
	t.Helper()
	p, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func BenchmarkStartToEnd(b *testing.B) {
	s := newSupervisor(b)
	for b.Loop() {
		wait(b, start(b, s, proc.Spec{Argv: []string{"/bin/true"}}))
	}
}

// Starts that race with Close either fail or are ended by it.
func TestAStartBesideCloseLeavesNothing(t *testing.T) {
	for range 20 {
		s := newSupervisor(t, exe(t), "reap")
		var started []*proc.Child
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				c, err := s.Start(t.Context(), proc.Spec{Argv: []string{"sleep", "600"}, Grace: -1})
				if err != nil {
					if !errors.Is(err, proc.ErrClosed) {
						t.Error(err)
					}
					return
				}
				started = append(started, c)
			}
		}()
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-done
		for _, c := range started {
			if alive(c.Pid()) {
				t.Errorf("process %d is alive after Close", c.Pid())
			}
		}
	}
}
