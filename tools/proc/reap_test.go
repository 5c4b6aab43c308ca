package proc_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lakecode/lakecode/tools/proc"
)

// A supervisor that runs inside a child of another one passes the outer mark on.
func TestMarksNest(t *testing.T) {
	outer := newSupervisor(t)
	dir := t.TempDir()
	c := start(t, outer, proc.Spec{Argv: []string{exe(t), "parent", dir}, Grace: -1})
	pidIn(t, filepath.Join(dir, "self"))
	pid := pidIn(t, filepath.Join(dir, "hold00"))
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("LAKECODE_RUN=TestMarksNest-%d:1/run%d:", os.Getpid(), c.Pid()); !bytes.Contains(env, []byte(want)) {
		t.Errorf("no %q in the environment of the innermost process", want)
	}
	var pids []int
	for i := range 3 {
		pids = append(pids, pidIn(t, filepath.Join(dir, fmt.Sprintf("hold0%d", i))))
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		wantDead(t, "a child of the child", pid)
	}
}

// covers ED-7 partly
// covers CONV-7 partly
func TestSIGKILLOfTheProgramLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(exe(t), "parent", dir)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // when the test fails before it does so itself
	pidIn(t, filepath.Join(dir, "self"))
	reaper := reaperOf(t, cmd.Process.Pid)
	var pids []int
	for i := range 3 {
		pids = append(pids, pidIn(t, filepath.Join(dir, fmt.Sprintf("hold0%d", i))))
	}
	// The reaper does not listen to what a terminal or a session manager sends.
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		if err := syscall.Kill(reaper, sig); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	began := time.Now()
	for _, pid := range pids {
		wantDead(t, "a child", pid)
	}
	wantDead(t, "the reaper", reaper)
	if took := time.Since(began); took > 6*time.Second {
		t.Errorf("it took %v", took)
	}
}

// findReaper finds the reaper of a process by its command line.
func findReaper(parent int) (pid int, ok bool) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, f := range files {
		b, _ := os.ReadFile(f)
		_, rest, _ := strings.Cut(string(b), ") ")
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline"))
		var state string
		var ppid int
		fmt.Sscan(rest, &state, &ppid)
		if ppid == parent && state != "Z" && strings.HasSuffix(string(line), "\x00reap\x00") {
			fmt.Sscan(string(b), &pid)
			return pid, true
		}
	}
	return 0, false
}

func reaperOf(t *testing.T, parent int) (pid int) {
	t.Helper()
	await(t, "the reaper", func() (ok bool) {
		pid, ok = findReaper(parent)
		return ok
	})
	return pid
}

func TestADeadReaperIsReplaced(t *testing.T) {
	s := newSupervisor(t, exe(t), "reap")
	wait(t, start(t, s, proc.Spec{Argv: []string{"true"}}))
	first := reaperOf(t, os.Getpid())
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	wantDead(t, "the first reaper", first)
	await(t, "another reaper", func() bool {
		wait(t, start(t, s, proc.Spec{Argv: []string{"true"}}))
		pid, ok := findReaper(os.Getpid())
		return ok && pid != first
	})
}
