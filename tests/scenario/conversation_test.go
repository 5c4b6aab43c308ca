package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lakecode/lakecode/lsp/wire"
)

// covers CONV-1 partly
func TestQueuedMessageStartsAfterTheFormerTurnIsSaved(t *testing.T) {
	w := newWorld(t, `
		expect user contains "first"
		say Working.
		gate first
		say Done.
		end
		expect user contains "second"
		say Second answer.`, nil)
	w.open()
	first := w.submit("first")
	w.model.Reached("first")
	second := w.submit("second")
	if first.Queued || !second.Queued {
		t.Errorf("queued: first %v, second %v", first.Queued, second.Queued)
	}
	s := w.phase("with a queue", func(s wire.State) bool { return len(s.Queue) == 1 })
	if s.Queue[0].Text != "second" || s.Phase != "running" {
		t.Errorf("state %+v", s)
	}
	w.model.Release("first")
	end := w.await("the first end", func(e event) bool { return e.Kind == string(wire.KindTurnFinished) })
	start := w.await("the second start", func(e event) bool { return e.Kind == string(wire.KindTurnStarted) && e.Text == "second" })
	if start.Seq < end.Seq {
		t.Errorf("the second turn started at %d, before the first had ended at %d", start.Seq, end.Seq)
	}
	w.ended(second.TurnID)
	// The log has the end of the first turn before the start of the second.
	log := w.log()
	ended, started := strings.Index(log, "turnEnded"), strings.LastIndex(log, "turnStarted")
	if ended < 0 || started < ended {
		t.Errorf("the log has the second start at %d and the first end at %d", started, ended)
	}
}

func (w *world) log() string {
	w.t.Helper()
	b, err := os.ReadFile(filepath.Join(w.home, "sessions", w.conv, "log"))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(b)
}

// covers CONV-1 partly
func TestStopKeepsWhatHappenedAndTellsTheModel(t *testing.T) {
	w := partialWorld(t, `
		call read_file {"path": "a.txt"}
		end
		say Half an answer
		gate half
		say never seen
		end
		expect user contains "stopped the turn"
		expect user contains "go on"
		expect body contains "Half an answer"
		expect body lacks "never seen"
		say Going on.`, map[string]string{"a.txt": "hello\n"})
	w.open()
	sent := w.submit("work")
	w.await("half", func(e event) bool { return e.Kind == string(wire.KindMessageDelta) })
	w.model.Reached("half")
	queued := w.submit("go on")
	w.call(wire.ConversationStop, wire.ConversationParams{ConversationID: w.conv}, nil)
	end := w.ended(sent.TurnID)
	if end.How != "stopped" {
		t.Errorf("ended as %q", end.How)
	}
	s := w.phase("paused", func(s wire.State) bool { return s.QueuePaused && s.Phase == "idle" })
	if len(s.Queue) != 1 || s.QueueReason == "" {
		t.Errorf("queue %+v, reason %q", s.Queue, s.QueueReason)
	}
	tr := w.transcript()
	if d := cmp.Diff([]string{"read_file ok"}, calls(tr)); d != "" {
		t.Errorf("calls (-want +got):\n%s", d)
	}
	items := tr.Turns[0].Items
	if a := items[1]; a.Kind != "answer" || !a.Interrupted || !strings.HasPrefix(a.Text, "Half an") {
		t.Errorf("the partial answer is %+v", a)
	}
	w.call(wire.QueueResume, wire.ConversationParams{ConversationID: w.conv}, nil)
	if end := w.ended(queued.TurnID); end.How != "completed" {
		t.Errorf("the resumed turn ended as %+v", end)
	}
}

