package loop

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/lakecode/lakecode/agent"
	"github.com/lakecode/lakecode/providers"
	"github.com/lakecode/lakecode/session"
	"github.com/lakecode/lakecode/tools"
)

// maxParallel is how many read calls of one answer overlap.
const maxParallel = 8

// runCalls runs the calls of one answer: consecutive read calls overlap, every
// other call waits for all before it and holds back all after it. Each call
// gets exactly one result, whatever happens, and the results enter the history
// in call order. With failed, the error of the answer, none is run. An error
// means that the turn cannot go on: failed, or a result was not stored.
func (t *turn) runCalls(ctx context.Context, calls []session.Call, stop providers.Stop, failed error) (endTurn bool, err error) {
	err = failed
	results := make([]session.Result, len(calls))
	for i := 0; i < len(calls); {
		n := 1
		if why := t.whyNot(ctx, i, stop, endTurn, err); why != "" {
			results[i] = session.Result{Call: calls[i].ID, Outcome: session.NotRun, Text: why}
			e := t.store(ctx, results[i], 0)
			err = firstError(err, e)
			i++
			continue
		}
		if t.reads(calls[i]) {
			for i+n < len(calls) && i+n < maxCalls && n < maxParallel && t.reads(calls[i+n]) {
				n++
			}
		}
		end, e := t.runBatch(ctx, calls[i:i+n], results[i:i+n])
		endTurn, err = endTurn || end, firstError(err, e)
		i += n
	}
	t.History.AddResults(results)
	return endTurn, err
}

// whyNot says why call i must not run; empty when it may.
func (t *turn) whyNot(ctx context.Context, i int, stop providers.Stop, ended bool, err error) string {
	switch {
	case err != nil:
		return "Not run: the session could not be stored."
	case stop == providers.StopLength:
		return "Not run: the answer was cut at the output limit, so this call may be incomplete. Send it again, in smaller pieces."
	case ctx.Err() != nil:
		return fmt.Sprintf("Not run: %v.", context.Cause(ctx))
	case ended:
		return "Not run: an earlier call ended the turn."
	case i >= maxCalls:
		return fmt.Sprintf("Not run: at most %d calls of one answer are run. Send the rest again.", maxCalls)
	}
	return ""
}

// reads reports whether the call may overlap with others.
func (t *turn) reads(c session.Call) bool {
	s, ok := t.View.Lookup(c.Name)
	return ok && s.Tier == tools.Read && !s.Exclusive
}

func (t *turn) canonical(name string) string {
	if s, ok := t.View.Lookup(name); ok {
		return s.Name
	}
	return name
}

// runBatch runs one call, or several read calls at once, and stores each result
// as soon as it is there. The calls start in order: each waits until the one
// before it runs or has ended.
func (t *turn) runBatch(ctx context.Context, calls []session.Call, results []session.Result) (endTurn bool, err error) {
	if len(calls) == 1 {
		results[0], endTurn, err = t.runCall(ctx, calls[0])
		return endTurn, err
	}
	var wg sync.WaitGroup
	var mu sync.Mutex // guards endTurn and err
	for i, c := range calls {
		begun := t.starts.expect(c.ID)
		wg.Go(func() {
			defer t.starts.tell(c.ID)
			r, end, e := t.runCall(ctx, c)
			mu.Lock()
			defer mu.Unlock()
			results[i], endTurn, err = r, endTurn || end, firstError(err, e)
		})
		<-begun
	}
	wg.Wait()
	return endTurn, err
}

func (t *turn) runCall(ctx context.Context, c session.Call) (session.Result, bool, error) {
	began := time.Now()
	r := t.runner.Invoke(ctx, tools.Call{ID: c.ID, Name: c.Name, Args: c.Args, Origin: tools.FromModel})
	stored := session.Result{
		Call: c.ID, Outcome: session.Outcome(r.Outcome), Text: r.Text(),
		Changed: t.describe(r.Output.Changed), Millis: time.Since(began).Milliseconds(),
	}
	if stored.Text == "" {
		stored.Text = "(no output)"
	}
	return stored, r.Output.EndTurn, t.store(ctx, stored, time.Since(began))
}

// store appends a result and tells of it. What a call has done is recorded also
// after a stop.
func (t *turn) store(ctx context.Context, r session.Result, took time.Duration) error {
	text, cut := Clip(r.Text)
	fact := agent.CallEnded{Call: r.Call, Outcome: string(r.Outcome), Text: text, Cut: cut, Changed: FileChanges(r.Changed), Took: took}
	rec := session.ItemAdded{Turn: t.Turn, Item: session.Item{ID: r.Call + "/result", Result: &r}}
	if err := t.Append(context.WithoutCancel(ctx), false, []session.Record{rec}, fact); err != nil {
		return fmt.Errorf("%w: %w", errUnwritten, err)
	}
	return nil
}

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// starts lets runBatch wait until a call has begun. Safe for concurrent use.
type starts struct {
	mu      sync.Mutex // guards waiting
	waiting map[string]chan struct{}
}

// expect returns a channel that is closed by the first tell of the call.
func (s *starts) expect(call string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting == nil {
		s.waiting = map[string]chan struct{}{}
	}
	ch := make(chan struct{})
	s.waiting[call] = ch
	return ch
}

func (s *starts) tell(call string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ch, ok := s.waiting[call]; ok {
		close(ch)
		delete(s.waiting, call)
	}
}

// observer publishes what the runner tells. The proposal and the end of the
// model's own calls are published with their records; a nested call has none.
type observer struct{ t *turn }

func (o observer) Started(c tools.Call, _ tools.Spec) {
	if c.Parent != "" {
		o.propose(c)
	}
	o.t.Emit(agent.CallStarted{Call: c.ID})
	o.t.starts.tell(c.ID)
}

func (o observer) propose(c tools.Call) {
	o.t.Emit(agent.CallProposed{Call: c.ID, Tool: o.t.canonical(c.Name), Title: Title(c.Args), Args: c.Args, Parent: c.Parent})
}

func (o observer) Progress(c tools.Call, text string) {
	o.t.Emit(agent.CallProgress{Call: c.ID, Text: text})
}

func (o observer) Ended(c tools.Call, r tools.Result, took time.Duration) {
	if c.Parent == "" {
		return
	}
	if r.Outcome == tools.Refused || r.Outcome == tools.NotRun { // it was never started
		o.propose(c)
	}
	text, cut := Clip(r.Text())
	o.t.Emit(agent.CallEnded{Call: c.ID, Outcome: string(r.Outcome), Text: text, Cut: cut, Changed: FileChanges(o.t.describe(r.Output.Changed)), Took: took})
}

// describe is what is stored and shown of written files, without credentials.
func (t *turn) describe(cs []tools.Change) []session.Change {
	out := describe(cs)
	for i := range out {
		out[i].Diff = t.Redact(out[i].Diff)
	}
	return out
}
