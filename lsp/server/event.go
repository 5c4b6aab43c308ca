package server

import (
	"time"

	"github.com/lakecode/lakecode/agent"
	"github.com/lakecode/lakecode/lsp/wire"
)

// EventOf returns the wire form of an event, and nil for a fact it does not
// know. A change of state becomes a *wire.StateChanged; on an LSP connection
// its state travels as lakecode/state instead.
func EventOf(e agent.Event) wire.Event {
	ev := eventOf(e.Fact)
	if ev == nil {
		return nil
	}
	h := ev.Header()
	h.Seq, h.TurnID, h.Time = e.Seq, e.Request, e.Time
	return ev
}

func eventOf(f agent.Fact) wire.Event {
	switch f := f.(type) {
	case agent.TurnStarted:
		return &wire.TurnStarted{Head: head(wire.KindTurnStarted), Text: f.Text, Mode: wire.Mode(f.Mode), Model: modelOf(f.Model)}
	case agent.TextAdded:
		return &wire.MessageDelta{Head: head(wire.KindMessageDelta), ItemID: f.Item, Text: f.Text}
	case agent.ReasoningAdded:
		return &wire.ReasoningDelta{Head: head(wire.KindReasoningDelta), ItemID: f.Item, Text: f.Text}
	case agent.AnswerEnded:
		return &wire.MessageEnded{Head: head(wire.KindMessageEnded), ItemID: f.Item, Text: f.Text, Interrupted: f.Interrupted}
	case agent.CallWriting:
		return &wire.CallWriting{Head: head(wire.KindCallWriting), ItemID: f.Item, Index: f.Index, Tool: f.Tool, Bytes: f.Bytes}
	case agent.CallProposed:
		return &wire.CallProposed{Head: head(wire.KindCallProposed), CallID: f.Call, Tool: f.Tool, Title: f.Title, Args: f.Args, Parent: f.Parent}
	case agent.CallStarted:
		return &wire.CallStarted{Head: head(wire.KindCallStarted), CallID: f.Call}
	case agent.CallProgress:
		return &wire.CallProgress{Head: head(wire.KindCallProgress), CallID: f.Call, Text: f.Text}
	case agent.CallEnded:
		return &wire.CallEnded{
			Head: head(wire.KindCallEnded), CallID: f.Call, Outcome: f.Outcome, Text: f.Text,
			Cut: f.Cut, Changed: changesOf(f.Changed), TookMs: f.Took.Milliseconds(),
		}
	case agent.Retrying:
		return &wire.Retrying{Head: head(wire.KindRetrying), Attempt: f.Attempt, WaitMs: f.Wait.Milliseconds(), Reason: f.Reason}
	case agent.UsageReported:
		return &wire.UsageReported{Head: head(wire.KindUsage), Usage: usageOf(f.Usage)}
	case agent.Asked:
		return &wire.InteractionRequested{Head: head(wire.KindInteractionRequested), Interaction: interactionOf(f.Interaction)}
	case agent.Answered:
		return &wire.InteractionResolved{Head: head(wire.KindInteractionResolved), InteractionID: f.Interaction, How: f.How}
	case agent.TurnFinished:
		return &wire.TurnFinished{Head: head(wire.KindTurnFinished), How: f.How, Error: failureOf(f.Error), Usage: usageOf(f.Usage)}
	case agent.Notice:
		return &wire.NoticeShown{Head: head(wire.KindNotice), Level: f.Level, Text: f.Text}
	case agent.StateChanged:
		return &wire.StateChanged{Head: head(wire.KindStateChanged), State: StateOf(f.State)}
	}
	return nil
}

func head(k wire.Kind) wire.Head { return wire.Head{Kind: k} }