// covers CONV-1 partly
func TestStopEndsARunningCommandWithItsChildren(t *testing.T) {
	w := newWorld(t, `
		call bash {"command": "sleep 300", "description": "wait"}
		call write_file {"path": "late.txt", "content": "x"}
		end
		expect user contains "again"
		expect body lacks "exit code 0"
		say Fine.`, nil)
	w.open()
	sent := w.submit("run it")
	w.await("the start", func(e event) bool { return e.Kind == string(wire.KindCallStarted) })
	w.call(wire.ConversationStop, wire.ConversationParams{ConversationID: w.conv}, nil)
	if end := w.ended(sent.TurnID); end.How != "stopped" {
		t.Errorf("ended as %+v", end)
	}
	if d := cmp.Diff([]string{"bash interrupted", "write_file notRun"}, calls(w.transcript())); d != "" {
		t.Errorf("calls (-want +got):\n%s", d)
	}
	if _, err := os.Stat(w.path("late.txt")); err == nil {
		t.Error("a call after the stop was run")
	}
	if end := w.turn("again"); end.How != "completed" {
		t.Errorf("the next turn ended as %+v", end)
	}
}

func TestRepeatedSubmitIsOneMessage(t *testing.T) {
	w := newWorld(t, "say Once.", nil)
	w.open()
	p := wire.SubmitParams{ConversationID: w.conv, Text: "once", Model: wire.Model{Provider: "fake", Model: "m"}, ClientRequestID: "r1"}
	var a, b wire.SubmitResult
	w.call(wire.ConversationSubmit, p, &a)
	w.ended(a.TurnID)
	w.call(wire.ConversationSubmit, p, &b)
	if a.TurnID != b.TurnID {
		t.Errorf("two turns: %s and %s", a.TurnID, b.TurnID)
	}
	if n := len(w.transcript().Turns); n != 1 {
		t.Errorf("%d turns", n)
	}
}

// A session goes on in another process, with its history as it was sent.
func TestSessionGoesOnAfterARestart(t *testing.T) {
	w := newWorld(t, `
		call read_file {"path": "a.txt"}
		end
		say It says hello.
		end
		expect body contains "It says hello."
		expect user is "and now?"
		say Still hello.`, map[string]string{"a.txt": "hello\n"})
	w.open()
	w.turn("what does a.txt say?")
	if code, err := w.ed.Shutdown(); err != nil || code != 0 {
		t.Fatalf("exit %d, %v", code, err)
	}
	w.reopen()
	if got := len(w.transcript().Turns); got != 1 {
		t.Fatalf("%d turns after the restart", got)
	}
	if end := w.turn("and now?"); end.How != "completed" {
		t.Errorf("ended as %+v", end)
	}
	var list wire.SessionListResult
	w.call(wire.SessionList, wire.SessionListParams{}, &list)
	if len(list.Sessions) != 1 || list.Sessions[0].Title != "what does a.txt say?" || !list.Sessions[0].Open || list.Sessions[0].Turns != 2 {
		t.Errorf("sessions: %+v", list.Sessions)
	}
}

// covers CONV-8 partly
func TestQuestionIsAnsweredOnce(t *testing.T) {
	w := newWorld(t, `
		call ask_user {"question": "Which colour?", "options": [{"label": "red"}, {"label": "blue"}]}
		end
		expect result contains "blue"
		say Blue it is.`, nil)
	w.open()
	sent := w.submit("paint")
	in := w.kind(wire.KindInteractionRequested).Interaction
	if in.Text != "Which colour?" || len(in.Options) != 2 {
		t.Fatalf("asked %+v", in)
	}
	w.call(wire.InteractionResolve, wire.ResolveParams{ConversationID: w.conv, InteractionID: in.InteractionID, Chosen: []int{1}}, nil)
	kind, _ := w.refused(wire.InteractionResolve, wire.ResolveParams{ConversationID: w.conv, InteractionID: in.InteractionID, Chosen: []int{0}})
	if kind != "alreadyResolved" {
		t.Errorf("a second answer: %q", kind)
	}
	if end := w.ended(sent.TurnID); end.How != "completed" {
		t.Errorf("ended as %+v", end)
	}
}
