package server

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/lakecode/lakecode/agent"
)

// fakeHost stands in for the agent where only the protocol is under test.
type fakeHost struct {
	mu       sync.Mutex // guards all below
	convs    map[string]*fakeConv
	sessions func(ctx context.Context, root string) ([]agent.SessionInfo, error)
	models   func(ctx context.Context) (agent.Catalog, error)
	roots    []string // of Create
}

func newFakeHost() *fakeHost { return &fakeHost{convs: map[string]*fakeConv{}} }

func (h *fakeHost) Create(_ context.Context, root string) (agent.Conversation, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.roots = append(h.roots, root)
	id := "s" + strconv.Itoa(len(h.convs)+1)
	c := newFakeConv(id, root)
	h.convs[id] = c
	return c, nil
}

func (h *fakeHost) Open(_ context.Context, id string) (agent.Conversation, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c, ok := h.convs[id]; ok {
		return c, nil
	}
	return nil, agent.Errorf(agent.NotFound, "List the sessions.", "There is no session %q.", id)
}

func (h *fakeHost) Sessions(ctx context.Context, root string) ([]agent.SessionInfo, error) {
	h.mu.Lock()
	answer := h.sessions
	h.mu.Unlock()
	if answer == nil {
		return nil, nil
	}
	return answer(ctx, root)
}

func (h *fakeHost) Models(ctx context.Context) (agent.Catalog, error) {
	h.mu.Lock()
	answer := h.models
	h.mu.Unlock()
	if answer == nil {
		return agent.Catalog{}, nil
	}
	return answer(ctx)
}

func (h *fakeHost) Close(context.Context) error { return nil }

// set changes what the host answers.
func (h *fakeHost) set(change func(h *fakeHost)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(h)
}

// last returns the number of the last event.
func (c *fakeConv) last() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seq
}

// conv returns the conversation that the first create made.
func (h *fakeHost) conv(id string) *fakeConv {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.convs[id]
}

// fakeConv keeps its events in a list; subscribers may fall maxLag behind.
type fakeConv struct {
	do func(ctx context.Context, c agent.Command) (agent.Receipt, error)

	mu      sync.Mutex  // guards all below
	state   agent.State // its Seq is that of the last StateChanged
	seq     uint64      // last event
	events  []agent.Event
	kept    uint64 // events up to this number are gone
	maxLag  int    // 0: no limit
	changed chan struct{}
	closed  bool
	humans  int
	done    []agent.Command
}

func newFakeConv(id, root string) *fakeConv {
	return &fakeConv{
		state:   agent.State{Session: id, Root: root, Epoch: "epoch-1", Phase: agent.Idle, Mode: agent.Build},
		changed: make(chan struct{}),
	}
}

func (c *fakeConv) Do(ctx context.Context, cmd agent.Command) (agent.Receipt, error) {
	c.mu.Lock()
	c.done = append(c.done, cmd)
	seq := c.seq
	c.mu.Unlock()
	if c.do != nil {
		return c.do(ctx, cmd)
	}
	return agent.Receipt{Seq: seq}, nil
}

func (c *fakeConv) commands() []agent.Command {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.done)
}

func (c *fakeConv) State() agent.State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

func (c *fakeConv) Snapshot(_ context.Context, before string, limit int) (agent.Transcript, agent.State, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	state := c.state
	state.Seq = c.seq
	return agent.Transcript{
		Turns: []agent.TurnView{{ID: "t1", Text: before + "/" + strconv.Itoa(limit), Mode: agent.Build, How: "completed"}}, More: true,
	}, state, nil
}

func (c *fakeConv) Attach() func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.humans++
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.humans--
	})
}

func (c *fakeConv) Close(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.wake()
	return nil
}

// publish adds events. A StateChanged gets its number.
func (c *fakeConv) publish(facts ...agent.Fact) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range facts {
		c.seq++
		if s, ok := f.(agent.StateChanged); ok {
			id, root := c.state.Session, c.state.Root
			c.state = s.State
			c.state.Seq, c.state.Session, c.state.Root, c.state.Epoch = c.seq, id, root, "epoch-1"
			f = agent.StateChanged{State: c.state}
		}
		c.events = append(c.events, agent.Event{Seq: c.seq, Request: "t1", Time: time.Now(), Fact: f})
	}
	c.wake()
}

func (c *fakeConv) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// forget drops the events up to a number.
func (c *fakeConv) forget(seq uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = seq
}

func (c *fakeConv) Subscribe(after uint64) (agent.Subscription, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, agent.ErrClosed
	}
	if after < c.kept || after > c.seq {
		return nil, agent.ErrLagged
	}
	return &fakeSub{c: c, next: after}, nil
}

type fakeSub struct {
	c    *fakeConv
	next uint64 // number of the event before the next one
}

func (s *fakeSub) Next(ctx context.Context) (agent.Event, error) {
	for {
		s.c.mu.Lock()
		behind, changed, closed := s.c.seq-s.next, s.c.changed, s.c.closed
		if s.c.maxLag > 0 && behind > uint64(s.c.maxLag) {
			s.next = s.c.seq
			s.c.mu.Unlock()
			return agent.Event{}, agent.ErrLagged
		}
		if behind > 0 {
			e := s.c.events[s.next]
			s.next++
			s.c.mu.Unlock()
			return e, nil
		}
		s.c.mu.Unlock()
		if closed {
			return agent.Event{}, agent.ErrClosed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return agent.Event{}, ctx.Err()
		}
	}
}

func (s *fakeSub) Close() {}
