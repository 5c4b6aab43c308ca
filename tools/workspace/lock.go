package workspace

import (
	"context"
	"slices"
	"sync"
)

// Locks keeps two conversations of a process from writing one file at the same
// time. The zero value is ready; safe for concurrent use.
type Locks struct {
	mu   sync.Mutex // guards held; never held while waiting
	held map[string]*turnstile
}

type turnstile struct {
	free  chan struct{} // holds one token while nobody has the lock
	users int           // holder and waiters
}

// take locks paths, which may repeat, and returns how to let them go. It waits
// for other holders until ctx ends. Sorting makes a deadlock impossible.
func (l *Locks) take(ctx context.Context, paths []string) (release func(), err error) {
	paths = slices.Compact(slices.Sorted(slices.Values(paths)))
	var have []string
	release = func() {
		for _, p := range have {
			l.leave(p, true)
		}
	}
	for _, p := range paths {
		t := l.join(p)
		select {
		case <-t.free:
			have = append(have, p)
		case <-ctx.Done():
			l.leave(p, false)
			release()
			return nil, context.Cause(ctx)
		}
	}
	return release, nil
}

func (l *Locks) join(path string) *turnstile {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = map[string]*turnstile{}
	}
	t := l.held[path]
	if t == nil {
		t = &turnstile{free: make(chan struct{}, 1)}
		t.free <- struct{}{}
		l.held[path] = t
	}
	t.users++
	return t
}

func (l *Locks) leave(path string, held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.held[path]
	if held {
		t.free <- struct{}{}
	}
	if t.users--; t.users == 0 {
		delete(l.held, path)
	}
}
