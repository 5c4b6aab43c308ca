package convo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/lakecode/lakecode/agent"
)

type shown struct {
	mu  sync.Mutex
	log []string
}

func (s *shown) add(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, fmt.Sprintf(format, args...))
}

func (s *shown) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

func newTestGate() (*gate, *shown) {
	s := &shown{}
	return &gate{
		show: func(in agent.Interaction) { s.add("show %s", in.ID) },
		hide: func(id, how string) { s.add("hide %s %s", id, how) },
	}, s
}

func code(err error) agent.Code {
	var ae *agent.Error
	if errors.As(err, &ae) {
		return ae.Code
	}
	return ""
}

func question(id string) agent.Interaction {
	return agent.Interaction{ID: id, Kind: "question", Text: "which?", Options: []agent.Option{{Label: "a"}, {Label: "b"}}}
}

// covers CONV-8 partly
func TestNobodyConnectedFailsAtOnce(t *testing.T) {
	g, s := newTestGate()
	if _, err := g.ask(t.Context(), question("1")); code(err) != agent.NoHuman {
		t.Fatalf("got %v, want noHuman", err)
	}
	release := g.attach()
	release()
	release()
	if _, err := g.ask(t.Context(), question("2")); code(err) != agent.NoHuman {
		t.Fatalf("after release: got %v, want noHuman", err)
	}
	if len(s.take()) > 0 {
		t.Fatalf("something was shown: %v", s.take())
	}
}

// covers CONV-2 partly
func TestInteractionsAreShownOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := newTestGate()
		defer g.attach()()
		answers := make(chan string, 3)
		askFor := func(ctx context.Context, id string) {
			go func() {
				d, err := g.ask(ctx, question(id))
				answers <- fmt.Sprint(id, d.Chosen, err)
			}()
			synctest.Wait()
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		askFor(t.Context(), "1")
		askFor(ctx, "2")
		askFor(t.Context(), "3")
		if err := g.resolve("3", agent.Decision{Chosen: []int{0}}); code(err) != agent.AlreadyResolved {
			t.Errorf("an undisplayed interaction was resolved: %v", err)
		}
		cancel(errors.New("stopped"))
		synctest.Wait()
		for _, id := range []string{"1", "3"} {
			if err := g.resolve(id, agent.Decision{Chosen: []int{1}}); err != nil {
				t.Errorf("resolve %s: %v", id, err)
			}
			synctest.Wait()
			if err := g.resolve(id, agent.Decision{Chosen: []int{0}}); code(err) != agent.AlreadyResolved {
				t.Errorf("a late answer to %s was taken: %v", id, err)
			}
		}
		want := []string{"show 1", "hide 1 answered", "show 3", "hide 3 answered"}
		if d := cmp.Diff(want, s.take()); d != "" {
			t.Errorf("shown (-want +got):\n%s", d)
		}
		got := []string{<-answers, <-answers, <-answers}
		if d := cmp.Diff([]string{"2[] stopped", "1[1] <nil>", "3[1] <nil>"}, got); d != "" {
			t.Errorf("answers (-want +got):\n%s", d)
		}
	})
}

func TestWithdrawingTheShownInteractionShowsTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := newTestGate()
		defer g.attach()()
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = g.ask(ctx, question("1")) }()
		synctest.Wait()
		go func() { _, _ = g.ask(t.Context(), question("2")) }()
		synctest.Wait()
		cancel()
		synctest.Wait()
		if err := g.resolve("2", agent.Decision{Skip: true}); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		want := []string{"show 1", "hide 1 withdrawn", "show 2", "hide 2 skipped"}
		if d := cmp.Diff(want, s.take()); d != "" {
			t.Errorf("shown (-want +got):\n%s", d)
		}
	})
}

func TestDecisionMustFitTheQuestion(t *testing.T) {
	one := question("1")
	multi, free := one, one
	multi.Multi = true
	free.FreeText = true
	for _, c := range []struct {
		name string
		in   agent.Interaction
		d    agent.Decision
		ok   bool
	}{
		{"choice", one, agent.Decision{Chosen: []int{1}}, true},
		{"skip", one, agent.Decision{Skip: true}, true},
		{"empty is no consent", one, agent.Decision{}, false},
		{"out of range", one, agent.Decision{Chosen: []int{2}}, false},
		{"negative", one, agent.Decision{Chosen: []int{-1}}, false},
		{"two of one", one, agent.Decision{Chosen: []int{0, 1}}, false},
		{"two of many", multi, agent.Decision{Chosen: []int{0, 1}}, true},
		{"the same twice", multi, agent.Decision{Chosen: []int{1, 1}}, false},
		{"free text not offered", one, agent.Decision{Text: "x"}, false},
		{"free text", free, agent.Decision{Text: "x"}, true},
	} {
		if err := fits(c.in, c.d); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestAnswerAndCancelRaceHasOneWinner(t *testing.T) {
	for range 500 {
		g, _ := newTestGate()
		release := g.attach()
		ctx, cancel := context.WithCancel(t.Context())
		asked := make(chan error, 1)
		started := make(chan struct{})
		g.show = func(agent.Interaction) { close(started) }
		go func() { _, err := g.ask(ctx, question("1")); asked <- err }()
		<-started
		go cancel()
		resolved := g.resolve("1", agent.Decision{Chosen: []int{0}})
		if err := <-asked; (err == nil) != (resolved == nil) {
			t.Fatalf("asker got %v, resolver got %v", err, resolved)
		}
		release()
	}
}
