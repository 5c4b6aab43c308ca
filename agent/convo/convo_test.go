package convo

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lakecode/lakecode/agent"
	"github.com/lakecode/lakecode/session"
)

func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// covers CONV-1 partly
func TestMessagesRunOneAfterTheOther(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDesk(t)
		if r := d.submit("hold 1"); r.Queued {
			t.Error("the first message is said to wait")
		}
		for _, text := range []string{"2", "3"} {
			if r := d.submit(text); !r.Queued {
				t.Errorf("message %s is not said to wait", text)
			}
		}
		d.check("running [2 3]")
		d.model.release()
		s := d.check("idle []")
		if s.Turns != 3 || s.Usage != (agent.Usage{Known: true, Input: 9, Output: 3}) || s.Title != "hold 1" {
			t.Errorf("state %+v", s)
		}
		// Each turn starts after the former one's final save.
		var got []string
		for _, e := range d.events(0) {
			switch f := e.Fact.(type) {
			case agent.TurnStarted:
				got = append(got, "start "+f.Text)
			case agent.TurnFinished:
				got = append(got, "end "+f.How)
			case agent.StateChanged:
				if f.State.Phase == agent.Idle && len(got) > 0 {
					got = append(got, "saved")
				}
			}
		}
		same(t, "events", []string{"start hold 1", "end completed", "saved", "start 2", "end completed", "saved", "start 3", "end completed", "saved"}, got)
		same(t, "history", []string{"hold 1: completed", "2: completed", "3: completed"}, history(d.stored()))
	})
}

// covers CONV-1 partly
func TestStopInEachPhase(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDesk(t)
		d.do(agent.Stop{}) // idle: accepted, without effect
		d.submit("1")
		d.check("idle []")

		for range 50 { // also before the turn has done anything
			d.submit("hold 2")
			d.do(agent.Stop{})
			d.check("idle []") // nothing waited, so nothing is paused
		}

		d.submit("hold 3")
		d.submit("4")
		d.do(agent.Stop{})
		d.do(agent.Stop{})
		s := d.check("idle [4] paused")
		if s.Phase != agent.Idle || !strings.Contains(s.QueueReason, "stopped") {
			t.Errorf("reason %q", s.QueueReason)
		}
		d.do(agent.ResumeQueue{})
		d.check("idle []")

		d.submit("hold 5")
		d.submit("6")
		d.settle()
		release := d.disk.hold()
		d.model.release()
		d.check("running [6]") // the answer cannot be stored yet
		d.do(agent.Stop{})
		release()
		d.check("idle [6] paused")
		d.do(agent.ResumeQueue{})
		d.check("idle []")
		want := slices.Concat([]string{"1: completed"}, slices.Repeat([]string{"hold 2: stopped"}, 50), []string{"hold 3: stopped", "4: completed", "hold 5: stopped", "6: completed"})
		same(t, "history", want, history(d.stored()))
	})
}

// A stop that comes while the turn is being saved holds the queue back too.
func TestStopWhileSavingHoldsTheQueue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDesk(t)
		d.submit("hold 1")
		d.submit("2")
		d.settle()
		d.disk.fail(errFull)
		d.model.release()
		d.check("blocked [2] paused") // the turn failed, which pauses the queue
		d.disk.fail(nil)
		release := d.disk.hold()
		d.do(agent.RetrySave{})
		d.check("saving [2] paused")
		d.do(agent.Stop{})
		release()
		d.check("idle [2] paused")
	})
}

// covers CONV-9 partly
func TestFailurePausesTheQueueAndANewMessageGoesThrough(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDesk(t)
		release := d.disk.hold()
		go func() { d.submit("fail 1") }()
		d.settle()
		go func() { d.submit("2") }()
		d.settle()
		release()
		d.check("idle [2] paused")
		d.submit("3")
		d.check("idle [2] paused")

		// Two messages are sent to the paused queue in one batch: both go through,
		// unless the person stops the first.
		hold := d.disk.hold()
		for _, text := range []string{"4", "hold 5", "6"} {
			go func() { d.submit(text) }()
			d.settle()
		}
		hold()
		d.check("running [2 6] paused")
		d.do(agent.Stop{})
		s := d.check("idle [2 6] paused")

		d.do(agent.DropQueued{ID: s.Queue[0].ID})
		d.check("idle [6] paused")
		d.refused(agent.DropQueued{ID: s.Queue[0].ID}, agent.NotFound)
		d.do(agent.DropQueued{ID: s.Queue[1].ID})
		d.check("idle []") // nothing is held back any more
		d.submit("7")
		d.check("idle []")
		a := d.stored()
		same(t, "history", []string{"fail 1: failed", "3: completed", "4: completed", "hold 5: stopped", "7: completed"}, history(a))
		if len(a.Queue) > 0 {
			t.Errorf("the stored queue is %+v", a.Queue)
		}
	})
}

func TestDropsAndTitlesAreStoredInOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDesk(t)
		d.submit("hold 1")
		for range 20 {
			d.do(agent.DropQueued{ID: d.submit("x").RequestID})
			d.do(agent.Rename{Title: "one"})
			d.do(agent.Rename{Title: " two  words "})
		}
		d.refused(agent.Rename{Title: " \n"}, agent.BadRequest)
		if s := d.check("running []"); s.Title != "two words" {
			t.Errorf("title %q", s.Title)
		}
		a := d.stored()
		same(t, "history", []string{"hold 1: stopped"}, history(a))
		if a.Title != "two words" || len(a.Queue) > 0 {
			t.Errorf("stored title %q, queue %v", a.Title, a.Queue)
		}
	})
}

func TestMessageThatCannotBeStoredIsNotAccepted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDesk(t)
		d.disk.fail(errFull)
		e := d.refused(agent.Submit{Text: "1", ClientRequestID: "r"}, agent.NotSaved)
		if !strings.Contains(e.Text, errFull.Error()) || e.Next == "" {
			t.Errorf("refused with %q %q", e.Text, e.Next)
		}
		d.check("idle []")
		d.disk.fail(nil)
		d.do(agent.Submit{Text: "1", ClientRequestID: "r"}) // the client tries again
		d.check("idle []")
		same(t, "history", []string{"1: completed"}, history(d.stored()))
	})
}

func TestBlockedUntilTheSaveSucceeds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDesk(t)
		d.refused(agent.RetrySave{}, agent.BadRequest)
		d.submit("hold 1")
		d.submit("2")
		d.settle()
		d.disk.fail(errFull)
		d.model.release()
		s := d.check("blocked [2] paused")
		if !strings.Contains(s.Blocked, errFull.Error()) || s.Turn == "" {
			t.Errorf("state %+v", s)
		}
		if e := d.refused(agent.Submit{Text: "3"}, agent.Blocked); e.Next == "" {
			t.Errorf("refused without a next step: %+v", e)
		}
		d.do(agent.ResumeQueue{})
		d.check("blocked [2]") // resumed, but nothing starts
		d.do(agent.RetrySave{})
		d.check("blocked [2]")
		d.disk.fail(nil)
		d.do(agent.RetrySave{})
		d.check("idle []")
		a := d.stored()
		same(t, "history", []string{"hold 1: failed", "2: completed"}, history(a))
		if got := a.Turns[0].Items[0]; got.Answer == nil || got.Answer.Text != "holding " {
			t.Errorf("the answer that could not be stored at first is %+v", got)
		}
	})
}

// What failed to be stored in the middle of a turn leaves a history that can be
// sent, in this process and the next.
func TestTurnGoesOnAfterAFullDisk(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDesk(t)
		release := d.disk.hold()
		go func() { d.submit("work 1") }()
		d.settle()
		d.disk.fail(nil)
		release()
		d.settle()
		for i := range 2 {
			d.submit("hold x")
			d.settle()
			d.disk.fail(errFull)
			d.model.release()
			d.check("blocked []")
			d.disk.fail(nil)
			d.do(agent.RetrySave{})
			d.check("idle []")
			d.submit("work again")
			d.check("idle []")
			if i == 0 {
				d.reopen()
			}
		}
		want := []string{"work 1: completed", "hold x: failed", "work again: completed", "hold x: failed", "work again: completed"}
		same(t, "history", want, history(d.stored()))
	})
}

func TestRepeatedSubmitHasOneReceipt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDesk(t)
		release := d.disk.hold()
		got := make(chan agent.Receipt, 3)
		for range 3 {
			go func() { got <- d.do(agent.Submit{Text: "1", ClientRequestID: "r"}) }()
		}
		d.settle()
		release()
		first := <-got
		same(t, "second receipt", first, <-got)
		same(t, "third receipt", first, <-got)
		d.check("idle []")
		d.refuse = agent.Errorf(agent.BadModel, "", "gone")
		same(t, "receipt after the model is gone", first, d.do(agent.Submit{Text: "1", ClientRequestID: "r"}))
		d.refused(agent.Submit{Text: "2", ClientRequestID: "s"}, agent.BadModel)
		d.refuse = nil
		d.reopen()
		if r := d.do(agent.Submit{Text: "1", ClientRequestID: "r"}); r.RequestID != first.RequestID {
			t.Errorf("after reopening it is %s, was %s", r.RequestID, first.RequestID)
		}
		same(t, "history", []string{"1: completed"}, history(d.stored()))
	})
}

