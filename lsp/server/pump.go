package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.uber.org/zap"

	"github.com/lakecode/lakecode/agent"
	"github.com/lakecode/lakecode/lsp/wire"
)

// Bounds of a batch, below the 16 ms and at the 64 KiB of spec 40 (custom
// protocol): what is left of the 16 is for scheduling. After a silence an
// event goes out at once.
const (
	batchTime = 12 * time.Millisecond
	batchSize = 64 << 10 // bytes
)

// pump carries what happens in one conversation to the editor: states, status
// and progress always, events while the editor has subscribed. One goroutine
// runs at a time; a subscription replaces it. It waits while the editor does not
// read, so a stalled editor costs what the conversation keeps for a subscriber.
type pump struct {
	s *Server
	c *conversation

	seen uint64 // last event that status and progress know; belongs to the goroutine

	mu      sync.Mutex // guards all below
	cancel  context.CancelFunc
	running chan struct{} // closed when the present goroutine has ended; nil: none
	stopped bool
}

// watch begins without a subscription.
func (p *pump) watch(after uint64) {
	p.seen = after
	p.replace(func(ctx context.Context) { p.run(ctx, nil, after) })
}

// replace ends the goroutine and starts another one after it, unless the pump
// was stopped: then it returns false.
func (p *pump) replace(run func(context.Context)) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return false
	}
	if p.cancel != nil {
		p.cancel()
	}
	ctx, cancel := context.WithCancel(p.s.ctx)
	before, done := p.running, make(chan struct{})
	p.cancel, p.running = cancel, done
	return p.s.spawn(func() {
		defer close(done)
		defer cancel()
		if before != nil {
			<-before // what it is sending comes first
		}
		run(ctx)
	})
}

// halt ends the goroutine and waits for it, which takes no longer than handing
// on what it holds: nothing in it waits once its context has ended.
func (p *pump) halt() {
	p.mu.Lock()
	cancel, running := p.cancel, p.running
	p.mu.Unlock()
	if cancel != nil {
		cancel()
		<-running
	}
}

// stop ends the pump for good; it does not wait.
func (p *pump) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	if p.cancel != nil {
		p.cancel()
	}
}

// run delivers until ctx ends or the conversation closes. With a subscription
// events go out too.
func (p *pump) run(ctx context.Context, sub agent.Subscription, after uint64) {
	forward := sub != nil
	for {
		err := p.attempt(ctx, sub, after, forward)
		if !errors.Is(err, agent.ErrLagged) {
			p.ended(ctx, err)
			return
		}
		// What was dropped is in the snapshot; events go on when the editor has
		// fetched it and subscribes again.
		_, state, err := p.c.Snapshot(ctx, "", 1)
		if err != nil {
			p.ended(ctx, err)
			return
		}
		p.seen = max(p.seen, state.Seq)
		p.s.status.update(p.c, state)
		b := batch{state: &state}
		if forward {
			b.events = []wire.Event{laggedAt(state.Seq, time.Now())}
		}
		if p.flush(ctx, &b, forward) != nil {
			return
		}
		sub, after, forward = nil, state.Seq, false
	}
}

// attempt delivers from a subscription, its own where there is none yet.
func (p *pump) attempt(ctx context.Context, sub agent.Subscription, after uint64, forward bool) error {
	if sub == nil {
		var err error
		if sub, err = p.c.Subscribe(after); err != nil {
			return err
		}
	}
	defer sub.Close()
	return p.deliver(ctx, sub, forward)
}

func (p *pump) ended(ctx context.Context, err error) {
	var refusal *agent.Error
	switch {
	case ctx.Err() != nil, errors.Is(err, errGone), errors.Is(err, errClosed):
	case errors.Is(err, agent.ErrClosed), errors.As(err, &refusal) && refusal.Code == agent.Closed:
		p.s.status.forget(p.c)
	default:
		p.s.log.Error("a subscription ended", zap.String("session", p.c.id), zap.Error(err))
	}
}

