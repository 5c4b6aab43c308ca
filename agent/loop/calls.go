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
// in call order. An error means that a result could not be stored.
func (t *turn) runCalls(ctx context.Context, calls []session.Call, stop providers.Stop) (endTurn bool, err error) {
	for _, c := range calls {
		t.Emit(agent.CallProposed{Call: c.ID, Tool: t.canonical(c.Name), Title: Title(c.Args), Args: c.Args})
	}
	results := make([]session.Result, len(calls))
	for i := 0; i < len(calls); {
		n := 1
		if why := t.whyNot(ctx, i, stop, endTurn, err); why != "" {
			results[i] = t.skip(calls[i], why)
			e := t.store(ctx, results[i])
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

func (t *turn) skip(c session.Call, why string) session.Result {
	t.Emit(agent.CallEnded{Call: c.ID, Outcome: string(tools.NotRun), Text: why})
	return session.Result{Call: c.ID, Outcome: session.NotRun, Text: why}
}

func (t *turn) reads(c session.Call) bool {
	s, ok := t.View.Lookup(c.Name)
	return ok && s.Tier == tools.Read
}

func (t *turn) canonical(name string) string {
	if s, ok := t.View.Lookup(name); ok {
		return s.Name
	}
	return name
}

// runBatch runs one call, or several read calls at once, and stores each result
// as soon as it is there.
func (t *turn) runBatch(ctx context.Context, calls []session.Call, results []session.Result) (endTurn bool, err error) {
	if len(calls) == 1 {
		results[0], endTurn, err = t.runCall(ctx, calls[0])
		return endTurn, err
	}
	var wg sync.WaitGroup
	var mu sync.Mutex // guards endTurn and err
	for i, c := range calls {
		wg.Go(func() {
			r, end, e := t.runCall(ctx, c)
			mu.Lock()
			defer mu.Unlock()
			results[i], endTurn, err = r, endTurn || end, firstError(err, e)
		})
	}
	wg.Wait()
	return endTurn, err
}

func (t *turn) runCall(ctx context.Context, c session.Call) (session.Result, bool, error) {
	began := time.Now()
	r := t.runner.Invoke(ctx, tools.Call{ID: c.ID, Name: c.Name, Args: c.Args, Origin: tools.FromModel})
	stored := session.Result{
		Call: c.ID, Outcome: session.Outcome(r.Outcome), Text: r.Text(),
		Changed: describe(r.Output.Changed), Millis: time.Since(began).Milliseconds(),
	}
	if stored.Text == "" {
		stored.Text = "(no output)"
	}
	text, cut := Clip(stored.Text)
	t.Emit(agent.CallEnded{Call: c.ID, Outcome: string(stored.Outcome), Text: text, Cut: cut, Changed: FileChanges(stored.Changed), Took: time.Since(began)})
	return stored, r.Output.EndTurn, t.store(ctx, stored)
}

// store appends a result. What a call has done is recorded also after a stop.
func (t *turn) store(ctx context.Context, r session.Result) error {
	err := t.Append(context.WithoutCancel(ctx), false, session.ItemAdded{Turn: t.Turn, Item: session.Item{ID: r.Call + "/result", Result: &r}})
	if err != nil {
		return fmt.Errorf("the result of a call could not be stored: %w", err)
	}
	return nil
}

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// observer publishes what the runner tells. CallEnded is published by runCall,
// which knows what is stored.
type observer struct{ t *turn }

func (o observer) Started(c tools.Call, _ tools.Spec) { o.t.Emit(agent.CallStarted{Call: c.ID}) }

func (o observer) Progress(c tools.Call, text string) {
	o.t.Emit(agent.CallProgress{Call: c.ID, Text: text})
}

func (o observer) Ended(tools.Call, tools.Result, time.Duration) {}
