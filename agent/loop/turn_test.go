package loop

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/lakecode/lakecode/agent"
	"github.com/lakecode/lakecode/providers"
	"github.com/lakecode/lakecode/session"
	"github.com/lakecode/lakecode/tools"
)

// reply is one scripted answer of the model.
type reply struct {
	text   string
	calls  []providers.ToolCall
	stop   providers.Stop
	err    *providers.Error
	before []providers.Delta // sent first
	after  func()            // runs when Done was taken
}

func calls(names ...string) reply {
	r := reply{stop: providers.StopCalls}
	for i, n := range names {
		name, args, _ := strings.Cut(n, " ")
		if args == "" {
			args = "{}"
		}
		r.calls = append(r.calls, providers.ToolCall{ID: fmt.Sprintf("c%d", i+1), Name: name, Args: args})
	}
	return r
}

// model plays replies; the last one repeats. It looks at each request as a
// strict server does.
type model struct {
	t       *testing.T
	replies []reply

	mu   sync.Mutex // guards reqs
	reqs []providers.Request
}

func (m *model) Stream(ctx context.Context, _ providers.Snapshot, req providers.Request) iter.Seq2[providers.Delta, error] {
	m.mu.Lock()
	r := m.replies[min(len(m.reqs), len(m.replies)-1)]
	m.reqs = append(m.reqs, req)
	m.mu.Unlock()
	sendable(m.t, req.Messages)
	return func(yield func(providers.Delta, error) bool) {
		for _, d := range r.before {
			if !yield(d, nil) {
				return
			}
		}
		done := providers.Done{Stop: r.stop, Usage: providers.Usage{Known: true, Input: 10, Output: 1}}
		if r.text != "" {
			if !yield(providers.TextDelta{Text: r.text}, nil) {
				return
			}
			done.Parts = append(done.Parts, providers.Text{Text: r.text})
		}
		if r.err != nil {
			yield(nil, r.err)
			return
		}
		if ctx.Err() != nil {
			yield(nil, &providers.Error{Kind: providers.Cancelled, Message: "cancelled", Err: context.Cause(ctx)})
			return
		}
		for _, c := range r.calls {
			done.Parts = append(done.Parts, c)
		}
		yield(done, nil)
		if r.after != nil {
			r.after()
		}
	}
}

// sendable checks that roles alternate and that every call has one result.
func sendable(t *testing.T, ms []*providers.Message) {
	t.Helper()
	last := providers.Role(0)
	var open []string
	for i, m := range ms {
		if m.Role == last || m.Role == providers.User && last == providers.Tool || i == 0 && m.Role != providers.User {
			t.Errorf("message %d has the role %d after %d", i, m.Role, last)
		}
		if m.Role != providers.Tool && len(open) > 0 {
			t.Errorf("message %d comes before the results of %v", i, open)
		}
		for _, p := range m.Parts {
			switch p := p.(type) {
			case providers.ToolCall:
				open = append(open, p.ID)
			case providers.ToolResult:
				at := slices.Index(open, p.ID)
				if at < 0 {
					t.Errorf("message %d has a result of %s, which is no open call", i, p.ID)
					continue
				}
				open = slices.Delete(open, at, at+1)
			}
		}
		last = m.Role
	}
}

// table is a turn with everything around it.
type table struct {
	t       *testing.T
	history *History
	archive session.Archive
	refuse  func(r session.Record) error // nil: everything is written

	mu    sync.Mutex // guards all below
	facts []agent.Fact
	log   []string
}

func newTable(t *testing.T) *table {
	tb := &table{t: t, history: NewHistory(&session.Archive{}), archive: session.Archive{ID: "s"}}
	tb.message("t1", "do it")
	return tb
}

// message begins a turn, as the conversation does.
func (tb *table) message(id, text string) {
	tb.t.Helper()
	for _, r := range []session.Record{session.Accepted{Message: session.Message{ID: id, Text: text}}, session.TurnStarted{ID: id}} {
		if err := tb.archive.Apply(r); err != nil {
			tb.t.Fatal(err)
		}
	}
	tb.history.AddUser(text)
}

func (tb *table) add(format string, args ...any) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	tb.log = append(tb.log, fmt.Sprintf(format, args...))
}

func (tb *table) emit(f agent.Fact) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	tb.facts = append(tb.facts, f)
}

