package convo

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/lakecode/lakecode/agent"
	"github.com/lakecode/lakecode/agent/loop"
	"github.com/lakecode/lakecode/session"
	"github.com/lakecode/lakecode/tools"
)

// owner is the state of a conversation. Only the goroutine of run touches it.
type owner struct {
	c       *Convo
	ctx     context.Context
	log     *zap.Logger
	archive *session.Archive
	// history belongs to the turn worker while one runs.
	history *loop.History

	seq       uint64
	phase     agent.Phase
	queue     []accepted
	now       map[string]bool // queued messages that run although the queue is paused
	paused    bool
	reason    string
	blocked   string
	current   *accepted
	stop      context.CancelCauseFunc // ends the running turn
	finished  *agent.TurnFinished     // the turn being saved
	inter     *agent.Interaction
	model     agent.Choice
	usage     agent.Usage
	receipts  map[string]agent.Receipt // by client request id
	waiting   []commandMsg             // submits that wait to be stored
	accepting []commandMsg             // submits being stored
	closing   bool
	live      live
}

// newOwner reads what the archive says about queue, model and usage.
func newOwner(c *Convo, ctx context.Context) *owner {
	a := c.cfg.Archive
	o := &owner{
		c: c, ctx: ctx, log: c.cfg.Log, archive: a, history: loop.NewHistory(a), phase: agent.Idle,
		stop: func(error) {}, now: map[string]bool{}, receipts: map[string]agent.Receipt{},
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

// start publishes the first state.
func (o *owner) start() {
	for _, r := range o.archive.Repairs {
		o.say("", agent.Notice{Level: "warning", Text: r})
	}
	o.changed()
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
			if o.phase == agent.Stuck { // one more try before the end
				o.phase = agent.Saving
				o.save()
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

// shut refuses what still waits and lets go of everything.
func (o *owner) shut() {
	o.c.wg.Wait() // every worker has sent its final message
	for _, m := range o.waiting {
		m.reply <- receipt{err: errClosed()}
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
		o.fact(m.fact)
	case recordsMsg:
		o.apply(m.recs)
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
		o.ended(m)
	case savedMsg:
		o.saved(m.err)
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
		o.resume(m)
	case agent.DropQueued:
		r.err = o.drop(cmd.ID)
	case agent.RetrySave:
		r.err = o.retrySave()
	case agent.Rename:
		r.err = o.rename(cmd.Title)
	}
	m.reply <- r
}

// submit answers a repeated request with the first receipt, and otherwise hands
// the message to the accepting worker.
func (o *owner) submit(m commandMsg, s agent.Submit) {
	if s.ClientRequestID != "" {
		if r, ok := o.receipts[s.ClientRequestID]; ok {
			m.reply <- receipt{Receipt: r}
			return
		}
		for _, w := range slices.Concat(o.accepting, o.waiting) {
			if w.accept.m.ClientRequestID == s.ClientRequestID {
				m.reply <- receipt{err: agent.Errorf(agent.Busy, "Wait for the first answer.", "The same message is being accepted already.")}
				return
			}
		}
	}
	if o.phase == agent.Stuck {
		m.reply <- receipt{err: agent.Errorf(agent.Blocked, "Free space or mend the folder, then retry the save.", "The last turn is not saved: %s", o.blocked)}
		return
	}
	o.waiting = append(o.waiting, m)
	o.acceptNext()
}

// acceptNext stores every waiting message with one write, in order. One worker
// at a time keeps the order.
func (o *owner) acceptNext() {
	if len(o.accepting) > 0 || len(o.waiting) == 0 {
		return
	}
	o.accepting, o.waiting = o.waiting, nil
	recs := make([]session.Record, len(o.accepting))
	for i, m := range o.accepting {
		recs[i] = session.Accepted{Message: m.accept.m}
	}
	ctx := context.WithoutCancel(o.ctx)
	o.work(func() message { return storedMsg{o.c.book.appendNew(ctx, recs...)} })
}

func (o *owner) stored(err error) {
	batch := o.accepting
	o.accepting = nil
	for _, m := range batch {
		if err != nil {
			m.reply <- receipt{err: &agent.Error{Code: agent.NotSaved, Text: "The message was not accepted: it could not be stored: " + err.Error() + ".", Next: "Free space or mend the folder, then send it again.", Err: err}}
			continue
		}
		a := m.accept
		o.apply([]session.Record{session.Accepted{Message: a.m}})
		r := agent.Receipt{RequestID: a.m.ID, Seq: o.seq, Queued: o.current != nil || len(o.queue) > 0 && !o.paused}
		if a.m.ClientRequestID != "" {
			o.receipts[a.m.ClientRequestID] = r
		}
		// A paused queue waits for the person; a message that they send now does not.
		if o.paused && o.current == nil {
			o.now[a.m.ID] = true
		}
		o.queue = append(o.queue, a)
		o.model = choiceOf(a.m.Main)
		m.reply <- receipt{Receipt: r}
	}
	o.acceptNext()
	if !o.startNext() {
		o.changed()
	}
}

func (o *owner) stopTurn() {
	if o.phase != agent.Running {
		return
	}
	o.stop(loop.ErrStopped)
	if len(o.queue) > 0 {
		o.paused, o.reason = true, "you stopped the turn before it"
		o.changed()
	}
}

func (o *owner) resume(m commandMsg) {
	if m.problem != "" {
		o.paused, o.reason = true, m.problem
		o.changed()
		return
	}
	for i := range o.queue {
		if snap, ok := m.resolved[o.queue[i].m.ID]; ok && !o.queue[i].ok {
			o.queue[i].snap, o.queue[i].ok = snap, true
		}
	}
	o.paused, o.reason = false, ""
	o.changed()
	o.startNext()
}

func (o *owner) drop(id string) error {
	at := slices.IndexFunc(o.queue, func(a accepted) bool { return a.m.ID == id })
	if at < 0 {
		return agent.Errorf(agent.NotFound, "", "No message %q is in the queue; it may have started already.", id)
	}
	o.queue = slices.Delete(slices.Clone(o.queue), at, at+1)
	o.record(session.Dropped{ID: id})
	if len(o.queue) == 0 {
		o.paused, o.reason = false, ""
	}
	o.changed()
	return nil
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

// record applies a record at once and writes it in a worker; what cannot be
// written goes along with the next write.
func (o *owner) record(r session.Record) {
	o.apply([]session.Record{r})
	ctx := context.WithoutCancel(o.ctx)
	o.c.wg.Go(func() {
		if err := o.c.book.append(ctx, false, r); err != nil {
			o.log.Error("append", zap.Error(err))
		}
	})
}

func (o *owner) apply(recs []session.Record) {
	for _, r := range recs {
		if err := o.archive.Apply(r); err != nil {
			o.log.Error("bug: record does not fit", zap.Error(err))
		}
	}
}

// startNext begins the next turn when nothing hinders it, and says whether it
// did.
func (o *owner) startNext() bool {
	if o.current != nil || o.phase != agent.Idle || o.closing {
		return false
	}
	at := slices.IndexFunc(o.queue, func(a accepted) bool { return !o.paused || o.now[a.m.ID] })
	if at < 0 {
		return false
	}
	a := o.queue[at]
	o.queue = slices.Delete(slices.Clone(o.queue), at, at+1)
	delete(o.now, a.m.ID)
	o.current, o.phase = &a, agent.Running
	ctx, cancel := context.WithCancelCause(o.ctx)
	o.stop = cancel
	o.say(a.m.ID, agent.TurnStarted{Text: a.m.Text, Mode: agent.Mode(a.m.Mode), Model: choiceOf(a.m.Main)})
	o.changed()
	o.work(func() message {
		end, failure := o.c.turn(ctx, a, o.history)
		return endedMsg{end: end, failure: failure}
	})
	return true
}

func (o *owner) ended(m endedMsg) {
	o.stop(nil)
	o.stop = func(error) {}
	o.live = live{}
	if m.end.Usage != nil {
		o.usage = addUsage(o.usage, *m.end.Usage)
	}
	f := agent.TurnFinished{How: string(m.end.How), Error: m.failure}
	if m.end.Usage != nil {
		f.Usage = addUsage(agent.Usage{}, *m.end.Usage)
	}
	o.say(o.turnID(), f)
	o.finished = &f
	if m.end.How == session.Errored && len(o.queue) > 0 {
		o.paused, o.reason = true, "the turn before it failed"
	}
	o.phase = agent.Saving
	o.changed()
	rec := session.TurnEnded{Turn: o.current.m.ID, End: m.end}
	o.apply([]session.Record{rec})
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
	o.current, o.finished, o.phase, o.blocked = nil, nil, agent.Idle, ""
	o.changed()
	o.startNext()
}

func (o *owner) retrySave() error {
	if o.phase != agent.Stuck {
		return agent.Errorf(agent.BadRequest, "", "Nothing waits to be saved.")
	}
	o.phase = agent.Saving
	o.changed()
	o.save()
	return nil
}

// work starts a worker whose result is its one final message.
func (o *owner) work(f func() message) { o.c.wg.Go(func() { o.c.post(f()) }) }

// say publishes a fact.
func (o *owner) say(request string, f agent.Fact) {
	o.seq++
	o.c.feed.publish(agent.Event{Seq: o.seq, Request: request, Time: time.Now().UTC(), Fact: f})
}

func (o *owner) turnID() string {
	if o.current == nil {
		return ""
	}
	return o.current.m.ID
}

func (o *owner) fact(f agent.Fact) {
	o.live.take(f)
	o.say(o.turnID(), f)
}

// turn is the body of the turn worker.
func (c *Convo) turn(ctx context.Context, a accepted, h *loop.History) (session.End, *agent.Failure) {
	appendRecords := func(ctx context.Context, sync bool, recs ...session.Record) error {
		err := c.book.append(ctx, sync, recs...)
		c.post(recordsMsg{recs})
		return err
	}
	fail := func(f *agent.Failure) (session.End, *agent.Failure) {
		h.EndTurn()
		return session.End{How: session.Errored, Error: f.Message, Kind: f.Kind, Time: time.Now().UTC()}, f
	}
	h.AddUser(a.m.Text)
	if err := appendRecords(ctx, false, session.TurnStarted{ID: a.m.ID, Time: time.Now().UTC()}); err != nil {
		return fail(&agent.Failure{Kind: "notSaved", Message: "The session cannot be written: " + err.Error(), Next: "Free space or mend the folder, then retry the save."})
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
	return loop.Run(ctx, loop.Config{
		Turn: a.m.ID, Client: client, Snapshot: a.snap, CacheKey: string(c.cfg.Archive.ID), System: c.cfg.System,
		View: c.cfg.Registry.View(tools.Build), History: h, Asker: asker{c}, Log: c.cfg.Log.With(zap.String("request", a.m.ID)),
		Emit: func(f agent.Fact) { c.post(factMsg{f}) }, Append: appendRecords,
	})
}

func choiceOf(a session.Assignment) agent.Choice {
	return agent.Choice{Provider: a.Provider, Model: a.Model, Effort: a.Effort}
}

func addUsage(u agent.Usage, s session.Usage) agent.Usage {
	return agent.Usage{Known: true, Input: u.Input + s.Input, Cached: u.Cached + s.Cached, Output: u.Output + s.Output, Reasoning: u.Reasoning + s.Reasoning}
}
