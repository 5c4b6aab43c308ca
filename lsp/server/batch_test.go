package server

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lakecode/lakecode/agent"
	"github.com/lakecode/lakecode/lsp/wire"
)

func TestBatchMergesOnlyWhatContinues(t *testing.T) {
	var b batch
	var seq uint64
	add := func(f agent.Fact) {
		seq++
		b.add(agent.Event{Seq: seq, Fact: f})
	}
	for _, f := range []agent.Fact{
		agent.TextAdded{Item: "a", Text: "1"},
		agent.TextAdded{Item: "a", Text: "2"},
		agent.TextAdded{Item: "b", Text: "3"},
		agent.ReasoningAdded{Item: "b", Text: "4"},
		agent.ReasoningAdded{Item: "b", Text: "5"},
		agent.TextAdded{Item: "b", Text: "6"},
		agent.CallWriting{Item: "b", Bytes: 1},
		agent.CallWriting{Item: "b", Bytes: 2, Tool: "t"},
		agent.CallWriting{Item: "b", Index: 1, Bytes: 3},
		agent.CallProgress{Call: "c", Text: "7"},
		agent.StateChanged{State: agent.State{Phase: agent.Running}},
		agent.CallProgress{Call: "c", Text: "8"},
		agent.CallProgress{Call: "d", Text: "9"},
		agent.CallStarted{Call: "e"},
		agent.CallStarted{Call: "e"},
		agent.StateChanged{State: agent.State{Phase: agent.Idle}},
	} {
		add(f)
	}
	b.seal()
	at := func(k wire.Kind, seq uint64) wire.Head { return wire.Head{Kind: k, Seq: seq} }
	want := []wire.Event{
		&wire.MessageDelta{Head: at(wire.KindMessageDelta, 2), ItemID: "a", Text: "12"},
		&wire.MessageDelta{Head: at(wire.KindMessageDelta, 3), ItemID: "b", Text: "3"},
		&wire.ReasoningDelta{Head: at(wire.KindReasoningDelta, 5), ItemID: "b", Text: "45"},
		&wire.MessageDelta{Head: at(wire.KindMessageDelta, 6), ItemID: "b", Text: "6"},
		&wire.CallWriting{Head: at(wire.KindCallWriting, 8), ItemID: "b", Tool: "t", Bytes: 2},
		&wire.CallWriting{Head: at(wire.KindCallWriting, 9), ItemID: "b", Index: 1, Bytes: 3},
		&wire.CallProgress{Head: at(wire.KindCallProgress, 12), CallID: "c", Text: "78"},
		&wire.CallProgress{Head: at(wire.KindCallProgress, 13), CallID: "d", Text: "9"},
		&wire.CallStarted{Head: at(wire.KindCallStarted, 14), CallID: "e"},
		&wire.CallStarted{Head: at(wire.KindCallStarted, 15), CallID: "e"},
	}
	if d := cmp.Diff(want, b.events); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if b.state == nil || b.state.Phase != agent.Idle {
		t.Errorf("state %+v", b.state)
	}
}