func (tb *table) append(_ context.Context, _ bool, recs []session.Record, facts ...agent.Fact) error {
	var failure error
	for _, r := range recs {
		if tb.refuse != nil {
			failure = errors.Join(failure, tb.refuse(r))
		}
	}
	tb.mu.Lock()
	defer tb.mu.Unlock()
	for _, r := range recs { // what was refused is owed, not lost
		if err := tb.archive.Apply(r); err != nil {
			tb.t.Error(err)
		}
	}
	tb.facts = append(tb.facts, facts...)
	return failure
}

type nothing struct{}

// tools of the table: "read_file" and "bash" log when they begin and end; "slow"
// names wait a second of the bubble's time.
func (tb *table) tool(name string, tier tools.Tier, run func(ctx context.Context, io *tools.IO) (tools.Output, error)) tools.Tool {
	tb.t.Helper()
	tool, err := tools.New(tools.Spec{Name: name, Tier: tier}, func(ctx context.Context, _ nothing, io *tools.IO) (tools.Output, error) {
		tb.add("begin %s", io.Call.ID)
		defer tb.add("end %s", io.Call.ID)
		if run != nil {
			return run(ctx, io)
		}
		return tools.Output{Text: "result of " + io.Call.ID}, nil
	})
	if err != nil {
		tb.t.Fatal(err)
	}
	return tool
}

func (tb *table) run(ctx context.Context, m *model, turn string, ts ...tools.Tool) (session.End, *agent.Failure) {
	tb.t.Helper()
	var reg tools.Registry
	if err := reg.Add(ts...); err != nil {
		tb.t.Fatal(err)
	}
	m.t = tb.t
	end, f := Run(ctx, Config{
		Turn: turn, Client: m, View: reg.View(tools.Build), History: tb.history, Emit: tb.emit, Append: tb.append, Log: zap.NewNop(),
	})
	if err := tb.archive.Apply(session.TurnEnded{Turn: turn, End: end}); err != nil {
		tb.t.Error(err)
	}
	if err := tb.history.Check(); err != nil {
		tb.t.Errorf("after the turn: %v", err)
	}
	if d := cmp.Diff(talk(tb.history), talk(NewHistory(&tb.archive))); d != "" {
		tb.t.Errorf("the stored history differs (-live +stored):\n%s", d)
	}
	return end, f
}

// outcomes lists "id outcome" of every ended call, and checks that each was
// proposed exactly once.
func (tb *table) outcomes() []string {
	tb.t.Helper()
	proposed := map[string]int{}
	var out []string
	for _, f := range tb.facts {
		switch f := f.(type) {
		case agent.CallProposed:
			proposed[f.Call]++
		case agent.CallEnded:
			proposed[f.Call]--
			out = append(out, f.Call+" "+f.Outcome)
		}
	}
	for id, n := range proposed {
		if n != 0 {
			tb.t.Errorf("call %s: proposals less ends are %d", id, n)
		}
	}
	return out
}

func wantLines(t *testing.T, what string, want, got []string) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestReadCallsOverlapAndOthersStandAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb := newTable(t)
		second := func(ctx context.Context, _ *tools.IO) (tools.Output, error) {
			time.Sleep(time.Second)
			return tools.Output{}, ctx.Err()
		}
		began := time.Now()
		m := &model{replies: []reply{calls("read_file", "read_file", "bash", "bash", "read_file", "list_directory"), {text: "done"}}}
		end, _ := tb.run(t.Context(), m, "t1", tb.tool("read_file", tools.Read, second), tb.tool("list_directory", tools.Read, second), tb.tool("bash", tools.Exec, second))
		if end.How != session.Completed {
			t.Errorf("ended as %+v", end)
		}
		if took := time.Since(began); took != 4*time.Second {
			t.Errorf("took %s, want 4 s: two reads, bash, bash, two reads", took)
		}
		var started []string
		for _, f := range tb.facts {
			if s, ok := f.(agent.CallStarted); ok {
				started = append(started, s.Call)
			}
		}
		wantLines(t, "starts", []string{"c1", "c2", "c3", "c4", "c5", "c6"}, started)
		for i, l := range tb.log {
			if l == "begin c3" && (i < 4 || tb.log[i+1] != "end c3") {
				t.Errorf("bash overlapped: %v", tb.log)
			}
		}
	})
}

