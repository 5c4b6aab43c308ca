package loop

import (
	"fmt"
	"strings"

	"github.com/lakecode/lakecode/providers"
	"github.com/lakecode/lakecode/session"
)

// History is the projection of a session to the messages of a request. It only
// grows, and a message never changes once it is in, so that the prefix of each
// request equals the request before it. It belongs to one goroutine at a time.
//
// Roles alternate strictly (user, assistant, tool results, assistant, ...):
// some servers refuse anything else. A turn that was cut short is therefore
// closed by a bracketed assistant message.
type History struct {
	messages []*providers.Message
	notes    []string       // facts to be told with the next user message
	open     map[string]int // calls of the last answer without a result, by position
	ids      map[string]bool
}

// NewHistory projects what a stored session holds.
func NewHistory(a *session.Archive) *History {
	h := &History{ids: map[string]bool{}}
	for i := range a.Turns {
		h.addTurn(&a.Turns[i])
	}
	return h
}

func (h *History) addTurn(t *session.Turn) {
	h.AddUser(t.Message.Text)
	var calls []session.Call
	results := map[string]session.Result{}
	flush := func() {
		if len(calls) == 0 {
			return
		}
		ordered := make([]session.Result, 0, len(calls))
		for _, c := range calls {
			r, ok := results[c.ID]
			if !ok { // a log that was cut off is repaired; this keeps any other sendable
				r = session.Result{Call: c.ID, Outcome: session.Interrupted, Text: "The result of this call was not recorded. It may have had effects: check before you go on."}
			}
			ordered = append(ordered, r)
		}
		h.AddResults(ordered)
		calls, results = nil, map[string]session.Result{}
	}
	for _, it := range t.Items {
		switch {
		case it.Answer != nil:
			flush()
			h.AddAnswer(*it.Answer)
			calls = it.Answer.Calls
		case it.Result != nil:
			results[it.Result.Call] = *it.Result
		case it.Note != nil:
			h.AddNote(it.Note.Text)
		}
	}
	flush()
	if t.End != nil {
		h.EndTurn()
	}
}

// Messages returns the messages so far. The slice must not be changed; later
// additions do not show in it.
func (h *History) Messages() []*providers.Message {
	return h.messages[:len(h.messages):len(h.messages)]
}

// UniqueID returns id, or one that the history does not know yet when id is
// empty or taken. Servers that number calls from zero in each answer would
// otherwise make a result belong to two calls.
func (h *History) UniqueID(id string) string {
	if id == "" || h.ids[id] {
		base := id
		if base == "" {
			base = "call"
		}
		for n := len(h.ids) + 1; ; n++ {
			if id = fmt.Sprintf("%s_%d", base, n); !h.ids[id] {
				break
			}
		}
	}
	h.ids[id] = true
	return id
}

// AddUser appends a person's message, preceded by the notes since the last one.
func (h *History) AddUser(text string) {
	if len(h.notes) > 0 {
		text = "[" + strings.Join(h.notes, "]\n[") + "]\n\n" + text
		h.notes = nil
	}
	h.add(providers.User, providers.Text{Text: text})
}

// AddAnswer appends an answer of the model. An answer that is empty and
// interrupted adds nothing.
func (h *History) AddAnswer(a session.Answer) {
	var parts []providers.Part
	if a.Reasoning != "" && (a.Text != "" || len(a.Calls) > 0) {
		parts = append(parts, providers.Reasoning{Text: a.Reasoning, Field: a.ReasoningField})
	}
	if a.Text != "" {
		parts = append(parts, providers.Text{Text: a.Text})
	}
	h.open = map[string]int{}
	for i, c := range a.Calls {
		parts = append(parts, providers.ToolCall{ID: c.ID, Name: c.Name, Args: c.Args})
		h.open[c.ID] = i
		h.ids[c.ID] = true
	}
	if len(parts) > 0 {
		h.add(providers.Assistant, parts...)
	}
}

// AddResults appends the results of the last answer's calls, in call order.
func (h *History) AddResults(rs []session.Result) {
	if len(rs) == 0 {
		return
	}
	parts := make([]providers.Part, len(rs))
	for i, r := range rs {
		parts[i] = providers.ToolResult{ID: r.Call, Text: r.Text, IsError: r.Outcome != session.OK}
		delete(h.open, r.Call)
	}
	h.add(providers.Tool, parts...)
}

// AddNote keeps a fact for the next user message.
func (h *History) AddNote(text string) { h.notes = append(h.notes, text) }

// EndTurn closes the turn so that the next user message may follow.
func (h *History) EndTurn() {
	if n := len(h.messages); n > 0 && h.messages[n-1].Role != providers.Assistant {
		h.add(providers.Assistant, providers.Text{Text: "[interrupted]"})
	}
}

// Check reports what would make a provider refuse the history: a call without
// its result. It is a bug of this program when it fails.
func (h *History) Check() error {
	if len(h.open) == 0 {
		return nil
	}
	for id := range h.open {
		return fmt.Errorf("call %s has no result", id)
	}
	return nil
}

func (h *History) add(r providers.Role, parts ...providers.Part) {
	h.messages = append(h.messages, &providers.Message{Role: r, Parts: parts})
}

// Repair returns the records that close a turn which a crash cut off: a result
// for each call that has none, and the end. Nil when the last turn is closed.
func Repair(a *session.Archive, now func() session.End) []session.Record {
	if len(a.Turns) == 0 {
		return nil
	}
	t := &a.Turns[len(a.Turns)-1]
	if t.End != nil {
		return nil
	}
	recs := missing(t, "Lakecode ended while this call ran. It may have had some or all of its effects: check before you go on.",
		"Not finished: Lakecode ended before it. It changed nothing.")
	end := now()
	end.Usage = spent(t)
	recs = append(recs, note(t.Message.ID, "crashed", "Lakecode ended in the middle of the last turn. What finished calls did remains."),
		session.TurnEnded{Turn: t.Message.ID, End: end})
	return recs
}

// spent sums what the turn's answers reported; nil when none did.
func spent(t *session.Turn) *session.Usage {
	var sum *session.Usage
	for _, it := range t.Items {
		if it.Answer == nil || it.Answer.Usage == nil {
			continue
		}
		u := *it.Answer.Usage
		if sum != nil {
			u = session.Usage{Input: sum.Input + u.Input, Cached: sum.Cached + u.Cached, Output: sum.Output + u.Output, Reasoning: sum.Reasoning + u.Reasoning}
		}
		sum = &u
	}
	return sum
}

// missing makes results for the calls of the last answer that have none.
func missing(t *session.Turn, begun, notBegun string) []session.Record {
	started, have := map[string]bool{}, map[string]bool{}
	for _, id := range t.CallsStarted {
		started[id] = true
	}
	var calls []session.Call
	for _, it := range t.Items {
		if it.Answer != nil {
			calls = it.Answer.Calls
		}
		if it.Result != nil {
			have[it.Result.Call] = true
		}
	}
	var recs []session.Record
	for _, c := range calls {
		if have[c.ID] {
			continue
		}
		r := session.Result{Call: c.ID, Outcome: session.NotRun, Text: notBegun}
		if started[c.ID] {
			r.Outcome, r.Text = session.Interrupted, begun
		}
		recs = append(recs, session.ItemAdded{Turn: t.Message.ID, Item: session.Item{ID: c.ID + "/result", Result: &r}})
	}
	return recs
}

func note(turn, kind, text string) session.Record {
	return session.ItemAdded{Turn: turn, Item: session.Item{ID: turn + "/" + kind, Note: &session.Note{Kind: kind, Text: text}}}
}
