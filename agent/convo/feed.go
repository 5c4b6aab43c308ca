package convo

import (
	"context"
	"sync"

	"github.com/lakecode/lakecode/agent"
)

const (
	// ringEvents and ringBytes bound the events kept for a reader that comes back.
	ringEvents = 8192
	ringBytes  = 4 << 20
	// lagBytes is how much may wait for a subscriber before another event comes.
	// That one event may be larger still: it is no fault of a reader that keeps up.
	lagBytes = 8 << 20
	// eventCost is what an event costs beside its text, in bytes.
	eventCost = 128
)

// feed keeps the last events and hands each subscriber its own queue. It never
// waits for a reader. Safe for concurrent use.
type feed struct {
	mu     sync.Mutex // guards all below; never held across a call out
	ring   []agent.Event
	bytes  int
	last   uint64
	subs   map[*subscription]struct{}
	closed bool
}

func newFeed() *feed { return &feed{subs: map[*subscription]struct{}{}} }

// publish adds an event to the ring and to every queue.
func (f *feed) publish(e agent.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = e.Seq
	// Of a call that is being written only the newest length counts; a long one
	// would push everything else out.
	if n := len(f.ring) - 1; n >= 0 && writes(e) && writes(f.ring[n]) {
		if m, ok := merge(f.ring[n], e); ok {
			f.bytes -= cost(f.ring[n])
			f.ring = f.ring[:n]
			e = m
		}
	}
	f.ring, f.bytes = append(f.ring, e), f.bytes+cost(e)
	for len(f.ring) > ringEvents || f.bytes > ringBytes && len(f.ring) > 1 {
		f.bytes -= cost(f.ring[0])
		f.ring[0] = agent.Event{}
		f.ring = f.ring[1:]
	}
	for s := range f.subs {
		s.put(e)
	}
}

func writes(e agent.Event) bool {
	_, ok := e.Fact.(agent.CallWriting)
	return ok
}

// subscribe starts a queue with the events after the given number.
func (f *feed) subscribe(after uint64) (*subscription, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	first := f.last + 1
	if len(f.ring) > 0 {
		first = f.ring[0].Seq
	}
	if after > f.last || after+1 < first {
		return nil, agent.ErrLagged
	}
	s := &subscription{feed: f, wake: make(chan struct{}, 1)}
	for _, e := range f.ring {
		if e.Seq > after {
			s.put(e)
		}
	}
	if f.closed {
		s.end(false)
		return s, nil
	}
	f.subs[s] = struct{}{}
	return s, nil
}

// close ends every subscription after what it still holds.
func (f *feed) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for s := range f.subs {
		s.end(false)
	}
	clear(f.subs)
}

type subscription struct {
	feed *feed
	wake chan struct{}

	mu     sync.Mutex // guards all below; never held across a call out
	queue  []agent.Event
	bytes  int
	lagged bool
	closed bool
}

// put appends e, merging text into the last event where it continues it, and
// drops everything for one ErrLagged when the reader is too far behind.
func (s *subscription) put(e agent.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lagged || s.closed {
		return
	}
	if s.bytes > lagBytes {
		s.queue, s.bytes, s.lagged = nil, 0, true
		s.signal()
		return
	}
	if n := len(s.queue); n > 0 {
		if merged, ok := merge(s.queue[n-1], e); ok {
			s.bytes += cost(merged) - cost(s.queue[n-1])
			s.queue[n-1] = merged
		} else {
			s.queue, s.bytes = append(s.queue, e), s.bytes+cost(e)
		}
	} else {
		s.queue, s.bytes = append(s.queue, e), cost(e)
	}
	s.signal()
}

func (s *subscription) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Next implements agent.Subscription.
func (s *subscription) Next(ctx context.Context) (agent.Event, error) {
	for {
		s.mu.Lock()
		switch {
		case s.lagged:
			s.closed, s.lagged = true, false
			s.mu.Unlock()
			return agent.Event{}, agent.ErrLagged
		case len(s.queue) > 0:
			e := s.queue[0]
			s.queue[0] = agent.Event{}
			s.queue, s.bytes = s.queue[1:], s.bytes-cost(e)
			s.mu.Unlock()
			return e, nil
		case s.closed:
			s.mu.Unlock()
			return agent.Event{}, agent.ErrClosed
		}
		s.mu.Unlock()
		select {
		case <-s.wake:
		case <-ctx.Done():
			return agent.Event{}, context.Cause(ctx)
		}
	}
}

// Close implements agent.Subscription.
func (s *subscription) Close() {
	s.feed.mu.Lock()
	delete(s.feed.subs, s)
	s.feed.mu.Unlock()
	s.end(true)
}

func (s *subscription) end(drop bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if drop {
		s.queue, s.bytes = nil, 0
	}
	s.signal()
}

// merge joins two neighbouring events when the second only continues the first.
// The result has the number of the second.
func merge(a, b agent.Event) (agent.Event, bool) {
	if a.Request != b.Request {
		return a, false
	}
	switch x := a.Fact.(type) {
	case agent.TextAdded:
		if y, ok := b.Fact.(agent.TextAdded); ok && y.Item == x.Item {
			b.Fact = agent.TextAdded{Item: x.Item, Text: x.Text + y.Text}
			return b, len(x.Text) < mergeBytes
		}
	case agent.ReasoningAdded:
		if y, ok := b.Fact.(agent.ReasoningAdded); ok && y.Item == x.Item {
			b.Fact = agent.ReasoningAdded{Item: x.Item, Text: x.Text + y.Text}
			return b, len(x.Text) < mergeBytes
		}
	case agent.CallProgress:
		if y, ok := b.Fact.(agent.CallProgress); ok && y.Call == x.Call {
			b.Fact = agent.CallProgress{Call: x.Call, Text: x.Text + y.Text}
			return b, len(x.Text) < mergeBytes
		}
	case agent.CallWriting:
		if y, ok := b.Fact.(agent.CallWriting); ok && y.Item == x.Item && y.Index == x.Index {
			return b, true
		}
	case agent.StateChanged:
		if _, ok := b.Fact.(agent.StateChanged); ok {
			return b, true
		}
	}
	return a, false
}

// mergeBytes bounds a merged text, since each merge copies it.
const mergeBytes = 16 << 10

// cost estimates the memory of an event.
func cost(e agent.Event) int {
	n := eventCost
	switch f := e.Fact.(type) {
	case agent.TurnStarted:
		n += len(f.Text)
	case agent.TextAdded:
		n += len(f.Text)
	case agent.ReasoningAdded:
		n += len(f.Text)
	case agent.Asked:
		n += len(f.Interaction.Text) + len(f.Interaction.Context)
	case agent.Notice:
		n += len(f.Text)
	case agent.AnswerEnded:
		n += len(f.Text)
	case agent.CallProposed:
		n += len(f.Args) + len(f.Title)
	case agent.CallProgress:
		n += len(f.Text)
	case agent.CallEnded:
		n += len(f.Text)
		for _, c := range f.Changed {
			n += len(c.Diff)
		}
	case agent.StateChanged:
		for _, q := range f.State.Queue {
			n += eventCost + len(q.Text)
		}
	}
	return n
}