// A question waits for the person, of whom there is one: it overlaps nothing, so
// that two of one answer come in their order.
func TestQuestionsOfOneAnswerComeInOrder(t *testing.T) {
	question, err := tools.NewAsk()
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		tb := newTable(t)
		var asked []string
		asker := askFunc(func(q tools.Question) { asked = append(asked, q.Text) })
		var reg tools.Registry
		if err := reg.Add(question); err != nil {
			t.Fatal(err)
		}
		m := &model{t: t, replies: []reply{calls(`ask_user {"question":"1"}`, `ask_user {"question":"2"}`, `ask_user {"question":"3"}`), {text: "done"}}}
		Run(t.Context(), Config{
			Turn: "t1", Client: m, View: reg.View(tools.Build), History: tb.history, Emit: tb.emit, Append: tb.append, Asker: asker, Log: zap.NewNop(),
		})
		wantLines(t, "questions", []string{"1", "2", "3"}, asked)
	}
}

type askFunc func(tools.Question)

func (f askFunc) Ask(_ context.Context, q tools.Question) (tools.Answer, error) {
	f(q)
	return tools.Answer{Skipped: true}, nil
}

func TestCutAnswersRunNothingAndEndAfterThree(t *testing.T) {
	tb := newTable(t)
	cut := calls("read_file", "bash")
	cut.stop = providers.StopLength
	m := &model{replies: []reply{cut}}
	end, f := tb.run(t.Context(), m, "t1", tb.tool("read_file", tools.Read, nil), tb.tool("bash", tools.Exec, nil))
	if end.How != session.Errored || f.Kind != string(providers.TooLong) || f.Next == "" || len(m.reqs) != maxCutAnswers {
		t.Errorf("after %d requests: %+v, %+v", len(m.reqs), end, f)
	}
	if len(tb.log) > 0 {
		t.Errorf("calls of a cut answer ran: %v", tb.log)
	}
	if got := tb.outcomes(); len(got) != 2*maxCutAnswers || slices.ContainsFunc(got, func(s string) bool { return !strings.HasSuffix(s, " notRun") }) {
		t.Errorf("outcomes %v", got)
	}
}

func TestEndOfAnAnswerWithoutCalls(t *testing.T) {
	for _, c := range []struct {
		name string
		r    reply
		how  session.How
		kind string
	}{
		{"said", reply{text: "yes", stop: providers.StopEnd}, session.Completed, ""},
		{"nothing", reply{stop: providers.StopEnd}, session.Errored, string(providers.BrokenStream)},
		{"blank", reply{text: " \n", stop: providers.StopEnd}, session.Errored, string(providers.BrokenStream)},
		{"cut", reply{text: "half", stop: providers.StopLength}, session.Errored, string(providers.TooLong)},
		{"filtered", reply{stop: providers.StopFilter}, session.Errored, string(providers.Filtered)},
		{"refused", reply{text: "I will not.", stop: providers.StopRefusal}, session.Completed, ""},
		{"broken before a word", reply{err: &providers.Error{Kind: providers.Network, Message: "reset"}}, session.Errored, string(providers.Network)},
		{"broken in the middle", reply{text: "half", err: &providers.Error{Kind: providers.Timeout, Message: "silent", Next: "Wait."}}, session.Errored, string(providers.Timeout)},
	} {
		t.Run(c.name, func(t *testing.T) {
			tb := newTable(t)
			end, f := tb.run(t.Context(), &model{replies: []reply{c.r}}, "t1")
			if end.How != c.how || end.Kind != c.kind || (f != nil) != (c.kind != "") {
				t.Errorf("ended as %+v, %+v", end, f)
			}
			if c.r.err != nil && f.Next != c.r.err.Next {
				t.Errorf("next step %q", f.Next)
			}
			// Whatever happened, the next message can be sent, and says so after a failure.
			tb.message("t2", "again")
			m := &model{replies: []reply{{text: "fine"}}}
			tb.run(t.Context(), m, "t2")
			said := talk(tb.history)
			if told := strings.Contains(strings.Join(said, "\n"), "[The last turn ended early because a model request failed"); told != (c.r.err != nil) {
				t.Errorf("the model was told %v: %q", told, said)
			}
		})
	}
}

