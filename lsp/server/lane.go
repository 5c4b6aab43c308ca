package server

import (
	"context"
	"runtime/debug"
	"sync"

	"go.uber.org/zap"

	"github.com/lakecode/lakecode/agent"
)

// maxLane is the number of commands that may wait for one conversation.
const maxLane = 256

// lane runs the commands of one conversation one after the other, in the order
// in which they were entered. A goroutine exists only while there is work.
type lane struct {
	spawn func(func()) bool
	log   *zap.Logger

	mu      sync.Mutex // guards all below
	queue   []*job
	running bool
}

type job struct {
	ctx  context.Context
	run  waiting
	done chan struct{} // closed once result and err are set
	res  any
	err  error
}

// enter takes a place in the order; it never blocks. It refuses with Busy when
// too many wait.
func (l *lane) enter(ctx context.Context, run waiting) (waiting, error) {
	j := &job{ctx: ctx, run: run, done: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) >= maxLane {
		return nil, agent.Errorf(agent.Busy, "Try again when some are answered.", "%d commands wait for this conversation already.", maxLane)
	}
	l.queue = append(l.queue, j)
	if !l.running {
		l.running = true
		if !l.spawn(l.drain) {
			return nil, errClosed
		}
	}
	return func(ctx context.Context) (any, error) {
		select {
		case <-j.done:
			return j.res, j.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}, nil
}

func (l *lane) drain() {
	for {
		l.mu.Lock()
		if len(l.queue) == 0 {
			l.running = false
			l.mu.Unlock()
			return
		}
		j := l.queue[0]
		l.queue = l.queue[1:]
		l.mu.Unlock()
		l.do(j)
	}
}

// do runs one job. A panic belongs to that job alone.
func (l *lane) do(j *job) {
	defer close(j.done)
	defer func() {
		if p := recover(); p != nil {
			l.log.Error("panic in a command", zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
			j.res, j.err = nil, internalError("a command")
		}
	}()
	if j.err = j.ctx.Err(); j.err == nil { // else it was cancelled before its turn
		j.res, j.err = j.run(j.ctx)
	}
}
