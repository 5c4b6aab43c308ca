//go:build !windows

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/lakecode/lakecode/tools/proc"
)

// strayEnv makes this test binary a process whose standard output is claimed.
const strayEnv = "LAKECODE_TEST_STRAY"

func TestMain(m *testing.M) {
	if os.Getenv(strayEnv) != "" {
		os.Exit(stray())
	}
	goleak.VerifyTestMain(m)
}

// stray prints by every way there is, and one frame to the protocol.
func stray() int {
	stdout := os.Stdout // as a package that keeps its own
	out, err := claimStdout()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("stray 1")
	fmt.Fprintln(stdout, "stray 2")
	_, _ = syscall.Write(1, []byte("stray 3\n")) // as a C library
	child := exec.Command("/bin/echo", "stray 4")
	child.Stdout = os.Stdout
	if err := child.Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if _, err := out.WriteString("frame"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func TestStrayPrintsDoNotReachTheProtocol(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), strayEnv+"=1")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	if string(out) != "frame" {
		t.Errorf("the protocol got %q", out)
	}
	if got := stderr.String(); got != "stray 1\nstray 2\nstray 3\nstray 4\n" {
		t.Errorf("standard error got %q", got)
	}
}

// The first signal asks the turn to stop; the second leaves, whatever hangs.
func TestSecondSignalLeaves(t *testing.T) {
	asked, left, end := interrupts(t.Context())
	defer end()
	kill := func() {
		t.Helper()
		if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
	}
	kill()
	wait(t, asked)
	if left.Err() != nil {
		t.Error("the first signal leaves already")
	}
	kill()
	wait(t, left)
}

func wait(t *testing.T, ctx context.Context) {
	t.Helper()
	select {
	case <-ctx.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("a signal had no effect")
	}
}

func TestFlagsOfRun(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	f, err := parseRun([]string{"-p", "x", "--cwd", "sub/.."})
	if err != nil || f.cwd != dir {
		t.Errorf("cwd %q, %v", f.cwd, err)
	}
	if f, err = parseRun([]string{"-p", "x"}); err != nil || f.cwd != dir {
		t.Errorf("cwd %q, %v", f.cwd, err)
	}
	if _, err := parseRun([]string{"-p", strings.Repeat("x", maxPrompt)}); err == nil || !strings.Contains(err.Error(), "file") {
		t.Errorf("a long prompt: %v", err)
	}
}

func TestLogGoesOnWithoutItsFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"", file, filepath.Join(file, "below")} {
		var stderr locked
		log, closeLog := newLogger(dir, &stderr)
		log.Info("quiet")
		log.Warn("loud", zap.String("field", "value"))
		closeLog()
		closeLog()
		if got := stderr.String(); !strings.Contains(got, "loud") || strings.Contains(got, "quiet") {
			t.Errorf("folder %q: standard error got %q", dir, got)
		}
	}
}

func TestOldLogsAreRemoved(t *testing.T) {
	dir := t.TempDir()
	for i := range 2 * keepLogs {
		name := fmt.Sprintf("lakecode-20260101T0000%02d-1.log", i)
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	log, closeLog := newLogger(dir, io.Discard)
	log.Info("here")
	closeLog()
	left, err := filepath.Glob(filepath.Join(dir, "lakecode-*.log"))
	if err != nil || len(left) != keepLogs {
		t.Errorf("%d logs are left, %v", len(left), err)
	}
	newest, err := os.ReadFile(left[len(left)-1])
	if err != nil || !strings.Contains(string(newest), `"msg":"here"`) {
		t.Errorf("the newest log is %q, %v", newest, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "notes.txt")); err != nil {
		t.Error(err)
	}
}

// A standard error that nobody reads costs lines, not time.
func TestStuckStandardErrorHoldsNobodyUp(t *testing.T) {
	r, w := io.Pipe() // a write waits for its reader
	log, closeLog := newLogger("", w)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 4 * stderrQueue {
			log.Warn("line")
		}
		closeLog()
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("logging waits for standard error")
	}
	_ = r.CloseWithError(errors.New("gone")) // lets the writer end
}

type locked struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestCaptureIsBounded(t *testing.T) {
	h := &host{proc: proc.New(proc.Config{Run: runMark(), Env: os.Environ(), Log: zap.NewNop()})}
	defer func() {
		if err := h.proc.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	out, err := h.captureWithin(t.Context(), 100*time.Millisecond, []string{"sh", "-c", "echo some; exec sleep 600"}, t.TempDir())
	if err == nil || err.Error() != "git did not end within 100ms" {
		t.Errorf("%q, %v", out, err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stopped")
	time.AfterFunc(50*time.Millisecond, func() { cancel(stop) })
	if _, err := h.captureWithin(ctx, time.Hour, []string{"sleep", "600"}, t.TempDir()); !errors.Is(err, stop) {
		t.Errorf("%v", err)
	}
	if out, err := h.captureWithin(t.Context(), time.Hour, []string{"echo", "some"}, t.TempDir()); err != nil || string(out) != "some\n" {
		t.Errorf("%q, %v", out, err)
	}
}