func TestModelOfTheConversationIsTheDefault(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDesk(t)
		for _, m := range []agent.Choice{{}, {Provider: "p", Model: "big"}, {}, {Effort: "high"}} {
			d.do(agent.Submit{Text: "x", Model: m})
			d.settle()
		}
		d.reopen()
		d.submit("x")
		d.settle()
		var got []string
		for _, turn := range d.stored().Turns {
			got = append(got, strings.TrimSpace(turn.Message.Main.Model+" "+turn.Message.Main.Effort))
		}
		same(t, "models", []string{"m", "big", "big", "big high", "big high"}, got)
	})
}

func TestBadSubmitsAreRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDesk(t)
		d.refused(agent.Submit{Text: " \n"}, agent.BadRequest)
		d.refused(agent.Submit{Text: strings.Repeat("x", maxMessage+1)}, agent.BadRequest)
		d.refused(agent.Submit{Text: "x", Mode: agent.Plan}, agent.Unsupported)
		d.refused(agent.Resolve{Interaction: "none"}, agent.AlreadyResolved)
		d.check("idle []")
	})
}

// covers CONV-6 partly
func TestRestoredQueueWaitsForThePerson(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDesk(t)
		d.submit("hold 1")
		d.do(agent.Submit{Text: "2", Model: agent.Choice{Provider: "p", Model: "other"}})
		d.submit("3")
		d.settle()
		d.reopen()
		s := d.check("idle [2 3] paused")
		if s.Model.Model != "other" || s.Turns != 1 {
			t.Errorf("after reopening: %+v", s)
		}
		d.refuse = agent.Errorf(agent.BadModel, "Add it.", "The connection p is gone.")
		d.refused(agent.ResumeQueue{}, agent.BadModel)
		if s := d.check("idle [2 3] paused"); !strings.Contains(s.QueueReason, "The connection p is gone.") {
			t.Errorf("reason %q", s.QueueReason)
		}
		d.refuse = nil
		d.submit("hold 4") // goes through; what was accepted before still waits
		d.check("running [2 3] paused")
		d.submit("5")
		d.resolved.Store(0)
		d.do(agent.ResumeQueue{})
		if n := d.resolved.Load(); n != 2 {
			t.Errorf("%d choices were looked up: what is accepted in this process must not be", n)
		}
		d.model.release()
		d.check("idle []")
		want := []string{"hold 1: stopped", "hold 4: completed", "2: completed", "3: completed", "5: completed"}
		a := d.stored()
		same(t, "history", want, history(a))
		if a.Turns[2].Message.Main.Model != "other" {
			t.Errorf("message 2 ran with %+v", a.Turns[2].Message.Main)
		}
	})
}

