package server

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lakecode/lakecode/agent"
	"github.com/lakecode/lakecode/lsp/wire"
)

// subscribed is an editor with one conversation whose events it gets.
func subscribed(t testing.TB) (*editor, *fakeConv) {
	e := serve(t, full)
	c := e.conversation()
	e.ok(wire.ConversationSubscribe, `{"conversationId":"s1"}`)
	return e, c
}

// event waits for an event of a kind.
func (e *editor) event(k wire.Kind) wire.Event {
	e.t.Helper()
	var found wire.Event
	e.await("event "+string(k), func(m message) bool {
		if m.Method != wire.EventsNote {
			return false
		}
		var b wire.Events
		into(e.t, m.Params, &b)
		for _, ev := range b.Events {
			if ev.Header().Kind == k {
				found = ev
			}
		}
		return found != nil
	})
	return found
}

func TestEveryFactReachesTheEditor(t *testing.T) {
	e, c := subscribed(t)
	card := agent.Interaction{ID: "i", Kind: "question", Text: "?", Options: []agent.Option{{Label: "a"}}}
	facts := []agent.Fact{
		agent.TurnStarted{Text: "fix", Mode: agent.Build, Model: agent.Choice{Provider: "p", Model: "m"}},
		agent.ReasoningAdded{Item: "a1", Text: "hm"},
		agent.TextAdded{Item: "a1", Text: "<b>&"},
		agent.CallWriting{Item: "a1", Tool: "bash", Bytes: 5},
		agent.AnswerEnded{Item: "a1", Text: "<b>&"},
		agent.CallProposed{Call: "c1", Tool: "bash", Title: "ls", Args: "{}"},
		agent.CallStarted{Call: "c1"},
		agent.CallProgress{Call: "c1", Text: "out\xff"},
		agent.CallEnded{Call: "c1", Outcome: "ok", Text: "out", Changed: []agent.FileChange{{Path: "a", Kind: "create"}}, Took: time.Second},
		agent.Retrying{Attempt: 1, Wait: 2 * time.Second, Reason: "429"},
		agent.UsageReported{Usage: agent.Usage{Known: true, Input: 3}},
		agent.Asked{Interaction: card},
		agent.Answered{Interaction: "i", How: "answered"},
		agent.Notice{Level: "info", Text: "n"},
		agent.StateChanged{State: agent.State{Phase: agent.Running, Interaction: &card}},
		agent.TurnFinished{How: "failed", Error: &agent.Failure{Kind: "auth", Message: "m", Next: "n"}},
	}
	c.publish(facts...)
	e.event(wire.KindTurnFinished)
	all, _ := e.events()
	var got, want []wire.Kind
	for _, ev := range all {
		got = append(got, ev.Header().Kind)
	}
	want = wire.Kinds()
	want = slices.DeleteFunc(want, func(k wire.Kind) bool { return k == wire.KindStateChanged || k == wire.KindLagged })
	slices.Sort(want)
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("kinds (-want +got):\n%s", d)
	}
	if p := e.event(wire.KindCallProgress).(*wire.CallProgress); p.Text != "out\ufffd" {
		t.Errorf("text that is not UTF-8 became %q", p.Text)
	}
	m := e.await("state", func(m message) bool {
		return m.Method == wire.StateNote && strings.Contains(string(m.Params), `"phase":"running"`)
	})
	var state wire.State
	into(t, m.Params, &state)
	if state.Seq != 15 || state.Interaction == nil || state.Interaction.InteractionID != "i" || state.Queue == nil {
		t.Errorf("state %s", m.Params)
	}
	for _, m := range e.messages() {
		if strings.Contains(string(m.Params), "null") {
			t.Errorf("null on the wire: %s", m.Params)
		}
	}
}

func TestFragmentsAreMergedInBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, c := subscribed(t)
		time.Sleep(time.Second) // silence
		synctest.Wait()
		start := time.Now()
		// 200 fragments a second for a second, as a fast model gives them.
		for i := range 200 {
			c.publish(agent.TextAdded{Item: "a", Text: strconv.Itoa(i) + " "})
			synctest.Wait()
			time.Sleep(5 * time.Millisecond)
		}
		c.publish(agent.CallStarted{Call: "c"})
		e.event(wire.KindCallStarted)
		var notes []message
		for _, m := range e.messages() {
			if m.Method == wire.EventsNote {
				notes = append(notes, m)
			}
		}
		if d := notes[0].at.Sub(start); d != 0 {
			t.Errorf("the first fragment after the silence waited %v", d)
		}
		text, last := "", time.Time{}
		for _, m := range notes {
			var b wire.Events
			into(t, m.Params, &b)
			for _, ev := range b.Events {
				if d, ok := ev.(*wire.MessageDelta); ok {
					text += d.Text
					if wait := m.at.Sub(d.Time); wait > batchTime {
						t.Errorf("fragment %d waited %v", d.Seq, wait)
					}
				}
			}
			if !last.IsZero() && m.at.Sub(last) < batchTime {
				t.Errorf("two batches %v apart", m.at.Sub(last))
			}
			last = m.at
		}
		var want strings.Builder
		for i := range 200 {
			fmt.Fprint(&want, i, " ")
		}
		if text != want.String() {
			t.Errorf("text %q", text)
		}
		if most := int(time.Second/batchTime) + 2; len(notes) > most || len(notes) < most/2 {
			t.Errorf("%d batches for a second of fragments", len(notes))
		}
		if d := e.event(wire.KindCallStarted).Header(); d.Seq != 201 {
			t.Errorf("number %d", d.Seq)
		}
		e.to.Close()
		e.from.Close()
	})
}

func TestFullBatchDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, c := subscribed(t)
		start := time.Now()
		for range 40 {
			c.publish(agent.CallEnded{Call: "c", Text: strings.Repeat("x", 10<<10)})
		}
		c.publish(agent.CallStarted{Call: "c"})
		e.event(wire.KindCallStarted)
		for _, m := range e.messages() {
			if m.Method == wire.EventsNote && len(m.Params) > batchSize+20<<10 {
				t.Errorf("a batch of %d bytes", len(m.Params))
			}
		}
		if d := time.Since(start); d > batchTime {
			t.Errorf("400 KiB took %v", d)
		}
		e.to.Close()
		e.from.Close()
	})
}