// A stop that comes right after a complete answer must not leave its calls
// without results: no request could be sent any more.
func TestStopAfterACompleteAnswerAnswersItsCalls(t *testing.T) {
	tb := newTable(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	r := calls("read_file", "bash")
	r.after = func() { cancel(ErrStopped) }
	end, _ := tb.run(ctx, &model{replies: []reply{r}}, "t1", tb.tool("read_file", tools.Read, nil), tb.tool("bash", tools.Exec, nil))
	if end.How != session.Stopped || len(tb.log) > 0 {
		t.Errorf("ended as %+v after %v", end, tb.log)
	}
	wantLines(t, "outcomes", []string{"c1 notRun", "c2 notRun"}, tb.outcomes())
	tb.message("t2", "again")
	if end, f := tb.run(t.Context(), &model{replies: []reply{{text: "fine"}}}, "t2"); end.How != session.Completed {
		t.Errorf("the next turn: %+v, %+v", end, f)
	}
}

func TestStopBetweenCallsSkipsTheRest(t *testing.T) {
	tb := newTable(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	stopping := tb.tool("bash", tools.Exec, func(context.Context, *tools.IO) (tools.Output, error) {
		cancel(ErrShutdown)
		return tools.Output{Text: "worked"}, nil
	})
	end, _ := tb.run(ctx, &model{replies: []reply{calls("bash", "bash", "bash")}}, "t1", stopping)
	if end.How != session.Stopped {
		t.Errorf("ended as %+v", end)
	}
	wantLines(t, "outcomes", []string{"c1 ok", "c2 notRun", "c3 notRun"}, tb.outcomes())
	wantLines(t, "ran", []string{"begin c1", "end c1"}, tb.log)
}

// What cannot be stored ends the turn: no call runs after it, and every call has
// its result once the records can be written.
func TestAppendFailureEndsTheTurn(t *testing.T) {
	full := errors.New("no space left on device")
	for _, c := range []struct {
		name     string
		refuse   func(r session.Record) bool
		outcomes []string
		ran      []string
	}{
		{"the answer", func(r session.Record) bool {
			i, ok := r.(session.ItemAdded)
			return ok && i.Item.Answer != nil
		}, []string{"c1 notRun", "c2 notRun"}, nil},
		{"the start of a call", func(r session.Record) bool { _, ok := r.(session.CallStarted); return ok }, []string{"c1 notRun", "c2 notRun"}, nil},
		{"a result", func(r session.Record) bool {
			i, ok := r.(session.ItemAdded)
			return ok && i.Item.Result != nil
		}, []string{"c1 ok", "c2 notRun"}, []string{"begin c1", "end c1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tb := newTable(t)
			tb.refuse = func(r session.Record) error {
				if c.refuse(r) {
					return full
				}
				return nil
			}
			m := &model{replies: []reply{calls("bash", "bash"), {text: "done"}}}
			end, f := tb.run(t.Context(), m, "t1", tb.tool("bash", tools.Exec, nil))
			wantLines(t, "outcomes", c.outcomes, tb.outcomes())
			wantLines(t, "ran", c.ran, tb.log)
			if c.name == "the start of a call" {
				return // refused calls are told to the model, which may go on
			}
			if end.How != session.Errored || f.Kind != string(agent.NotSaved) || !strings.Contains(f.Message, full.Error()) || f.Next == "" {
				t.Errorf("ended as %+v, %+v", end, f)
			}
			if len(m.reqs) != 1 {
				t.Errorf("%d requests were made", len(m.reqs))
			}
		})
	}
}

func TestRepeatedCallIDsAreToldApart(t *testing.T) {
	tb := newTable(t)
	twice := calls("read_file", "read_file")
	twice.calls[1].ID, twice.calls[0].ID = "same", "same"
	empty := calls("read_file")
	empty.calls[0].ID = ""
	m := &model{replies: []reply{twice, twice, empty, {text: "done"}}}
	if end, f := tb.run(t.Context(), m, "t1", tb.tool("read_file", tools.Read, nil)); end.How != session.Completed {
		t.Errorf("ended as %+v, %+v", end, f)
	}
	seen := map[string]bool{}
	for _, o := range tb.outcomes() {
		if seen[o] {
			t.Errorf("%s ended twice", o)
		}
		seen[o] = true
	}
	if len(seen) != 5 {
		t.Errorf("ended: %v", seen)
	}
}

func TestAToolMayEndTheTurn(t *testing.T) {
	tb := newTable(t)
	ending := tb.tool("write_file", tools.Write, func(context.Context, *tools.IO) (tools.Output, error) {
		return tools.Output{Text: "that is all", EndTurn: true}, nil
	})
	m := &model{replies: []reply{calls("write_file", "read_file")}}
	if end, _ := tb.run(t.Context(), m, "t1", ending, tb.tool("read_file", tools.Read, nil)); end.How != session.Completed || len(m.reqs) != 1 {
		t.Errorf("ended as %+v after %d requests", end, len(m.reqs))
	}
	wantLines(t, "outcomes", []string{"c1 ok", "c2 notRun"}, tb.outcomes())
}

func TestLimitsOfATurn(t *testing.T) {
	tb := newTable(t)
	many := make([]string, maxCalls+2)
	for i := range many {
		many[i] = "read_file"
	}
	m := &model{replies: []reply{calls(many...), calls("read_file")}}
	end, f := tb.run(t.Context(), m, "t1", tb.tool("read_file", tools.Read, nil))
	if end.How != session.Errored || f.Kind != "limit" || len(m.reqs) != maxRequests || end.Calls != maxRequests {
		t.Errorf("after %d requests: %+v, %+v", len(m.reqs), end, f)
	}
	skipped := 0
	for _, o := range tb.outcomes() {
		if strings.HasSuffix(o, " notRun") {
			skipped++
		}
	}
	if skipped != 2 {
		t.Errorf("%d calls were not run, want 2", skipped)
	}
	if end.Usage == nil || end.Usage.Input != 10*maxRequests {
		t.Errorf("usage %+v", end.Usage)
	}
}

// The time to the first token is that of the turn's first, also when a later
// request is repeated.
func TestFirstTokenIsTimedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb := newTable(t)
		again := providers.Retrying{Attempt: 2, Err: &providers.Error{Kind: providers.Overloaded, Message: "busy"}}
		first, last := calls("read_file"), reply{text: "done", before: []providers.Delta{again}}
		first.text = "Looking."
		first.before = []providers.Delta{again}
		wait := func(context.Context, *tools.IO) (tools.Output, error) {
			time.Sleep(time.Hour)
			return tools.Output{}, nil
		}
		end, _ := tb.run(t.Context(), &model{replies: []reply{first, last}}, "t1", tb.tool("read_file", tools.Read, wait))
		if end.FirstMs != 0 {
			t.Errorf("first token after %d ms, want 0", end.FirstMs)
		}
	})
}