// StateOf returns the wire form of a state.
func StateOf(s agent.State) wire.State {
	out := wire.State{
		ConversationID: s.Session, Seq: s.Seq, Epoch: s.Epoch, Cwd: s.Root,
		Phase: wire.Phase(s.Phase), TurnID: s.Turn, Queue: make([]wire.Queued, 0, len(s.Queue)),
		QueuePaused: s.QueuePaused, QueueReason: s.QueueReason, Blocked: s.Blocked,
		Title: s.Title, Mode: wire.Mode(s.Mode), Model: modelOf(s.Model), Usage: usageOf(s.Usage), Turns: s.Turns,
	}
	for _, q := range s.Queue {
		out.Queue = append(out.Queue, wire.Queued{MessageID: q.ID, Text: q.Text, Mode: wire.Mode(q.Mode), Model: modelOf(q.Model)})
	}
	if s.Interaction != nil {
		card := interactionOf(*s.Interaction)
		out.Interaction = &card
	}
	return out
}

// TurnOf returns the wire form of a turn of the history.
func TurnOf(t agent.TurnView) wire.Turn {
	out := wire.Turn{
		TurnID: t.ID, Text: t.Text, Mode: wire.Mode(t.Mode), Model: modelOf(t.Model), Started: t.Started,
		Items: make([]wire.Item, 0, len(t.Items)), How: t.How, Error: t.Error, Usage: usageOf(t.Usage),
	}
	for _, i := range t.Items {
		out.Items = append(out.Items, wire.Item{
			ItemID: i.ID, Kind: i.Kind, Text: i.Text, Reasoning: i.Reasoning, Interrupted: i.Interrupted,
			CallID: i.Call, Tool: i.Tool, Title: i.Title, Args: i.Args, Outcome: i.Outcome, Cut: i.Cut,
			Changed: changesOf(i.Changed), TookMs: i.Took.Milliseconds(),
		})
	}
	return out
}

func sessionOf(s agent.SessionInfo) wire.Session {
	return wire.Session{
		ConversationID: s.ID, Cwd: s.Root, Title: s.Title, Created: s.Created, Updated: s.Updated,
		Turns: s.Turns, Queued: s.Queued, Open: s.Open, Problem: s.Problem,
	}
}

func interactionOf(i agent.Interaction) wire.Interaction {
	out := wire.Interaction{
		InteractionID: i.ID, Kind: i.Kind, CallID: i.Call, Text: i.Text, Context: i.Context,
		Options: make([]wire.Option, 0, len(i.Options)), FreeText: i.FreeText, Multi: i.Multi,
	}
	for _, o := range i.Options {
		out.Options = append(out.Options, wire.Option(o))
	}
	return out
}

func changesOf(all []agent.FileChange) []wire.FileChange {
	out := make([]wire.FileChange, 0, len(all))
	for _, c := range all {
		out = append(out, wire.FileChange{Path: c.Path, Kind: c.Kind, Added: c.Added, Removed: c.Removed, Diff: c.Diff})
	}
	if len(out) == 0 {
		return nil // left out on the wire
	}
	return out
}

func failureOf(f *agent.Failure) *wire.Failure {
	if f == nil {
		return nil
	}
	return &wire.Failure{Kind: f.Kind, Message: f.Message, Next: f.Next}
}

func modelOf(c agent.Choice) wire.Model {
	return wire.Model{Provider: c.Provider, Model: c.Model, Effort: c.Effort}
}

func choiceOf(m wire.Model) agent.Choice {
	return agent.Choice{Provider: m.Provider, Model: m.Model, Effort: m.Effort}
}

func usageOf(u agent.Usage) wire.Usage {
	if !u.Known {
		return wire.Usage{}
	}
	return wire.Usage{InputTokens: u.Input, CachedTokens: u.Cached, OutputTokens: u.Output, ReasoningTokens: u.Reasoning}
}

// laggedAt returns the event that ends a subscription whose reader fell behind.
func laggedAt(seq uint64, at time.Time) wire.Event {
	h := head(wire.KindLagged)
	h.Seq, h.Time = seq, at
	return &wire.Lagged{Head: h}
}
