package convo

import (
	"slices"
	"strings"
	"time"

	"github.com/lakecode/lakecode/agent"
	"github.com/lakecode/lakecode/agent/loop"
	"github.com/lakecode/lakecode/session"
)

const (
	pageTurns    = 50
	maxPageTurns = 200
	// pageBytes ends a page, of any number of turns but at least one.
	pageBytes = 8 << 20
)

// live is what the running turn shows and the archive does not hold yet.
type live struct {
	item            string
	text, reasoning strings.Builder
}

func (l *live) take(f agent.Fact) {
	switch f := f.(type) {
	case agent.TextAdded:
		l.at(f.Item)
		l.text.WriteString(f.Text)
	case agent.ReasoningAdded:
		l.at(f.Item)
		l.reasoning.WriteString(f.Text)
	case agent.AnswerEnded:
		l.item = ""
		l.text.Reset()
		l.reasoning.Reset()
	}
}

func (l *live) at(item string) {
	if l.item != item {
		l.item = item
		l.text.Reset()
		l.reasoning.Reset()
	}
}

// changed publishes the new state.
func (o *owner) changed() {
	o.settle()
	o.seq++
	o.shown = o.seq
	s := agent.State{
		Seq: o.seq, Epoch: o.c.epoch, Session: string(o.archive.ID), Root: o.archive.Root, Phase: o.phase,
		Turn: o.turnID(), Queue: make([]agent.Queued, len(o.queue)), QueuePaused: o.paused, QueueReason: o.reason,
		Interaction: o.inter, Blocked: o.blocked, Title: o.archive.Heading(), Mode: agent.Build, Model: o.model,
		Usage: o.usage, Turns: len(o.archive.Turns),
	}
	for i, a := range o.queue {
		s.Queue[i] = queuedOf(a.m)
	}
	o.c.state.Store(&s)
	o.c.feed.publish(agent.Event{Seq: o.seq, Request: o.turnID(), Time: time.Now().UTC(), Fact: agent.StateChanged{State: s}})
}

// snapshot makes a page of the transcript and the state at this moment.
func (o *owner) snapshot(before string, limit int) snapshot {
	if limit <= 0 {
		limit = pageTurns
	}
	limit = min(limit, maxPageTurns)
	end := len(o.archive.Turns)
	if before != "" {
		end = slices.IndexFunc(o.archive.Turns, func(t session.Turn) bool { return t.Message.ID == before })
		if end < 0 {
			return snapshot{err: agent.Errorf(agent.NotFound, "", "There is no turn %q.", before)}
		}
	}
	first, size := end, 0
	tr := agent.Transcript{Turns: []agent.TurnView{}}
	for first > 0 && end-first < limit && size < pageBytes {
		first--
		v := viewTurn(&o.archive.Turns[first])
		tr.Turns, size = append(tr.Turns, v), size+weight(&v)
	}
	slices.Reverse(tr.Turns)
	tr.More = first > 0
	if n := len(tr.Turns); n > 0 && end == len(o.archive.Turns) && o.archive.Turns[end-1].End == nil {
		if o.live.text.Len()+o.live.reasoning.Len() > 0 {
			tr.Turns[n-1].Items = append(tr.Turns[n-1].Items, agent.ItemView{
				ID: o.live.item, Kind: "answer", Text: o.live.text.String(), Reasoning: o.live.reasoning.String(),
			})
		}
	}
	s := *o.c.state.Load()
	s.Seq = o.shown
	return snapshot{transcript: tr, state: s}
}

// weight estimates the size of a turn in a page, in bytes.
func weight(v *agent.TurnView) int {
	n := eventCost + len(v.Text)
	for _, it := range v.Items {
		n += eventCost + len(it.Text) + len(it.Reasoning) + len(it.Args)
		for _, c := range it.Changed {
			n += len(c.Diff)
		}
	}
	return n
}

func viewTurn(t *session.Turn) agent.TurnView {
	v := agent.TurnView{
		ID: t.Message.ID, Text: t.Message.Text, Mode: agent.Mode(t.Message.Mode), Model: choiceOf(t.Message.Main),
		Started: t.Started, Items: []agent.ItemView{},
	}
	at := map[string]int{} // call id -> index of its item
	for _, it := range t.Items {
		switch {
		case it.Answer != nil:
			if it.Answer.Text != "" || it.Answer.Reasoning != "" {
				v.Items = append(v.Items, agent.ItemView{ID: it.ID, Kind: "answer", Text: it.Answer.Text, Reasoning: it.Answer.Reasoning, Interrupted: it.Answer.Interrupted})
			}
			for _, c := range it.Answer.Calls {
				at[c.ID] = len(v.Items)
				v.Items = append(v.Items, agent.ItemView{ID: c.ID, Kind: "call", Call: c.ID, Tool: c.Name, Title: loop.Title(c.Args), Args: c.Args})
			}
		case it.Result != nil:
			i, ok := at[it.Result.Call]
			if !ok {
				continue
			}
			text, cut := loop.Clip(it.Result.Text)
			item := &v.Items[i]
			item.Outcome, item.Text, item.Cut = string(it.Result.Outcome), text, cut
			item.Changed, item.Took = loop.FileChanges(it.Result.Changed), time.Duration(it.Result.Millis)*time.Millisecond
		case it.Note != nil:
			v.Items = append(v.Items, agent.ItemView{ID: it.ID, Kind: "note", Text: it.Note.Text})
		}
	}
	if t.End != nil {
		v.How, v.Error = string(t.End.How), t.End.Error
		if t.End.Usage != nil {
			v.Usage = addUsage(agent.Usage{}, *t.End.Usage)
		}
	}
	return v
}
