package convo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lakecode/lakecode/agent"
)

// ledger is what a person knows: which messages were accepted and which they
// took back.
type ledger struct {
	accepted map[string]string // text by id
	dropped  map[string]bool   // by id
}

// check compares the ledger with the log: every accepted message is in exactly
// one place, ran at most once, and a completed one ran.
func (l *ledger) check(d *desk) {
	d.t.Helper()
	a := d.stored()
	where := map[string][]string{}
	for _, turn := range a.Turns {
		id := turn.Message.ID
		where[id] = append(where[id], "history")
		if n := d.model.count(turn.Message.Text); string(turn.End.How) == "completed" && n == 0 {
			d.t.Errorf("%q is completed and was never sent to the model", turn.Message.Text)
		}
	}
	for _, m := range a.Queue {
		where[m.ID] = append(where[m.ID], "queue")
		if n := d.model.count(m.Text); n > 0 {
			d.t.Errorf("%q is in the queue and was sent to the model %d times", m.Text, n)
		}
	}
	for id := range l.dropped {
		where[id] = append(where[id], "dropped")
	}
	for id, text := range l.accepted {
		if len(where[id]) != 1 {
			d.t.Errorf("message %q is in %v", text, where[id])
		}
		delete(where, id)
	}
	if len(where) > 0 {
		d.t.Errorf("not accepted, and yet there: %v", where)
	}
}

// covers CONV-1 partly
// covers CONV-6 partly
func TestRandomCommandsLoseNoMessage(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rounds, steps := 25, 60
	if testing.Short() {
		rounds = 5
	}
	t.Logf("seed %d", seed)
	for round := range rounds {
		rng := rand.New(rand.NewPCG(seed, uint64(round)))
		bubble(t, func(t *testing.T) {
			d := newDesk(t)
			d.Attach()
			l := &ledger{accepted: map[string]string{}, dropped: map[string]bool{}}
			var log []string
			for n := range steps {
				log = append(log, l.step(d, rng, n))
				if rng.IntN(3) > 0 {
					synctest.Wait()
				}
				if s := d.State(); s.QueuePaused && len(s.Queue) == 0 && d.settle().QueuePaused && len(d.State().Queue) == 0 {
					t.Fatalf("an empty queue is paused")
				}
			}
			d.disk.fail(nil)
			if d.settle().Phase == agent.Stuck {
				d.do(agent.RetrySave{})
			}
			synctest.Wait()
			l.check(d)
			if t.Failed() {
				t.Logf("round %d of seed %d: %s", round, seed, strings.Join(log, ", "))
			}
		})
		if t.Failed() {
			return
		}
	}
}

// step does one random thing and returns its name.
func (l *ledger) step(d *desk, rng *rand.Rand, n int) string {
	do := func(c agent.Command) (agent.Receipt, string) {
		r, err := d.Do(context.Background(), c)
		var ae *agent.Error
		if err != nil && !errors.As(err, &ae) {
			d.t.Errorf("%T: %v", c, err)
		}
		if err != nil {
			return r, fmt.Sprintf("%T refused: %v", c, err)
		}
		return r, fmt.Sprintf("%T", c)
	}
	s := d.State()
	switch k := rng.IntN(20); {
	case k < 8:
		verb := []string{"say", "say", "hold", "fail", "ask", "work", "panic"}[rng.IntN(7)]
		text := fmt.Sprintf("%s %d", verb, n)
		r, what := do(agent.Submit{Text: text, ClientRequestID: fmt.Sprint(n)})
		if r.RequestID != "" {
			l.accepted[r.RequestID] = text
			if again, _ := do(agent.Submit{Text: text, ClientRequestID: fmt.Sprint(n)}); again.RequestID != r.RequestID {
				d.t.Errorf("a repeated submit made %q of %q", again.RequestID, r.RequestID)
			}
		}
		return what + " " + text
	case k < 10:
		_, what := do(agent.Stop{})
		return what
	case k < 12:
		_, what := do(agent.ResumeQueue{})
		return what
	case k < 14 && len(s.Queue) > 0:
		id := s.Queue[rng.IntN(len(s.Queue))].ID
		_, what := do(agent.DropQueued{ID: id})
		if !strings.Contains(what, "refused") {
			l.dropped[id] = true
		}
		return what
	case k < 15:
		d.model.release()
		return "release"
	case k < 16 && s.Interaction != nil:
		_, what := do(agent.Resolve{Interaction: s.Interaction.ID, Decision: agent.Decision{Chosen: []int{0}}})
		return what
	case k < 17:
		_, what := do(agent.Rename{Title: fmt.Sprint("title ", n)})
		return what
	case k < 18:
		if rng.IntN(2) == 0 {
			d.disk.fail(errFull)
			return "disk full"
		}
		d.disk.fail(nil)
		return "disk mended"
	case k < 19:
		_, what := do(agent.RetrySave{})
		return what
	default:
		d.disk.fail(nil)
		d.reopen()
		d.Attach()
		return "reopen"
	}
}

func TestThousandSubmitsAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDesk(t)
		const messages = 1000
		var mu sync.Mutex
		ids := map[string][]string{} // by client request id
		var wg sync.WaitGroup
		for i := range messages {
			for range 2 {
				wg.Go(func() {
					r, err := d.Do(t.Context(), agent.Submit{Text: fmt.Sprint("say ", i), ClientRequestID: fmt.Sprint(i)})
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					ids[fmt.Sprint(i)] = append(ids[fmt.Sprint(i)], r.RequestID)
				})
			}
		}
		wg.Wait()
		d.check("idle []")
		l := &ledger{accepted: map[string]string{}}
		for i, got := range ids {
			if len(got) != 2 || got[0] != got[1] {
				t.Errorf("message %s: receipts %v", i, got)
			}
			l.accepted[got[0]] = "say " + i
		}
		if len(l.accepted) != messages {
			t.Errorf("%d messages, want %d", len(l.accepted), messages)
		}
		l.check(d)
	})
}

// covers CONV-2 partly
func TestAnswerRacesWithStop(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDesk(t)
		d.Attach()
		answered := 0
		for i := range 200 {
			d.submit(fmt.Sprint("ask ", i))
			id := d.settle().Interaction.ID
			var wg sync.WaitGroup
			var refusal error
			race := []func(){
				func() {
					_, refusal = d.Do(t.Context(), agent.Resolve{Interaction: id, Decision: agent.Decision{Chosen: []int{0}}})
				},
				func() { d.do(agent.Stop{}) },
			}
			wg.Go(race[i%2])
			wg.Go(race[1-i%2])
			wg.Wait()
			if s := d.check("idle []"); s.Interaction != nil {
				t.Fatalf("round %d: %s is still on display", i, s.Interaction.ID)
			}
			if refusal == nil {
				answered++
			} else if code(refusal) != agent.AlreadyResolved {
				t.Fatal(refusal)
			}
		}
		t.Logf("%d of 200 answers won", answered)
		open := 0
		for _, e := range d.events(0) {
			switch e.Fact.(type) {
			case agent.Asked:
				open++
			case agent.Answered:
				open--
			}
		}
		if open != 0 {
			t.Errorf("%d questions have no end", open)
		}
	})
}

// Two questions are asked at once while one is answered and the others are
// withdrawn: what is shown last must be what the gate waits for.
func TestGateTellsItsTransitionsInOrder(t *testing.T) {
	for range 200 {
		g, s := newTestGate()
		g.attach()
		hide := g.hide
		g.hide = func(id, how string) { // slowly, as when the mailbox is full
			time.Sleep(50 * time.Microsecond)
			hide(id, how)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() { _, _ = g.ask(ctx, question(fmt.Sprint(i))) })
		}
		for len(s.take()) == 0 {
			time.Sleep(time.Microsecond)
		}
		wg.Go(func() {
			first := strings.TrimPrefix(s.take()[0], "show ")
			_ = g.resolve(first, agent.Decision{Skip: true})
		})
		wg.Go(cancel)
		wg.Wait()
		shown := ""
		for _, l := range s.take() {
			verb, rest, _ := strings.Cut(l, " ")
			id, _, _ := strings.Cut(rest, " ")
			switch {
			case verb == "show" && shown == "":
				shown = id
			case verb == "hide" && shown == id:
				shown = ""
			default:
				t.Fatalf("out of order: %v", s.take())
			}
		}
		if shown != "" {
			t.Fatalf("%s stays on display: %v", shown, s.take())
		}
	}
}

// screen is what a client makes of a snapshot and the events after it.
type screen struct{ turns []agent.TurnView }

func (s *screen) turn(id string) *agent.TurnView {
	at := slices.IndexFunc(s.turns, func(t agent.TurnView) bool { return t.ID == id })
	if at < 0 {
		s.turns = append(s.turns, agent.TurnView{ID: id})
		at = len(s.turns) - 1
	}
	return &s.turns[at]
}

func item(t *agent.TurnView, id, kind string) *agent.ItemView {
	at := slices.IndexFunc(t.Items, func(i agent.ItemView) bool { return i.ID == id })
	if at < 0 {
		t.Items = append(t.Items, agent.ItemView{ID: id, Kind: kind, Call: map[bool]string{true: id}[kind == "call"]})
		at = len(t.Items) - 1
	}
	return &t.Items[at]
}

