package loop

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/lakecode/lakecode/agent"
	"github.com/lakecode/lakecode/providers"
	"github.com/lakecode/lakecode/session"
)

// ask makes one model request, streams the answer and stores it, complete or
// not. An answer that did not end properly has no calls.
func (t *turn) ask(ctx context.Context) (session.Answer, providers.Stop, error) {
	item := fmt.Sprintf("%s/%d", t.Turn, t.request)
	var text, reasoning strings.Builder
	var done *providers.Done
	var failure error
	req := providers.Request{System: t.System, Messages: t.History.Messages(), Tools: t.specs, CacheKey: t.CacheKey}
	for d, err := range t.Client.Stream(ctx, t.Snapshot, req) {
		if err != nil {
			failure = err
			break
		}
		if _, again := d.(providers.Retrying); !again && t.first.IsZero() {
			t.first = time.Now()
		}
		switch d := d.(type) {
		case providers.TextDelta:
			text.WriteString(d.Text)
			t.Emit(agent.TextAdded{Item: item, Text: d.Text})
		case providers.ReasoningDelta:
			reasoning.WriteString(d.Text)
			t.Emit(agent.ReasoningAdded{Item: item, Text: d.Text})
		case providers.CallDelta:
			t.Emit(agent.CallWriting{Item: item, Index: d.Index, Tool: d.Name, Bytes: d.Bytes})
		case providers.Retrying:
			t.Emit(agent.Retrying{Attempt: d.Attempt, Wait: d.Wait, Reason: d.Err.Error()})
		case providers.Done:
			done = &d
		}
	}
	a := session.Answer{Text: text.String(), Reasoning: reasoning.String(), Interrupted: done == nil}
	stop := providers.StopEnd
	if done != nil {
		stop = done.Stop
		t.take(&a, *done)
	}
	if a.Text != "" || a.Reasoning != "" || len(a.Calls) > 0 {
		t.History.AddAnswer(a)
		facts := []agent.Fact{agent.AnswerEnded{Item: item, Text: a.Text, Interrupted: a.Interrupted}}
		for _, c := range a.Calls {
			facts = append(facts, agent.CallProposed{Call: c.ID, Tool: t.canonical(c.Name), Title: Title(c.Args), Args: c.Args})
		}
		// The answer is stored before any of its calls runs, and also when the
		// person has just stopped the turn.
		rec := session.ItemAdded{Turn: t.Turn, Item: session.Item{ID: item, Answer: &a}}
		if err := t.Append(context.WithoutCancel(ctx), false, []session.Record{rec}, facts...); err != nil && failure == nil {
			failure = fmt.Errorf("%w: %w", errUnwritten, err)
		}
	}
	return a, stop, failure
}

// take completes a from a stream that ended properly.
func (t *turn) take(a *session.Answer, d providers.Done) {
	for _, w := range d.Warnings {
		t.Log.Warn("provider deviates: " + w)
	}
	for _, p := range d.Parts {
		switch p := p.(type) {
		case providers.Reasoning:
			a.ReasoningField = p.Field
		case providers.ToolCall:
			a.Calls = append(a.Calls, session.Call{ID: t.History.UniqueID(p.ID), Name: p.Name, Args: p.Args})
		}
	}
	if d.Usage.Known {
		u := storedUsage(d.Usage)
		a.Usage = &u
		t.usage = t.usage.Add(d.Usage)
		t.Emit(agent.UsageReported{Usage: UsageOf(d.Usage)})
	}
}
