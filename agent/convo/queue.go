package convo

import (
	"context"
	"iter"
	"slices"

	"github.com/lakecode/lakecode/agent"
	"github.com/lakecode/lakecode/session"
)

// submit answers a repeated request as the first one, and otherwise hands the
// message to the accepting worker.
func (o *owner) submit(m commandMsg, s agent.Submit) {
	if id := s.ClientRequestID; id != "" {
		if r, ok := o.receipts[id]; ok {
			m.reply <- receipt{Receipt: r}
			return
		}
		for w := range o.coming() {
			if w.accept.m.ClientRequestID == id {
				o.echoes[id] = append(o.echoes[id], m.reply)
				return
			}
		}
	}
	switch {
	case m.refusal != nil:
		m.reply <- receipt{err: m.refusal}
		return
	case o.phase == agent.Stuck:
		m.reply <- receipt{err: agent.Errorf(agent.Blocked, "Free space or mend the folder, then retry the save.", "The last turn is not saved: %s.", o.blocked)}
		return
	}
	if n := o.waitingBytes() + len(s.Text); n > maxQueued {
		m.reply <- receipt{err: agent.Errorf(agent.Busy, "Wait until some of them have run, or take some out of the queue.", "The queue would hold %d bytes of messages with this one; at most %d wait.", n, maxQueued)}
		return
	}
	// A paused queue waits for the person; a message that they send then does not.
	m.accept.through = o.paused && o.current == nil
	o.waiting = append(o.waiting, m)
	o.acceptNext()
}

// maxQueued bounds the text of the messages that wait, in bytes, because every
// state carries all of it.
const maxQueued = 4 << 20

func (o *owner) waitingBytes() int {
	n := 0
	for _, a := range o.queue {
		n += len(a.m.Text)
	}
	for m := range o.coming() {
		n += len(m.accept.m.Text)
	}
	return n
}

// coming yields the submits that are being stored or wait for that.
func (o *owner) coming() iter.Seq[*commandMsg] {
	return func(yield func(*commandMsg) bool) {
		for _, batch := range [][]commandMsg{o.accepting, o.waiting} {
			for i := range batch {
				if !yield(&batch[i]) {
					return
				}
			}
		}
	}
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

// stored answers the submits of a batch, which are on the disk or refused.
func (o *owner) stored(err error) {
	batch := o.accepting
	o.accepting = nil
	for _, m := range batch {
		var r receipt
		if err == nil {
			r.Receipt = o.enqueue(m.accept)
		} else {
			r.err = &agent.Error{Code: agent.NotSaved, Text: "The message was not accepted: it could not be stored: " + err.Error() + ".", Next: "Free space or mend the folder, then send it again.", Err: err}
		}
		m.reply <- r
		if id := m.accept.m.ClientRequestID; id != "" {
			for _, reply := range o.echoes[id] {
				reply <- r
			}
			delete(o.echoes, id)
			if err == nil {
				o.receipts[id] = r.Receipt
			}
		}
	}
	o.acceptNext()
	if !o.startNext() {
		o.changed()
	}
}

func (o *owner) enqueue(a accepted) agent.Receipt {
	o.apply(session.Accepted{Message: a.m})
	if a.through && o.paused {
		o.now[a.m.ID] = true
	}
	r := agent.Receipt{
		RequestID: a.m.ID, Seq: o.seq,
		Queued: o.current != nil || !o.runnable(a) || slices.ContainsFunc(o.queue, o.runnable),
	}
	o.queue = append(o.queue, a)
	o.model = choiceOf(a.m.Main)
	return r
}

// runnable reports whether a queued message may start when its turn comes.
func (o *owner) runnable(a accepted) bool { return a.ok && (!o.paused || o.now[a.m.ID]) }

// takeNext takes the next message that may start off the queue.
func (o *owner) takeNext() (accepted, bool) {
	at := slices.IndexFunc(o.queue, o.runnable)
	if at < 0 {
		return accepted{}, false
	}
	a := o.queue[at]
	o.remove(at)
	return a, true
}

func (o *owner) remove(at int) {
	delete(o.now, o.queue[at].m.ID)
	o.queue = slices.Delete(o.queue, at, at+1)
}

// pause keeps every message, also those being stored, until the person resumes.
func (o *owner) pause(reason string) {
	clear(o.now)
	for m := range o.coming() {
		m.accept.through = false
	}
	o.paused, o.reason = true, reason
}

// settle ends a pause that holds nothing back.
func (o *owner) settle() {
	if o.paused && len(o.queue)+len(o.accepting)+len(o.waiting) == 0 {
		o.paused, o.reason = false, ""
	}
}

// resume starts the queue, or returns the messages that need a connection first.
func (o *owner) resume(m commandMsg) (need []agent.Queued) {
	switch {
	case !o.paused:
		return nil
	case m.problem != "":
		o.reason = m.problem
		o.changed()
		return nil
	}
	for i := range o.queue {
		a := &o.queue[i]
		if snap, ok := m.resolved[a.m.ID]; ok && !a.ok {
			a.snap, a.ok = snap, true
		}
		if !a.ok {
			need = append(need, queuedOf(a.m))
		}
	}
	if len(need) > 0 {
		return need
	}
	o.paused, o.reason = false, ""
	clear(o.now)
	if !o.startNext() {
		o.changed()
	}
	return nil
}

func (o *owner) drop(id string) error {
	at := slices.IndexFunc(o.queue, func(a accepted) bool { return a.m.ID == id })
	if at < 0 {
		return agent.Errorf(agent.NotFound, "", "No message %q is in the queue; it may have started already.", id)
	}
	o.remove(at)
	o.record(session.Dropped{ID: id})
	o.changed()
	return nil
}

func queuedOf(m session.Message) agent.Queued {
	return agent.Queued{ID: m.ID, Text: m.Text, Mode: agent.Mode(m.Mode), Model: choiceOf(m.Main)}
}
