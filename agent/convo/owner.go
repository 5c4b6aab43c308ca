package convo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/lakecode/lakecode/agent"
	"github.com/lakecode/lakecode/agent/loop"
	"github.com/lakecode/lakecode/session"
)

// owner is the state of a conversation. Only the goroutine of run touches it.
type owner struct {
	c       *Convo
	ctx     context.Context
	log     *zap.Logger
	archive *session.Archive
	// history belongs to the turn worker while one runs.
	history *loop.History

	seq     uint64
	shown   uint64 // up to where a snapshot holds everything
	phase   agent.Phase
	closing bool
	blocked string
	inter   *agent.Interaction
	model   agent.Choice
	usage   agent.Usage

	queue     []accepted
	paused    bool
	reason    string
	now       map[string]bool           // queued messages that run although the queue is paused
	receipts  map[string]agent.Receipt  // by client request id
	waiting   []commandMsg              // submits that wait to be stored
	accepting []commandMsg              // submits being stored
	echoes    map[string][]chan receipt // repeated submits of these, by client request id

	current *accepted               // the turn that runs or is saved
	stop    context.CancelCauseFunc // ends the running turn
	ended   bool                    // current has ended and is not saved yet
	live    live
}

// newOwner reads what the archive says about queue, model and usage.
func newOwner(c *Convo, ctx context.Context) *owner {
	a := c.cfg.Archive
	o := &owner{
		c: c, ctx: ctx, log: c.cfg.Log, archive: a, history: loop.NewHistory(a), phase: agent.Idle, stop: func(error) {},
		now: map[string]bool{}, receipts: map[string]agent.Receipt{}, echoes: map[string][]chan receipt{},
	}
	for _, t := range a.Turns {
		o.remember(t.Message, false)
		o.model = choiceOf(t.Message.Main)
		if t.End != nil && t.End.Usage != nil {
			o.usage = addUsage(o.usage, *t.End.Usage)
		}
	}
	for _, m := range a.Queue {
		o.remember(m, true)
		o.model = choiceOf(m.Main)
		o.queue = append(o.queue, accepted{m: m})
	}
	if len(o.queue) > 0 {
		o.paused, o.reason = true, "restored from an earlier run"
	}
	return o
}

func (o *owner) remember(m session.Message, queued bool) {
	if m.ClientRequestID != "" {
		o.receipts[m.ClientRequestID] = agent.Receipt{RequestID: m.ID, Queued: queued}
	}
}

// start publishes the first state, and behind it what a person should know:
// whoever opens the conversation reads on from that state.
func (o *owner) start() {
	o.changed()
	for _, r := range o.archive.Repairs {
		o.say("", agent.Notice{Level: "warning", Text: r})
	}
}

// run is the owner's loop. It ends when the conversation is closing and no
// worker is left.
func (o *owner) run(ctx context.Context) {
	defer close(o.c.done)
	down := ctx.Done()
	for {
		select {
		case <-down:
			down, o.closing = nil, true
			o.stop(loop.ErrShutdown)
			if o.phase == agent.Stuck {
				o.current = nil // shut tries the save once more
			}
		case m := <-o.c.box:
			o.handle(m)
		}
		if o.closing && o.current == nil && len(o.accepting) == 0 {
			o.shut()
			return
		}
	}
}

// shut writes what is still owed and lets go of everything. Every worker has
// sent its final message.
func (o *owner) shut() {
	o.c.wg.Wait()
	if o.c.book.owes() {
		if err := o.c.book.append(context.WithoutCancel(o.ctx), true); err != nil {
			o.c.unsaved = &agent.Error{Code: agent.NotSaved, Text: "The end of the last turn is not saved: " + err.Error() + ".", Next: "What was stored before it is whole.", Err: err}
		}
	}
	o.c.feed.close()
	if err := o.c.cfg.Store.Close(); err != nil {
		o.log.Error("close session", zap.Error(err))
	}
	if o.c.cfg.Released != nil {
		o.c.cfg.Released()
	}
}

func (o *owner) handle(m message) {
	switch m := m.(type) {
	case commandMsg:
		o.command(m)
	case snapshotMsg:
		m.reply <- o.snapshot(m.before, m.limit)
	case factMsg:
		o.fact(m.turn, m.fact)
	case recordsMsg:
		for _, r := range m.recs {
			o.apply(r)
		}
		for _, f := range m.facts {
			o.fact(m.turn, f)
		}
	case showMsg:
		o.inter = &m.in
		o.say(o.turnID(), agent.Asked{Interaction: m.in})
		o.changed()
	case hideMsg:
		o.inter = nil
		o.say(o.turnID(), agent.Answered{Interaction: m.id, How: m.how})
		o.changed()
	case storedMsg:
		o.stored(m.err)
	case endedMsg:
		o.endTurn(m)
	case savedMsg:
		o.saved(m.err)
	default:
		panic(fmt.Sprintf("convo: no handler for %T", m))
	}
}

func (o *owner) command(m commandMsg) {
	if o.closing {
		m.reply <- receipt{err: errClosed()}
		return
	}
	r := receipt{Receipt: agent.Receipt{Seq: o.seq}}
	switch cmd := m.cmd.(type) {
	case agent.Submit:
		o.submit(m, cmd)
		return
	case agent.Stop:
		o.stopTurn()
	case agent.ResumeQueue:
		r.need = o.resume(m)
	case agent.DropQueued:
		r.err = o.drop(cmd.ID)
	case agent.RetrySave:
		r.err = o.retrySave()
	case agent.Rename:
		r.err = o.rename(cmd.Title)
	}
	m.reply <- r
}

func (o *owner) rename(title string) error {
	title = strings.Join(strings.Fields(title), " ")
	if title == "" {
		return agent.Errorf(agent.BadRequest, "", "The title is empty.")
	}
	o.record(session.Titled{Title: title})
	o.changed()
	return nil
}

// record applies a record at once and has a worker write it, in the order of
// the calls; what cannot be written goes along with the next write.
func (o *owner) record(r session.Record) {
	o.apply(r)
	o.c.book.note(r)
	ctx := context.WithoutCancel(o.ctx)
	o.c.wg.Go(func() {
		if err := o.c.book.append(ctx, false); err != nil {
			o.log.Error("append", zap.Error(err))
		}
	})
}

func (o *owner) apply(r session.Record) {
	if err := o.archive.Apply(r); err != nil {
		o.log.Error("bug: record does not fit", zap.Error(err))
	}
}

// work starts a worker whose result is its one final message.
func (o *owner) work(f func() message) { o.c.wg.Go(func() { o.c.post(f()) }) }

// say publishes a fact.
func (o *owner) say(request string, f agent.Fact) {
	o.seq++
	if _, ok := f.(agent.Notice); !ok { // a snapshot holds none: who reads on from it gets the last ones
		o.shown = o.seq
	}
	o.c.feed.publish(agent.Event{Seq: o.seq, Request: request, Time: time.Now().UTC(), Fact: f})
}

func (o *owner) turnID() string {
	if o.current == nil {
		return ""
	}
	return o.current.m.ID
}

// fact publishes what a turn tells. What comes after its end, such as output
// that a tool still hands over, is dropped: nothing follows TurnFinished.
func (o *owner) fact(turn string, f agent.Fact) {
	if turn != o.turnID() || o.ended {
		return
	}
	o.live.take(f)
	o.say(turn, f)
}