func TestSubscribeReplaysOrAsksForASnapshot(t *testing.T) {
	e := serve(t, full)
	c := e.conversation()
	for i := range 10 {
		c.publish(agent.CallStarted{Call: strconv.Itoa(i + 1)})
	}
	c.forget(4)
	sub := func(more string) (r wire.SubscribeResult) {
		into(t, e.ok(wire.ConversationSubscribe, `{"conversationId":"s1"`+more+`}`), &r)
		return r
	}
	const epoch = "epoch-1"
	for more, want := range map[string]wire.SubscribeResult{
		`,"sinceSeq":3,"epoch":"epoch-1"`:  {SnapshotRequired: true, Epoch: epoch}, // not kept
		`,"sinceSeq":5,"epoch":"older"`:    {SnapshotRequired: true, Epoch: epoch},
		`,"sinceSeq":11,"epoch":"epoch-1"`: {SnapshotRequired: true, Epoch: epoch},
	} {
		if d := cmp.Diff(want, sub(more)); d != "" {
			t.Errorf("%s (-want +got):\n%s", more, d)
		}
	}
	e.alive()
	if all, _ := e.events(); len(all) != 0 {
		t.Errorf("events without a subscription: %v", all)
	}
	if d := cmp.Diff(wire.SubscribeResult{Epoch: epoch, Seq: 7}, sub(`,"sinceSeq":7,"epoch":"epoch-1"`)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	c.publish(agent.CallStarted{Call: "11"}, agent.Notice{Level: "info", Text: "end"})
	e.event(wire.KindNotice)
	all, batches := e.events()
	var got []string
	for _, ev := range all {
		if s, ok := ev.(*wire.CallStarted); ok {
			got = append(got, s.CallID)
		}
	}
	if d := cmp.Diff([]string{"8", "9", "10", "11"}, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if batches[0].Epoch != epoch || batches[0].ConversationID != "s1" {
		t.Errorf("%+v", batches[0])
	}
	// A second subscription takes the place of the first: nothing comes twice.
	if d := cmp.Diff(wire.SubscribeResult{Epoch: epoch, Seq: 12}, sub(`,"sinceSeq":12,"epoch":"epoch-1"`)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	c.publish(agent.Retrying{Attempt: 1})
	e.event(wire.KindRetrying)
	e.alive()
	if again, _ := e.events(); len(again) != len(all)+1 {
		t.Errorf("%d events after one more than %d", len(again), len(all))
	}
}

// Subscribing again and again while things happen repeats and loses nothing.
func TestResubscribingBringsEachEventOnce(t *testing.T) {
	e := serve(t, full)
	c := e.conversation()
	const rounds = 100
	for i := range rounds {
		e.ok(wire.ConversationSubscribe, fmt.Sprintf(`{"conversationId":"s1","sinceSeq":%d,"epoch":"epoch-1"}`, i))
		c.publish(agent.CallStarted{Call: fmt.Sprint(i)})
		for { // the event must have come, so that the next one goes on from it
			all, _ := e.events()
			if n := len(all); n > i {
				break
			}
			e.event(wire.KindCallStarted)
		}
	}
	e.alive()
	all, _ := e.events()
	var want, got []string
	for i := range rounds {
		want = append(want, fmt.Sprint(i))
	}
	for _, ev := range all {
		got = append(got, ev.(*wire.CallStarted).CallID)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// The state of a conversation says the number of the last change, which may be
// far behind while a long answer streams.
func TestSubscriptionWithoutANumberBeginsAtTheState(t *testing.T) {
	e := serve(t, full)
	c := e.conversation()
	c.publish(agent.CallStarted{Call: "1"}, agent.StateChanged{State: agent.State{Phase: agent.Running}}, agent.CallStarted{Call: "2"})
	var r wire.SubscribeResult
	into(t, e.ok(wire.ConversationSubscribe, `{"conversationId":"s1"}`), &r)
	if d := cmp.Diff(wire.SubscribeResult{Epoch: "epoch-1", Seq: 2}, r); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if s := e.event(wire.KindCallStarted).(*wire.CallStarted); s.CallID != "2" {
		t.Errorf("call %s", s.CallID)
	}
	c.forget(3)
	into(t, e.ok(wire.ConversationSubscribe, `{"conversationId":"s1"}`), &r)
	if !r.SnapshotRequired {
		t.Error("events were lost silently")
	}
}

func TestConversationOpenedWhileMuchHappensIsWatched(t *testing.T) {
	e := serve(t, full)
	c := newFakeConv("s7", "/ws")
	e.host.mu.Lock()
	e.host.convs["s7"] = c
	e.host.mu.Unlock()
	c.publish(agent.CallStarted{Call: "1"}, agent.CallStarted{Call: "2"})
	c.forget(2) // behind the number of the state
	e.ok(wire.ConversationOpen, `{"conversationId":"s7"}`)
	c.publish(agent.StateChanged{State: agent.State{Phase: agent.Running}})
	e.await("state", func(m message) bool {
		return m.Method == wire.StateNote && strings.Contains(string(m.Params), `"phase":"running"`)
	})
	e.await("status", func(m message) bool {
		return m.Method == wire.StatusNote && strings.Contains(string(m.Params), `"activeTurns":1`)
	})
	if all, _ := e.events(); len(all) != 0 {
		t.Errorf("events without a subscription: %v", all)
	}
}

func TestAnswerToSubscribeComesBeforeTheEvents(t *testing.T) {
	e := serve(t, full)
	c := e.conversation()
	c.publish(agent.CallStarted{Call: "c"})
	e.alive() // the next write of the table is ordered after the last read
	subscribe := e.srv.methods[wire.ConversationSubscribe]
	e.srv.methods["test/slow"] = func(ctx context.Context, params []byte) (any, waiting, error) {
		result, wait, err := subscribe(ctx, params)
		time.Sleep(50 * time.Millisecond) // an answer that takes its time
		return result, wait, err
	}
	id := e.request("test/slow", `{"conversationId":"s1","epoch":"epoch-1"}`)
	e.event(wire.KindCallStarted)
	for _, m := range e.messages() {
		if m.Method == wire.EventsNote {
			t.Fatal("the event came first")
		}
		if string(m.ID) == id && m.Method == "" {
			break
		}
	}
}

func TestReaderThatFellBehindIsToldAndCanComeBack(t *testing.T) {
	e, c := subscribed(t)
	c.mu.Lock()
	c.maxLag = 100
	c.mu.Unlock()
	facts := make([]agent.Fact, 500)
	for i := range facts {
		facts[i] = agent.CallStarted{Call: "c"}
	}
	c.publish(facts...)
	lag := e.event(wire.KindLagged)
	if lag.Header().Seq != 500 {
		t.Errorf("lagged at %d", lag.Header().Seq)
	}
	e.await("state", func(m message) bool {
		return m.Method == wire.StateNote && strings.Contains(string(m.Params), `"seq":500`)
	})
	c.publish(agent.Notice{Level: "info", Text: "unseen"})
	var page wire.TranscriptResult
	into(t, e.ok(wire.ConversationTranscript, `{"conversationId":"s1"}`), &page)
	e.ok(wire.ConversationSubscribe, fmt.Sprintf(`{"conversationId":"s1","sinceSeq":%d,"epoch":%q}`, page.State.Seq, page.State.Epoch))
	c.publish(agent.Retrying{Attempt: 1})
	e.event(wire.KindRetrying)
	all, _ := e.events()
	for _, ev := range all {
		if ev.Header().Kind == wire.KindNotice {
			t.Error("an event of the time without a subscription came")
		}
	}
}