// covers CONV-6 partly
func TestCloseInEachPhase(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(d *desk) (after func())
		history []string
		queue   []string
		err     agent.Code
	}{
		{"idle", func(d *desk) func() { d.submit("1"); return nil }, []string{"1: completed"}, nil, ""},
		{"running", func(d *desk) func() { d.submit("hold 1"); d.submit("2"); return nil }, []string{"hold 1: stopped"}, []string{"2"}, ""},
		{"asking", func(d *desk) func() {
			d.Attach()
			d.submit("ask 1")
			if d.settle().Interaction == nil {
				d.t.Error("nothing is asked")
			}
			return nil
		}, []string{"ask 1: stopped"}, nil, ""},
		{"accepting", func(d *desk) func() {
			release := d.disk.hold()
			for _, text := range []string{"1", "2"} {
				go func() { d.submit(text) }()
				d.settle()
			}
			return release
		}, []string{}, []string{"1", "2"}, ""},
		{"saving", func(d *desk) func() {
			d.submit("hold 1")
			d.settle()
			d.disk.fail(errFull)
			d.model.release()
			d.settle()
			d.disk.fail(nil)
			release := d.disk.hold()
			d.do(agent.RetrySave{})
			return release
		}, []string{"hold 1: failed"}, nil, ""},
		{"blocked, and the disk is mended", func(d *desk) func() {
			d.submit("hold 1")
			d.settle()
			d.disk.fail(errFull)
			d.model.release()
			d.settle()
			d.disk.fail(nil)
			return nil
		}, []string{"hold 1: failed"}, nil, ""},
		{"blocked", func(d *desk) func() {
			d.submit("hold 1")
			d.settle()
			d.disk.fail(errFull)
			d.model.release()
			return nil
		}, []string{"hold 1: open"}, nil, agent.NotSaved},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				d := newDesk(t)
				sub, err := d.Subscribe(0)
				if err != nil {
					t.Fatal(err)
				}
				after := c.prepare(d)
				d.settle()
				closed := make(chan error, 2)
				for range 2 {
					go func() { closed <- d.Close(context.Background()) }()
				}
				d.settle()
				if after != nil {
					after()
				}
				for range 2 {
					if err := <-closed; code(err) != c.err {
						t.Errorf("close: %v", err)
					}
				}
				d.refused(agent.Submit{Text: "late"}, agent.Closed)
				d.refused(agent.Stop{}, agent.Closed)
				if _, _, err := d.Snapshot(t.Context(), "", 0); code(err) != agent.Closed {
					t.Errorf("snapshot: %v", err)
				}
				last := uint64(0)
				for {
					e, err := sub.Next(t.Context())
					if errors.Is(err, agent.ErrClosed) {
						break
					}
					if err != nil {
						t.Fatal(err)
					}
					last = e.Seq
				}
				if d.State().Seq > last {
					t.Errorf("the subscriber got %d of %d events", last, d.State().Seq)
				}
				if again := d.events(0); len(again) == 0 || again[len(again)-1].Seq != last {
					t.Error("a closed conversation does not replay what happened")
				}
				log, a, err := d.store.Open(t.Context(), d.id)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = log.Close() }()
				same(t, "history", c.history, history(a))
				var queue []string
				for _, m := range a.Queue {
					queue = append(queue, m.Text)
				}
				same(t, "queue", c.queue, queue)
			})
		})
	}
}

func TestCloseReturnsWhenItsContextEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDesk(t)
		release := d.disk.hold()
		go func() { d.submit("1") }()
		d.settle()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := d.Close(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("close: %v", err)
		}
		release()
		same(t, "history", []string{}, history(d.stored()))
	})
}

// A panic in a turn ends the turn, and only that.
func TestPanicEndsOnlyTheTurn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDesk(t)
		d.submit("work 1")
		d.submit("panic 2")
		d.check("idle []")
		d.submit("work 3")
		d.check("idle []")
		a := d.stored()
		same(t, "history", []string{"work 1: completed", "panic 2: failed", "work 3: completed"}, history(a))
		if a.Turns[1].End.Kind != "internal" || a.Turns[1].End.Error == "" {
			t.Errorf("ended as %+v", a.Turns[1].End)
		}
	})
}

// covers CONV-8 partly
func TestQuestionOfATurn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDesk(t)
		d.submit("ask 1") // nobody is there: it goes on by itself
		d.check("idle []")
		release := d.Attach()
		defer release()
		d.submit("ask 2")
		s := d.check("running []")
		if s.Interaction == nil || s.Interaction.Text != "which?" {
			t.Fatalf("on display: %+v", s.Interaction)
		}
		id := s.Interaction.ID
		d.refused(agent.Resolve{Interaction: id}, agent.BadRequest)
		r := d.do(agent.Resolve{Interaction: id, Decision: agent.Decision{Chosen: []int{1}}})
		d.refused(agent.Resolve{Interaction: id, Decision: agent.Decision{Chosen: []int{0}}}, agent.AlreadyResolved)
		if s := d.check("idle []"); s.Interaction != nil {
			t.Errorf("still on display: %+v", s.Interaction)
		}
		if !slices.ContainsFunc(d.events(r.Seq), func(e agent.Event) bool {
			a, ok := e.Fact.(agent.Answered)
			return ok && a.Interaction == id && a.How == "answered"
		}) {
			t.Error("the answer's event is not after its receipt")
		}
		var texts []string
		for _, turn := range d.stored().Turns {
			for _, it := range turn.Items {
				if it.Result != nil {
					text, _, _ := strings.Cut(it.Result.Text, "\n")
					texts = append(texts, string(it.Result.Outcome)+": "+text)
				}
			}
		}
		same(t, "results", []string{"failed: Not asked: nobody is connected who could answer.", "ok: The person chose: b"}, texts)
	})
}

var _ Store = (*session.Log)(nil)
