package tools

import (
	"context"

	"golang.org/x/sync/semaphore"
)

// laneWidth is how many calls of the Read tier overlap.
const laneWidth = 8

// lane admits read calls together and every other call alone, first come first
// served. A nested call enters the fresh lane of the call that made it, never
// its parent's, so an exclusive call can make exclusive calls without deadlock
// and two nested ones still exclude each other.
type lane struct{ sem *semaphore.Weighted }

func newLane() *lane { return &lane{semaphore.NewWeighted(laneWidth)} }

func (l *lane) enter(ctx context.Context, s Spec) (release func(), err error) {
	n := int64(1)
	if s.Tier != Read || s.Exclusive {
		n = laneWidth
	}
	if err := l.sem.Acquire(ctx, n); err != nil {
		return nil, err
	}
	return func() { l.sem.Release(n) }, nil
}

type laneKey struct{}

func withLane(ctx context.Context, l *lane) context.Context {
	return context.WithValue(ctx, laneKey{}, l)
}

func laneOf(ctx context.Context, def *lane) *lane {
	if l, ok := ctx.Value(laneKey{}).(*lane); ok {
		return l
	}
	return def
}
