package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Spec says what to start. Argv[0] is a path, or a name looked up in the
// program's own PATH.
type Spec struct {
	Argv []string
	Dir  string   // absolute; becomes PWD too
	Env  []string // added to what is inherited, and wins over it
	// Input makes Child.Input, a pipe to stdin. Without it stdin is the null device.
	Input bool
	// Output receives stdout and stderr in the order written. It is called from
	// one goroutine, must be fast and must not keep p. Without it Stdout and
	// Stderr are used; nil there drops the output.
	Output         func(p []byte)
	Stdout, Stderr io.Writer
	// Grace is how long the child may take to end after SIGTERM before it is
	// killed. Zero: DefaultGrace. Negative: it is killed at once.
	Grace time.Duration
}

// ExitState is how a child ended.
type ExitState struct {
	Code   int    // exit code, -1 when a signal ended it
	Signal string // name of that signal, as SIGKILL; empty without one
	// Stopped: Stop, Close or the end of the context ended it.
	Stopped bool
	// Left names what the child had left running, which was killed; at most 16.
	Left []string
	// Cut: somebody held the output open after the end and it was not read on.
	Cut  bool
	Took time.Duration
}

// maxLeft bounds ExitState.Left.
const maxLeft = 16

// Child is one running or ended process. Safe for concurrent use.
type Child struct {
	// Input writes to stdin when the Spec asked for it, else nil. Close it to
	// end the child's input; it is closed when the child has ended.
	Input io.WriteCloser

	sup   *Supervisor
	cmd   *exec.Cmd
	id    string // the mark
	born  uint64 // start time in clock ticks since boot; 0 where unknown
	began time.Time
	grace time.Duration

	stop    sync.Once
	asked   chan struct{} // closed by the first request to stop
	stopped atomic.Bool
	done    chan struct{} // closed when state is set: ended, swept, output read
	state   ExitState
	err     error

	mu     sync.Mutex // guards reaped
	reaped bool       // the pid may stand for another process from here on
}

// sink is a pointer when used, so that os/exec sees equal writers and makes one
// pipe and one goroutine for both streams.
type sink struct{ f func(p []byte) }

func (s *sink) Write(p []byte) (int, error) { s.f(p); return len(p), nil }

func start(s *Supervisor, id string, spec Spec) (*Child, error) {
	cmd := exec.Command(spec.Argv[0], spec.Argv[1:]...)
	cmd.Dir = spec.Dir
	cmd.Env = slices.Concat(s.env, spec.Env, []string{runVar + "=" + s.mark + id})
	if spec.Dir != "" {
		cmd.Env = append(cmd.Env, "PWD="+spec.Dir)
	}
	cmd.Stdout, cmd.Stderr = spec.Stdout, spec.Stderr
	if spec.Output != nil {
		both := &sink{spec.Output}
		cmd.Stdout, cmd.Stderr = both, both
	}
	// An own session: no terminal of the person's to ask for a password, and a
	// group to signal.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = drainDelay
	c := &Child{sup: s, cmd: cmd, id: id, began: time.Now(), grace: spec.Grace, asked: make(chan struct{}), done: make(chan struct{})}
	if c.grace == 0 {
		c.grace = DefaultGrace
	}
	if spec.Input {
		in, err := cmd.StdinPipe()
		if err != nil {
			return nil, fmt.Errorf("start %s: %w", spec.Argv[0], err)
		}
		c.Input = in
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Argv[0], err)
	}
	c.born = bornAt(cmd.Process.Pid)
	s.link.add(cmd.Process.Pid, c.born)
	return c, nil
}

// Pid is the process id, which is its group's id too.
func (c *Child) Pid() int { return c.cmd.Process.Pid }

// Done is closed when the child has ended, what it left is gone and its output
// has been read.
func (c *Child) Done() <-chan struct{} { return c.done }

// Wait blocks until Done. The error is one of the plumbing, as a Stdout that
// could not be written; an exit code or a signal is no error. It may be called
// many times.
func (c *Child) Wait() (ExitState, error) {
	<-c.done
	return c.state, c.err
}

// Stop ends the child and everything it started: SIGTERM to its group, after
// the grace SIGKILL to all. It returns when all is gone, or ctx's cause before;
// the stopping goes on then. No error when the child had ended already.
func (c *Child) Stop(ctx context.Context) error {
	c.beginStop()
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop process %d: %w", c.Pid(), context.Cause(ctx))
	}
}

func (c *Child) target() target {
	return target{mark: c.id, group: c.Pid(), born: c.born}
}

// beginStop asks for the end and does not wait.
func (c *Child) beginStop() { c.stop.Do(func() { close(c.asked) }) }

// mind ends the child once somebody asks for it or ctx ends.
func (c *Child) mind(ctx context.Context) {
	select {
	case <-c.asked:
	case <-ctx.Done():
	case <-c.done:
		return
	}
	c.stopped.Store(true)
	c.end()
}

// signalGroup reaches whoever is still in the group of the child.
func (c *Child) signalGroup(sig syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.reaped {
		_ = syscall.Kill(-c.Pid(), sig) // fails only when nobody is left
	}
}

// end runs from the first request to stop until the child is gone.
func (c *Child) end() {
	if c.grace > 0 {
		c.signalGroup(syscall.SIGTERM)
		t := time.NewTimer(c.grace)
		defer t.Stop()
		select {
		case <-c.done:
			return
		case <-t.C:
		}
	}
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		c.signalGroup(syscall.SIGKILL)
		sweepOnce(c.target())
		t := time.NewTimer(pause)
		select {
		case <-c.done:
			t.Stop()
			return
		case <-t.C:
		}
	}
}

// watch runs until the child has ended and what it left is gone.
func (c *Child) watch() {
	left, took, err := c.settle()
	c.sup.link.del(c.Pid())
	c.state = exitState(c.cmd, took)
	c.state.Stopped = c.stopped.Load()
	c.state.Left = left[:min(len(left), maxLeft)]
	var exit *exec.ExitError
	switch {
	case errors.Is(err, exec.ErrWaitDelay):
		c.state.Cut = true
	case err != nil && !errors.As(err, &exit):
		c.err = fmt.Errorf("run %s: %w", c.cmd.Path, err)
	}
	c.sup.forget(c)
	close(c.done)
}

// setReaped ends the use of the group's number by signalGroup.
func (c *Child) setReaped() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reaped = true
}

func exitState(cmd *exec.Cmd, took time.Duration) ExitState {
	st := ExitState{Code: cmd.ProcessState.ExitCode(), Took: took}
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		st.Signal = unix.SignalName(ws.Signal())
	}
	return st
}
