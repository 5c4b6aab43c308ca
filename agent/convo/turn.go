package convo

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"go.uber.org/zap"

	"github.com/lakecode/lakecode/agent"
	"github.com/lakecode/lakecode/agent/loop"
	"github.com/lakecode/lakecode/session"
	"github.com/lakecode/lakecode/tools"
)

// startNext begins the next turn when nothing hinders it, and says whether it
// did.
func (o *owner) startNext() bool {
	if o.current != nil || o.phase != agent.Idle || o.closing {
		return false
	}
	a, ok := o.takeNext()
	if !ok {
		return false
	}
	o.current, o.ended, o.phase = &a, false, agent.Running
	ctx, cancel := context.WithCancelCause(o.ctx)
	o.stop = cancel
	rec := session.TurnStarted{ID: a.m.ID, Time: time.Now().UTC()}
	o.apply(rec)
	o.c.book.note(rec) // written by the turn's first append
	o.say(a.m.ID, agent.TurnStarted{Text: a.m.Text, Mode: agent.Mode(a.m.Mode), Model: choiceOf(a.m.Main)})
	o.changed()
	o.work(func() message { return o.c.turn(ctx, a, o.history) })
	return true
}

// stopTurn also holds the queue back when the turn has just ended by itself:
// what the person stopped must not go on with the next message.
func (o *owner) stopTurn() {
	switch o.phase {
	case agent.Running:
		o.stop(loop.ErrStopped)
	case agent.Saving:
	default:
		return
	}
	o.pause("you stopped the turn before it")
	o.changed()
}

func (o *owner) endTurn(m endedMsg) {
	o.stop(nil)
	o.stop = func(error) {}
	o.live = live{}
	f := agent.TurnFinished{How: string(m.end.How), Error: m.failure}
	if m.end.Usage != nil {
		f.Usage = addUsage(agent.Usage{}, *m.end.Usage)
		o.usage = addUsage(o.usage, *m.end.Usage)
	}
	rec := session.TurnEnded{Turn: o.current.m.ID, End: m.end}
	o.apply(rec)
	o.say(o.turnID(), f)
	o.ended = true
	if m.end.How == session.Errored {
		o.pause("the turn before it failed")
	}
	if m.panicked { // what it left of the history cannot be trusted
		o.history = loop.NewHistory(o.archive)
	}
	o.phase = agent.Saving
	o.changed()
	o.save(rec)
}

// save writes in a worker that a stop or a shutdown cannot tear.
func (o *owner) save(recs ...session.Record) {
	ctx := context.WithoutCancel(o.ctx)
	o.work(func() message { return savedMsg{o.c.book.append(ctx, true, recs...)} })
}

func (o *owner) saved(err error) {
	if err != nil {
		o.phase, o.blocked = agent.Stuck, err.Error()
		o.log.Error("save turn", zap.Error(err))
		o.say(o.turnID(), agent.Notice{Level: "error", Text: "The turn could not be saved: " + err.Error() + ". Nothing else starts until a retry of the save succeeds."})
		o.changed()
		if o.closing {
			o.current = nil
		}
		return
	}
	o.current, o.phase, o.blocked = nil, agent.Idle, ""
	o.changed()
	o.startNext()
}

func (o *owner) retrySave() error {
	if o.phase != agent.Stuck {
		return agent.Errorf(agent.BadRequest, "", "Nothing waits to be saved.")
	}
	o.phase, o.blocked = agent.Saving, ""
	o.changed()
	o.save()
	return nil
}

// turn is the body of the turn worker.
func (c *Convo) turn(ctx context.Context, a accepted, h *loop.History) (m endedMsg) {
	log := c.cfg.Log.With(zap.String("request", a.m.ID))
	defer func() {
		if p := recover(); p != nil {
			log.Error("bug: turn panicked", zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
			f := &agent.Failure{Kind: "internal", Message: "The turn failed inside.", Next: "This is a bug of Lakecode; see its log."}
			m = endedMsg{end: endOf(f), failure: f, panicked: true}
		}
	}()
	appendRecords := func(ctx context.Context, sync bool, recs []session.Record, facts ...agent.Fact) error {
		// A stop ends the turn, never a write: it would look like a full disk.
		err := c.book.append(context.WithoutCancel(ctx), sync, recs...)
		c.post(recordsMsg{turn: a.m.ID, recs: recs, facts: facts})
		return err
	}
	fail := func(f *agent.Failure) endedMsg {
		h.EndTurn()
		return endedMsg{end: endOf(f), failure: f}
	}
	h.AddUser(a.m.Text)
	if err := appendRecords(ctx, false, nil); err != nil {
		return fail(loop.Unwritten(err))
	}
	client, err := c.cfg.Client(a.snap)
	if err != nil {
		var ae *agent.Error
		f := &agent.Failure{Kind: "internal", Message: err.Error()}
		if errors.As(err, &ae) {
			f = &agent.Failure{Kind: string(ae.Code), Message: ae.Text, Next: ae.Next}
		}
		return fail(f)
	}
	m.end, m.failure = loop.Run(ctx, loop.Config{
		Turn: a.m.ID, Client: client, Snapshot: a.snap, CacheKey: string(c.cfg.Archive.ID), System: c.cfg.System,
		View: c.cfg.Registry.View(tools.Build), History: h, Asker: asker{c, a.m.ID}, Redact: c.cfg.Redact, Log: log,
		Emit: func(f agent.Fact) { c.post(factMsg{a.m.ID, f}) }, Append: appendRecords,
	})
	return m
}

func endOf(f *agent.Failure) session.End {
	return session.End{How: session.Errored, Error: f.Message, Kind: f.Kind, Time: time.Now().UTC()}
}

func choiceOf(a session.Assignment) agent.Choice {
	return agent.Choice{Provider: a.Provider, Model: a.Model, Effort: a.Effort}
}

func addUsage(u agent.Usage, s session.Usage) agent.Usage {
	return agent.Usage{Known: true, Input: u.Input + s.Input, Cached: u.Cached + s.Cached, Output: u.Output + s.Output, Reasoning: u.Reasoning + s.Reasoning}
}
