package server

import (
	"github.com/lakecode/lakecode/agent"
	"github.com/lakecode/lakecode/lsp/wire"
)

// batch gathers what goes to the editor in one notification. Fragments that
// continue the one before become part of it.
type batch struct {
	events []wire.Event
	text   []byte       // of the last event, while that can grow
	state  *agent.State // the newest one
	size   int          // bytes, roughly
}

func (b *batch) empty() bool { return len(b.events) == 0 && b.state == nil }

func (b *batch) reset() { *b = batch{text: b.text[:0]} }

// add puts an event at the end. Of states only the newest is kept.
func (b *batch) add(e agent.Event) {
	if f, ok := e.Fact.(agent.StateChanged); ok {
		b.state = &f.State
		return
	}
	if b.grow(e) {
		return
	}
	b.seal()
	ev := EventOf(e)
	if ev == nil {
		return
	}
	b.events = append(b.events, ev)
	b.size += sizeOf(e.Fact)
	switch ev := ev.(type) {
	case *wire.MessageDelta:
		b.text = append(b.text, ev.Text...)
	case *wire.ReasoningDelta:
		b.text = append(b.text, ev.Text...)
	case *wire.CallProgress:
		b.text = append(b.text, ev.Text...)
	}
}

// grow appends to the last event when e continues it.
func (b *batch) grow(e agent.Event) bool {
	if len(b.events) == 0 {
		return false
	}
	last := b.events[len(b.events)-1]
	var more string
	switch f := e.Fact.(type) {
	case agent.TextAdded:
		have, ok := last.(*wire.MessageDelta)
		if !ok || have.ItemID != f.Item {
			return false
		}
		more = f.Text
	case agent.ReasoningAdded:
		have, ok := last.(*wire.ReasoningDelta)
		if !ok || have.ItemID != f.Item {
			return false
		}
		more = f.Text
	case agent.CallProgress:
		have, ok := last.(*wire.CallProgress)
		if !ok || have.CallID != f.Call {
			return false
		}
		more = f.Text
	case agent.CallWriting:
		have, ok := last.(*wire.CallWriting)
		if !ok || have.ItemID != f.Item || have.Index != f.Index {
			return false
		}
		have.Tool, have.Bytes = f.Tool, f.Bytes
	default:
		return false
	}
	last.Header().Seq = e.Seq
	b.text = append(b.text, more...)
	b.size += len(more)
	return true
}

// seal gives the last event its whole text.
func (b *batch) seal() {
	if len(b.events) == 0 {
		return
	}
	switch ev := b.events[len(b.events)-1].(type) {
	case *wire.MessageDelta:
		ev.Text = string(b.text)
	case *wire.ReasoningDelta:
		ev.Text = string(b.text)
	case *wire.CallProgress:
		ev.Text = string(b.text)
	}
	b.text = b.text[:0]
}

// sizeOf is about how many bytes a fact takes on the wire.
func sizeOf(f agent.Fact) int {
	n := 160
	switch f := f.(type) {
	case agent.TextAdded:
		n += len(f.Text)
	case agent.ReasoningAdded:
		n += len(f.Text)
	case agent.AnswerEnded:
		n += len(f.Text)
	case agent.TurnStarted:
		n += len(f.Text)
	case agent.CallProposed:
		n += len(f.Args) + len(f.Title)
	case agent.CallProgress:
		n += len(f.Text)
	case agent.CallEnded:
		n += len(f.Text)
		for _, c := range f.Changed {
			n += len(c.Diff) + len(c.Path)
		}
	case agent.Notice:
		n += len(f.Text)
	}
	return n
}