// deliver gathers batches and sends them. It returns the error of the
// subscription or of the connection, after what came before it was sent.
func (p *pump) deliver(ctx context.Context, sub agent.Subscription, forward bool) error {
	var b batch
	var last time.Time // when the batch before this one went out
	for {
		e, err := sub.Next(ctx)
		if err != nil {
			return err
		}
		p.take(&b, e, forward)
		if b.empty() {
			continue
		}
		next := p.gather(ctx, sub, &b, last.Add(batchTime), forward)
		if err := p.flush(ctx, &b, forward); err != nil {
			return err
		}
		if next != nil {
			return next
		}
		b.reset()
		last = time.Now()
	}
}

// gather adds what comes until the deadline, or until the batch is full.
func (p *pump) gather(ctx context.Context, sub agent.Subscription, b *batch, deadline time.Time, forward bool) error {
	if !time.Now().Before(deadline) {
		return nil
	}
	until, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	for b.size < batchSize {
		e, err := sub.Next(until)
		if err != nil {
			if until.Err() != nil && ctx.Err() == nil && !errors.Is(err, agent.ErrLagged) && !errors.Is(err, agent.ErrClosed) {
				return nil
			}
			return err
		}
		p.take(b, e, forward)
	}
	return nil
}

// take puts an event into the batch and lets the rest of the front see it.
func (p *pump) take(b *batch, e agent.Event, forward bool) {
	state, isState := e.Fact.(agent.StateChanged)
	if e.Seq > p.seen { // else it is repeated for a subscription
		p.seen = e.Seq
		if isState {
			p.s.status.update(p.c, state.State)
		} else {
			p.s.present.see(p.c, e)
		}
	}
	if forward || isState {
		b.add(e)
	}
}

// flush sends a batch once the editor has taken enough of what was sent before.
func (p *pump) flush(ctx context.Context, b *batch, forward bool) error {
	if err := p.s.outbox.waitRoom(ctx); err != nil {
		return err
	}
	b.seal()
	if len(b.events) > 0 {
		if err := p.s.notify(wire.EventsNote, &wire.Events{ConversationID: p.c.id, Epoch: p.c.epoch, Events: b.events}); err != nil {
			return err
		}
	}
	if b.state != nil && (forward || p.s.life.editor().offer.Events) {
		state := StateOf(*b.state)
		return p.s.notify(wire.StateNote, &state)
	}
	return nil
}

// subscribe handles conversation/subscribe. It is answered on the read loop, and
// the first event goes out after the answer.
func (s *Server) subscribe(_ context.Context, params []byte) (any, waiting, error) {
	p, err := decode[wire.SubscribeParams](params)
	if err != nil {
		return nil, nil, err
	}
	if p.Epoch == "" && p.SinceSeq != 0 {
		return nil, nil, badParam("epoch is missing: sinceSeq means nothing without it.")
	}
	c, err := s.find(p.ConversationID)
	if err != nil {
		return nil, nil, err
	}
	state := c.State()
	out := wire.SubscribeResult{Epoch: state.Epoch, Seq: state.Seq}
	if p.Epoch != "" {
		out.Seq = p.SinceSeq
		if p.Epoch != state.Epoch {
			out.SnapshotRequired, out.Seq = true, state.Seq
			return out, nil, nil
		}
	}
	sub, err := c.Subscribe(out.Seq)
	switch {
	case errors.Is(err, agent.ErrLagged):
		out.SnapshotRequired, out.Seq = true, state.Seq
		return out, nil, nil
	case errors.Is(err, agent.ErrClosed):
		return nil, nil, agent.Errorf(agent.Closed, "Open it again.", "The conversation is closed.")
	case err != nil:
		return nil, nil, err
	}
	// An event that the former subscription delivered after the answer would come
	// a second time by this one.
	c.pump.halt()
	s.after = append(s.after, func() {
		if !c.pump.replace(func(ctx context.Context) { c.pump.run(ctx, sub, out.Seq) }) {
			sub.Close()
		}
	})
	return out, nil, nil
}

// notify sends a notification; it does not wait for the editor.
func (s *Server) notify(name string, params any) error {
	raw, err := protocol.Marshal(params)
	if err != nil {
		return err
	}
	_, err = s.outbox.frame(func(dst []byte) []byte { return jsonrpc2.AppendNotification(dst, name, raw) })
	return err
}