func (s *screen) take(e agent.Event) {
	switch f := e.Fact.(type) {
	case agent.TurnStarted:
		s.turn(e.Request).Text = f.Text
	case agent.TextAdded:
		item(s.turn(e.Request), f.Item, "answer").Text += f.Text
	case agent.AnswerEnded:
		if i := item(s.turn(e.Request), f.Item, "answer"); i.Text != f.Text {
			i.Text = fmt.Sprintf("shown %q, ended %q", i.Text, f.Text)
		}
	case agent.CallProposed:
		item(s.turn(e.Request), f.Call, "call").Tool = f.Tool
	case agent.CallEnded:
		i := item(s.turn(e.Request), f.Call, "call")
		i.Outcome, i.Text = f.Outcome, f.Text
	case agent.TurnFinished:
		s.turn(e.Request).How = f.How
	}
}

// lines prints what is on the screen; notes and texts without an answer's words
// are not told by events.
func (s *screen) lines() []string {
	var out []string
	for _, t := range s.turns {
		out = append(out, fmt.Sprintf("%s: %s", t.Text, t.How))
		for _, i := range t.Items {
			if i.Kind == "call" || i.Kind == "answer" && i.Text != "" {
				out = append(out, fmt.Sprintf("  %s %s %s %q", i.Kind, i.Tool, i.Outcome, i.Text))
			}
		}
	}
	return out
}

// The events after a snapshot continue it, whenever it was taken: what a client
// shows is in the end the same as what is stored. Nothing is missing or doubled.
func TestSnapshotAndTheEventsAfterItAgree(t *testing.T) {
	d := newDesk(t)                // not in a bubble: the snapshots shall come at any moment
	d.disk.slow = time.Millisecond // so that many snapshots come between an event and its record
	type view struct {
		screen
		seq uint64
	}
	var views []view
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for len(views) < 3000 {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Microsecond):
			}
			tr, s, err := d.Snapshot(t.Context(), "", 0)
			if err != nil {
				t.Error(err)
				return
			}
			views = append(views, view{screen{tr.Turns}, s.Seq})
		}
	})
	sub, err := d.Subscribe(0)
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	for i := range 12 {
		last := d.submit(fmt.Sprintf("%s %d", []string{"work", "say", "fail"}[i%3], i)).RequestID
		if i%3 == 2 { // it fails and pauses nothing, since nothing waits
			waitFor(t, sub, last)
		}
	}
	close(stop)
	wg.Wait()
	final, _, err := d.Snapshot(t.Context(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	want := (&screen{final.Turns}).lines()
	for _, v := range views {
		for i := range v.turns { // the items of a snapshot are shared
			v.turns[i].Items = slices.Clone(v.turns[i].Items)
		}
		for _, e := range d.events(v.seq) { // merged events would reach back before it
			v.take(e)
		}
		if diff := cmp.Diff(want, v.lines()); diff != "" {
			t.Fatalf("snapshot at %d (-stored +shown):\n%s", v.seq, diff)
		}
	}
	t.Logf("%d snapshots agree", len(views))
}

// waitFor reads until the turn is saved.
func waitFor(t *testing.T, sub agent.Subscription, turn string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	ended := false
	for {
		e, err := sub.Next(ctx)
		if err != nil {
			t.Fatalf("waiting for %s: %v", turn, err)
		}
		switch f := e.Fact.(type) {
		case agent.TurnFinished:
			ended = ended || e.Request == turn
		case agent.StateChanged:
			if ended && f.State.Phase == agent.Idle {
				return
			}
		}
	}
}

// A replay gives what a reader who was there all the time has seen.
func TestReplayEqualsLive(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDesk(t)
		live, err := d.feed.subscribe(0)
		if err != nil {
			t.Fatal(err)
		}
		defer live.Close()
		var seen []agent.Event
		for i := range 9 {
			d.submit(fmt.Sprintf("%s %d", []string{"work", "say", "fail"}[i%3], i))
			d.settle()
			seen = append(seen, drain(t, live)...)
		}
		same(t, "events", joined(seen), joined(d.events(0)))
		middle := seen[len(seen)/2].Seq
		rest := slices.DeleteFunc(slices.Clone(seen), func(e agent.Event) bool { return e.Seq <= middle })
		same(t, "events after the middle", joined(rest), joined(d.events(middle)))
		for i, e := range seen {
			if i > 0 && e.Seq <= seen[i-1].Seq {
				t.Errorf("event %d follows %d", e.Seq, seen[i-1].Seq)
			}
		}
	})
}

// joined merges what one of two readers may have got merged.
func joined(es []agent.Event) []agent.Event {
	var out []agent.Event
	for _, e := range es {
		if n := len(out); n > 0 {
			if m, ok := merge(out[n-1], e); ok {
				out[n-1] = m
				continue
			}
		}
		out = append(out, e)
	}
	return out
}