// Calls inside a call have their own proposal, start and end, and no record.
func TestNestedCallsAreShownAndNotStored(t *testing.T) {
	tb := newTable(t)
	outer := tb.tool("bash", tools.Exec, func(ctx context.Context, io *tools.IO) (tools.Output, error) {
		a := io.Invoke(ctx, tools.Call{ID: "n1", Name: "read_file", Args: "{}", Origin: tools.FromCell, Parent: io.Call.ID})
		b := io.Invoke(ctx, tools.Call{ID: "n2", Name: "absent", Origin: tools.FromCell, Parent: io.Call.ID})
		return tools.Output{Text: fmt.Sprint(a.Outcome, b.Outcome)}, nil
	})
	tb.run(t.Context(), &model{replies: []reply{calls("bash"), {text: "done"}}}, "t1", outer, tb.tool("read_file", tools.Read, nil))
	wantLines(t, "outcomes", []string{"n1 ok", "n2 refused", "c1 ok"}, tb.outcomes())
	for _, f := range tb.facts {
		if p, ok := f.(agent.CallProposed); ok && (p.Parent == "") != (p.Call == "c1") {
			t.Errorf("%s has the parent %q", p.Call, p.Parent)
		}
	}
	if n := len(tb.archive.Turns[0].Items); n != 3 { // answer, result, answer
		t.Errorf("%d items are stored", n)
	}
}

// A log of whatever origin projects to a history that can be sent.
func TestCallWithoutARecordedResultGetsOne(t *testing.T) {
	done := &session.End{How: session.Stopped}
	h := NewHistory(&session.Archive{Turns: []session.Turn{turnOf("q", done, answer("", "1", "2"), result("2", session.OK)), turnOf("r", nil)}})
	sendable(t, h.Messages())
	if err := h.Check(); err != nil {
		t.Error(err)
	}
}

func TestRepairKeepsWhatTheTurnCost(t *testing.T) {
	withUsage := answer("look", "1")
	withUsage.Answer.Usage = &session.Usage{Input: 5, Output: 2}
	a := &session.Archive{Turns: []session.Turn{turnOf("q", nil, withUsage, result("1", session.OK), withUsage)}}
	recs := Repair(a, func() session.End { return session.End{How: session.Crashed} })
	end, ok := recs[len(recs)-1].(session.TurnEnded)
	if !ok || end.End.Usage == nil || *end.End.Usage != (session.Usage{Input: 10, Output: 4}) {
		t.Errorf("%+v", recs)
	}
}
