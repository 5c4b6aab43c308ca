package proc_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lakecode/lakecode/tools/proc"
)

// TestMain also plays the other processes of these tests.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "reap":
			os.Exit(proc.ReapMain(os.Stdin))
		case "hold": // writes its pid and stays, whatever it is asked
			signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
			note(os.Args[2], os.Getpid())
			select {}
		case "daemon": // leaves a holder behind in a session of its own
			leave(os.Args[2], os.Args[3:]...)
			os.Exit(0)
		case "parent": // starts children through a supervisor and waits for its death
			parent(os.Args[2])
		}
	}
	goleak.VerifyTestMain(m)
}

// note writes a pid so that a reader sees all of it or nothing.
func note(file string, pid int) {
	tmp := file + ".new"
	if err := os.WriteFile(tmp, []byte(strconv.Itoa(pid)), 0o600); err != nil {
		panic(err)
	}
	if err := os.Rename(tmp, file); err != nil {
		panic(err)
	}
}

// leave starts a holder in its own session, with the output of this process,
// and returns when it runs. "wipe" takes its environment away.
func leave(file string, how ...string) {
	cmd := exec.Command("/proc/self/exe", "hold", file)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if len(how) > 0 && how[0] == "wipe" {
		cmd.Env = []string{"A=1"}
		cmd.SysProcAttr = nil
	}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if _, err := os.Stat(file); err == nil {
			return
		}
	}
	panic("the holder did not start")
}

// parent starts children through a supervisor with a reaper and waits for its
// death.
func parent(dir string) {
	s := proc.New(proc.Config{Run: "run" + strconv.Itoa(os.Getpid()), Reaper: []string{"/proc/self/exe", "reap"}, Env: os.Environ()})
	for i := range 3 {
		argv := []string{"/proc/self/exe", "hold", filepath.Join(dir, fmt.Sprintf("hold0%d", i))}
		if i == 2 { // an orphan in a session of its own
			argv = []string{"sh", "-c", fmt.Sprintf("%s daemon %s; exec sleep 600", os.Args[0], argv[2])}
		}
		if _, err := s.Start(context.Background(), proc.Spec{Argv: argv, Dir: dir}); err != nil {
			panic(err)
		}
	}
	note(filepath.Join(dir, "self"), os.Getpid())
	select {}
}

// pidIn waits for a pid file.
func pidIn(t *testing.T, file string) int {
	t.Helper()
	var pid int
	await(t, "a pid in "+file, func() bool {
		b, err := os.ReadFile(file)
		if err != nil {
			return false
		}
		pid, err = strconv.Atoi(string(b))
		return err == nil
	})
	spare(t, pid)
	return pid
}

// spare the machine what a failed test leaves.
func spare(t *testing.T, pid int) {
	t.Cleanup(func() {
		if alive(pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
}

// alive looks past the supervisor: a zombie is dead.
func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return rest != "" && rest[0] != 'Z' && rest[0] != 'X'
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited 10 s for %s", what)
		}
	}
}

func wantDead(t *testing.T, what string, pid int) {
	t.Helper()
	await(t, fmt.Sprintf("the end of %s, process %d", what, pid), func() bool { return !alive(pid) })
}

// newSupervisor returns a supervisor that is closed, and found empty, at the
// end of the test.
func newSupervisor(t testing.TB, reaper ...string) *proc.Supervisor {
	t.Helper()
	run := fmt.Sprintf("%s-%d", strings.Map(func(r rune) rune {
		if r == '/' || r == ':' {
			return '_'
		}
		return r
	}, t.Name()), os.Getpid())
	s := proc.New(proc.Config{Run: run, Reaper: reaper, Env: os.Environ()})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}
