package convo

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lakecode/lakecode/agent"
)

func text(seq uint64, item, s string) agent.Event {
	return agent.Event{Seq: seq, Fact: agent.TextAdded{Item: item, Text: s}}
}

func drain(t *testing.T, s *subscription) []agent.Event {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out []agent.Event
	for {
		e, err := s.Next(ctx)
		if errors.Is(err, context.Canceled) || errors.Is(err, agent.ErrClosed) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
}

func TestFragmentsOfOneItemMergeForASlowReader(t *testing.T) {
	f := newFeed()
	s, err := f.subscribe(0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	f.publish(text(1, "a", "x"))
	f.publish(text(2, "a", "y"))
	f.publish(agent.Event{Seq: 3, Fact: agent.CallStarted{Call: "c"}})
	f.publish(agent.Event{Seq: 4, Fact: agent.CallStarted{Call: "c"}})
	f.publish(text(5, "a", "z"))
	f.publish(text(6, "b", "z"))
	want := []agent.Event{
		text(2, "a", "xy"),
		{Seq: 3, Fact: agent.CallStarted{Call: "c"}},
		{Seq: 4, Fact: agent.CallStarted{Call: "c"}},
		text(5, "a", "z"), text(6, "b", "z"),
	}
	if d := cmp.Diff(want, drain(t, s)); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
}

func TestReaderFarBehindLagsOnceAndCostsNoMemory(t *testing.T) {
	f := newFeed()
	s, err := f.subscribe(0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	big := strings.Repeat("x", 64<<10)
	seq := uint64(0)
	for range 2 * lagBytes / len(big) {
		seq++
		f.publish(agent.Event{Seq: seq, Fact: agent.CallEnded{Call: "c", Text: big}})
	}
	if _, err := s.Next(t.Context()); !errors.Is(err, agent.ErrLagged) {
		t.Fatalf("got %v, want ErrLagged", err)
	}
	if _, err := s.Next(t.Context()); !errors.Is(err, agent.ErrClosed) {
		t.Fatalf("got %v, want ErrClosed", err)
	}
	if f.bytes > ringBytes+2*len(big) {
		t.Errorf("the ring holds %d bytes", f.bytes)
	}
}

func TestSubscribingReplaysOrAsksForASnapshot(t *testing.T) {
	f := newFeed()
	for seq := uint64(1); seq <= ringEvents+10; seq++ {
		f.publish(agent.Event{Seq: seq, Fact: agent.CallStarted{Call: "c"}})
	}
	last := uint64(ringEvents + 10)
	for _, c := range []struct {
		after uint64
		n     int
		err   error
	}{{last, 0, nil}, {last - 1, 1, nil}, {10, ringEvents, nil}, {9, 0, agent.ErrLagged}, {last + 1, 0, agent.ErrLagged}} {
		s, err := f.subscribe(c.after)
		if !errors.Is(err, c.err) {
			t.Fatalf("after %d: %v, want %v", c.after, err, c.err)
		}
		if err != nil {
			continue
		}
		if got := len(drain(t, s)); got != c.n {
			t.Errorf("after %d: %d events, want %d", c.after, got, c.n)
		}
		s.Close()
	}
}

func TestALongCallDoesNotPushOutTheRest(t *testing.T) {
	f := newFeed()
	f.publish(text(1, "a", "x"))
	for seq := uint64(2); seq < 2+2*ringEvents; seq++ {
		f.publish(agent.Event{Seq: seq, Fact: agent.CallWriting{Item: "a", Bytes: int(seq)}})
	}
	last := uint64(1 + 2*ringEvents)
	s, err := f.subscribe(0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	want := []agent.Event{text(1, "a", "x"), {Seq: last, Fact: agent.CallWriting{Item: "a", Bytes: int(last)}}}
	if d := cmp.Diff(want, drain(t, s)); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
	if want := cost(want[0]) + cost(want[1]); f.bytes != want {
		t.Errorf("the ring counts %d bytes, want %d", f.bytes, want)
	}
}

func TestClosedFeedDeliversTheRest(t *testing.T) {
	f := newFeed()
	s, err := f.subscribe(0)
	if err != nil {
		t.Fatal(err)
	}
	f.publish(text(1, "a", "x"))
	f.close()
	if e, err := s.Next(t.Context()); err != nil || e.Seq != 1 {
		t.Fatalf("%v %v", e, err)
	}
	if _, err := s.Next(t.Context()); !errors.Is(err, agent.ErrClosed) {
		t.Fatal(err)
	}
}
