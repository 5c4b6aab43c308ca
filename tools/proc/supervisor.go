package proc

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
)

const (
	// DefaultGrace is how long a child may take to end after SIGTERM when its
	// Spec does not say.
	DefaultGrace = 300 * time.Millisecond
	// drainDelay is how long output is read after the child has ended and what
	// it left behind has been killed.
	drainDelay = 500 * time.Millisecond
	// sweepLimit bounds the search for what a child left behind.
	sweepLimit = time.Second
)

// ErrClosed is returned by Start once the supervisor is closing.
var ErrClosed = errors.New("no process can be started: shutting down")

// Config is what a Supervisor needs.
type Config struct {
	// Run marks every process of this supervisor and is unique among all that
	// live on the machine. It holds no '/', ':' or line end.
	Run string
	// Reaper is the argv that runs [ReapMain] in another process, for instance
	// {"/proc/self/exe", "reap"}. Empty: none, and a SIGKILL of this process
	// leaves its children alive.
	Reaper []string
	// Env is the environment that children inherit, less what inherited drops.
	Env []string
	Log *zap.Logger
}

// Supervisor starts and owns child processes. Safe for concurrent use.
type Supervisor struct {
	cfg  Config
	env  []string
	mark string // of the process that runs us, with a trailing '/'; usually empty
	link *link
	work sync.WaitGroup // every goroutine of ours

	mu     sync.Mutex // guards the fields below; never held across a call that can block
	next   int
	live   map[*Child]struct{}
	born   uint64 // start time of the oldest child
	any    bool   // there was a child
	closed bool
}

// New makes a supervisor. Nothing is started before the first child.
func New(cfg Config) *Supervisor {
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	s := &Supervisor{cfg: cfg, env: inherited(cfg.Env), live: map[*Child]struct{}{}}
	if outer := lookup(cfg.Env, runVar); outer != "" {
		s.mark = outer + "/"
	}
	s.link = &link{argv: cfg.Reaper, run: cfg.Run, log: cfg.Log, work: &s.work}
	return s
}

// Start starts a child. It fails with [ErrClosed], with ctx's cause, or when the
// program cannot be executed. When ctx ends later, the child is stopped as by
// [Child.Stop].
func (s *Supervisor) Start(ctx context.Context, spec Spec) (*Child, error) {
	if len(spec.Argv) == 0 {
		return nil, errors.New("start a process: no program named")
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, ErrClosed
	}
	s.next++
	id := s.next
	s.work.Add(1)
	s.mu.Unlock()
	defer s.work.Done()

	// The reaper knows the run before the child exists, so there is no moment
	// at which our death could leave it behind.
	if err := s.link.ensure(); err != nil {
		return nil, fmt.Errorf("start the reaper: %w", err)
	}
	c, err := start(s, fmt.Sprintf("%s:%d", s.cfg.Run, id), spec)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.live[c] = struct{}{}
	if !s.any || c.born < s.born {
		s.any, s.born = true, c.born
	}
	late := s.closed
	s.mu.Unlock()
	s.work.Go(c.watch)
	s.work.Go(func() { c.mind(ctx) })
	if late {
		c.beginStop()
		return nil, ErrClosed
	}
	return c, nil
}

func (s *Supervisor) forget(c *Child) {
	s.mu.Lock()
	delete(s.live, c)
	s.mu.Unlock()
}

// Close refuses new children, stops all there are, kills whatever else bears
// the run's mark, ends the reaper and joins every goroutine. It returns ctx's
// cause when that takes longer than ctx allows; the work then goes on and the
// reaper finishes it after the end of the process. Safe to call again.
func (s *Supervisor) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	started, born := s.any, s.born
	all := make([]*Child, 0, len(s.live))
	for c := range s.live {
		all = append(all, c)
	}
	s.mu.Unlock()
	for _, c := range all {
		c.beginStop()
	}
	for _, c := range all {
		select {
		case <-c.done:
		case <-ctx.Done():
			return fmt.Errorf("stop child processes: %w", context.Cause(ctx))
		}
	}
	if started {
		sweep(target{run: s.cfg.Run + ":", born: born}, sweepLimit, ctx.Done())
	}
	s.link.close()
	joined := make(chan struct{})
	go func() { s.work.Wait(); close(joined) }()
	select {
	case <-joined:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop child processes: %w", context.Cause(ctx))
	}
}
