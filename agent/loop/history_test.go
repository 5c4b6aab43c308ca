package loop

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lakecode/lakecode/providers"
	"github.com/lakecode/lakecode/session"
)

// talk prints messages as "role: parts".
func talk(h *History) []string {
	roles := map[providers.Role]string{providers.User: "user", providers.Assistant: "assistant", providers.Tool: "tool"}
	var out []string
	for _, m := range h.Messages() {
		s := roles[m.Role] + ":"
		for _, p := range m.Parts {
			switch p := p.(type) {
			case providers.Text:
				s += " " + p.Text
			case providers.Reasoning:
				s += " <" + p.Text + ">"
			case providers.ToolCall:
				s += " " + p.Name + "#" + p.ID
			case providers.ToolResult:
				s += " #" + p.ID + "=" + p.Text
			}
		}
		out = append(out, s)
	}
	return out
}

func answer(text string, calls ...string) session.Item {
	a := session.Answer{Text: text}
	for _, c := range calls {
		a.Calls = append(a.Calls, session.Call{ID: c, Name: "read_file", Args: "{}"})
	}
	return session.Item{ID: "a", Answer: &a}
}

func result(call string, o session.Outcome) session.Item {
	return session.Item{ID: call + "/result", Result: &session.Result{Call: call, Outcome: o, Text: string(o)}}
}

func turnOf(text string, end *session.End, items ...session.Item) session.Turn {
	return session.Turn{Message: session.Message{ID: "t-" + text, Text: text}, Items: items, End: end}
}

func TestProjectionKeepsRolesAlternating(t *testing.T) {
	done := &session.End{How: session.Completed}
	for _, c := range []struct {
		name  string
		turns []session.Turn
		want  []string
	}{
		{"results in call order, whatever order they ended in", []session.Turn{
			turnOf("q", done, answer("look", "1", "2"), result("2", session.OK), result("1", session.OK), answer("fine")),
		}, []string{"user: q", "assistant: look read_file#1 read_file#2", "tool: #1=ok #2=ok", "assistant: fine"}},
		{"stopped before any word", []session.Turn{
			turnOf("q", done, session.Item{Note: &session.Note{Kind: "stopped", Text: "stopped"}}), turnOf("again", done, answer("yes")),
		}, []string{"user: q", "assistant: [interrupted]", "user: [stopped]\n\nagain", "assistant: yes"}},
		{"stopped in the middle of an answer", []session.Turn{
			turnOf("q", done, answer("half"), session.Item{Note: &session.Note{Text: "stopped"}}), turnOf("again", nil),
		}, []string{"user: q", "assistant: half", "user: [stopped]\n\nagain"}},
		{"stopped after results", []session.Turn{
			turnOf("q", done, answer("", "1"), result("1", session.Interrupted), session.Item{Note: &session.Note{Text: "stopped"}}), turnOf("again", nil),
		}, []string{"user: q", "assistant: read_file#1", "tool: #1=interrupted", "assistant: [interrupted]", "user: [stopped]\n\nagain"}},
		{"two notes", []session.Turn{
			turnOf("q", done, session.Item{Note: &session.Note{Text: "one"}}, session.Item{Note: &session.Note{Text: "two"}}), turnOf("again", nil),
		}, []string{"user: q", "assistant: [interrupted]", "user: [one]\n[two]\n\nagain"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := NewHistory(&session.Archive{Turns: c.turns})
			if d := cmp.Diff(c.want, talk(h)); d != "" {
				t.Errorf("messages (-want +got):\n%s", d)
			}
			if err := h.Check(); err != nil {
				t.Error(err)
			}
			for i := 1; i < len(h.Messages()); i++ {
				if a, b := h.Messages()[i-1].Role, h.Messages()[i].Role; a == b || b == providers.User && a != providers.Assistant {
					t.Errorf("message %d: role %d after %d", i, b, a)
				}
			}
		})
	}
}

// A stored session projects to what was sent while it ran, so that the prefix
// of the next request is the same after a restart.
func TestProjectionEqualsWhatWasSentLive(t *testing.T) {
	done := &session.End{How: session.Completed}
	stored := []session.Turn{
		turnOf("q", done, answer("look", "1"), result("1", session.OK), answer("fine")),
		turnOf("r", done, answer("ha"), session.Item{Note: &session.Note{Text: "stopped"}}),
		turnOf("s", done, answer("yes")),
	}
	live := NewHistory(&session.Archive{})
	for _, turn := range stored {
		live.AddUser(turn.Message.Text)
		for _, it := range turn.Items {
			switch {
			case it.Answer != nil:
				live.AddAnswer(*it.Answer)
			case it.Result != nil:
				live.AddResults([]session.Result{*it.Result})
			case it.Note != nil:
				live.AddNote(it.Note.Text)
			}
		}
		live.EndTurn()
	}
	if d := cmp.Diff(talk(live), talk(NewHistory(&session.Archive{Turns: stored}))); d != "" {
		t.Errorf("messages (-live +stored):\n%s", d)
	}
}

func TestCallWithoutResultIsNotSendable(t *testing.T) {
	h := NewHistory(&session.Archive{})
	h.AddUser("q")
	h.AddAnswer(*answer("", "1", "2").Answer)
	h.AddResults([]session.Result{{Call: "1", Outcome: session.OK}})
	if h.Check() == nil {
		t.Error("a call without its result passed")
	}
}

func TestCallIDsAreUniqueInASession(t *testing.T) {
	h := NewHistory(&session.Archive{Turns: []session.Turn{turnOf("q", nil, answer("", "call_0"), result("call_0", session.OK))}})
	seen := map[string]bool{"call_0": true}
	for _, id := range []string{"call_0", "", "", "x", "x", "call_0"} {
		got := h.UniqueID(id)
		if seen[got] {
			t.Errorf("%q was given twice", got)
		}
		seen[got] = true
	}
	if !seen["x"] {
		t.Error("a fresh id was changed")
	}
}

func TestRepairGivesEveryCallAResult(t *testing.T) {
	a := &session.Archive{Turns: []session.Turn{{
		Message: session.Message{ID: "t"}, CallsStarted: []string{"2"},
		Items: []session.Item{answer("", "1", "2", "3"), result("1", session.OK)},
	}}}
	now := func() session.End { return session.End{How: session.Crashed, Time: time.Unix(1, 0)} }
	var got []string
	for _, r := range Repair(a, now) {
		switch r := r.(type) {
		case session.ItemAdded:
			if r.Item.Result != nil {
				got = append(got, r.Item.Result.Call+" "+string(r.Item.Result.Outcome))
			} else {
				got = append(got, r.Item.Note.Kind)
			}
		case session.TurnEnded:
			got = append(got, string(r.End.How))
		}
	}
	if d := cmp.Diff([]string{"2 interrupted", "3 notRun", "crashed", "crashed"}, got); d != "" {
		t.Errorf("repair (-want +got):\n%s", d)
	}
	a.Turns[0].End = &session.End{How: session.Completed}
	if r := Repair(a, now); r != nil {
		t.Errorf("a closed turn was repaired: %v", r)
	}
}
