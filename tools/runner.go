package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// maxOutput bounds what one call may hand to the model, in bytes. Tools have
// their own lower limits; this one holds for a tool that forgot.
const maxOutput = 256 << 10

// lateAfter is how long a tool may take to return once its context has ended.
const lateAfter = 2 * time.Second

// Observer is told what happens to a call, in this order: Started, any number
// of Progress, Ended. A call that is refused before it runs has only Ended.
// Methods are called from the goroutine of the call and must not block.
type Observer interface {
	Started(c Call, s Spec)
	Progress(c Call, text string)
	Ended(c Call, r Result, took time.Duration)
}

// Config is what a Runner needs. View, Observer and Log are required.
type Config struct {
	View     *View
	Observer Observer
	Asker    Asker // nil: nobody can be asked
	Log      *zap.Logger
	// Approve decides a call whose terms are AskEachTime. Nil refuses.
	Approve func(ctx context.Context, c Call, s Spec) (bool, error)
	// Before runs right before a call of the Write or Exec tier starts; an error
	// keeps it from starting. It makes the start durable.
	Before func(ctx context.Context, c Call, s Spec) error
	// After runs in order on every call that worked and may add to its output.
	After []func(ctx context.Context, c Call, out *Output)
	// Redact hides credentials in what a call says, whatever tool it came by and
	// whether it worked. Nil hides nothing.
	Redact func(string) string
}

// Runner is the only way to run a tool, for the model and for an eval cell.
// One lives for one turn. Safe for concurrent use.
type Runner struct {
	cfg   Config
	lane  *lane
	ended atomic.Bool // a tool ended the turn; later calls are refused
}

// NewRunner makes the runner of a turn.
func NewRunner(cfg Config) *Runner {
	if cfg.Redact == nil {
		cfg.Redact = func(s string) string { return s }
	}
	return &Runner{cfg: cfg, lane: newLane()}
}

// View returns the tools this runner runs.
func (r *Runner) View() *View { return r.cfg.View }

// Invoke runs one call to its end and reports exactly one result. It returns
// only after the tool has returned, also when ctx ends before.
//
// The steps, here and nowhere else: look up in the view; parse and validate the
// arguments; require a description; the tool's policy; decide; enter the lane; make the start
// durable; run; after-steps; bound the output.
func (r *Runner) Invoke(ctx context.Context, c Call) Result {
	began := time.Now()
	res := r.invoke(ctx, c)
	res.CallID = c.ID
	r.cfg.Observer.Ended(c, res, time.Since(began))
	return res
}

func refuse(o Outcome, e *Error) Result { return Result{Outcome: o, Err: e} }

func (r *Runner) invoke(ctx context.Context, c Call) Result {
	at, ok := r.cfg.View.index[c.Name]
	if !ok {
		return refuse(Refused, Errorf(UnknownTool, "Use one of: "+strings.Join(r.cfg.View.Names(), ", ")+".", "There is no tool %q here.", c.Name))
	}
	if r.ended.Load() {
		return refuse(Refused, Errorf(NotAllowed, "", "Not run: the turn has been ended by an earlier call."))
	}
	t := r.cfg.View.tools[at]
	args, bad := t.check(c.Args)
	if bad != nil {
		return refuse(Refused, bad)
	}
	if t.policy != nil {
		if bad := t.policy(args); bad != nil {
			return refuse(Refused, bad)
		}
	}
	if r.cfg.View.terms[at] == AskEachTime {
		if bad := r.approve(ctx, c, t.spec); bad != nil {
			return refuse(Refused, bad)
		}
	}
	release, err := laneOf(ctx, r.lane).enter(ctx, t.spec)
	if err != nil {
		return refuse(NotRun, notRun(ctx))
	}
	defer release()
	if ctx.Err() != nil {
		return refuse(NotRun, notRun(ctx))
	}
	if t.spec.Tier != Read && r.cfg.Before != nil {
		if err := r.cfg.Before(ctx, c, t.spec); err != nil {
			return refuse(NotRun, Errorf(Internal, "", "Not run: its start could not be recorded: %v", err))
		}
	}
	return r.run(ctx, t, c, args)
}

func (r *Runner) run(ctx context.Context, t Tool, c Call, args json.RawMessage) Result {
	r.cfg.Observer.Started(c, t.spec)
	stop := r.watchLate(ctx, c)
	out, err := r.guard(withLane(ctx, newLane()), t, c, args)
	stop()
	if err != nil {
		var te *Error
		if !errors.As(err, &te) {
			te = &Error{Code: Other, Text: err.Error()}
		}
		te = &Error{Code: te.Code, Text: bound(r.cfg.Redact(te.Text)), Next: bound(r.cfg.Redact(te.Next))}
		if ctx.Err() != nil {
			return Result{Outcome: Interrupted, Err: te}
		}
		return Result{Outcome: Failed, Err: te}
	}
	for _, f := range r.cfg.After {
		f(ctx, c, &out)
	}
	out.Text = bound(r.cfg.Redact(out.Text))
	if out.EndTurn {
		r.ended.Store(true)
	}
	return Result{Outcome: OK, Output: out}
}

// guard turns a panic of a tool into an error result.
func (r *Runner) guard(ctx context.Context, t Tool, c Call, args json.RawMessage) (out Output, err error) {
	defer func() {
		if p := recover(); p != nil {
			r.cfg.Log.Error("bug: tool panicked", zap.String("tool", c.Name), zap.String("call", c.ID),
				zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
			err = Errorf(Internal, "Its effects are unknown: check before you go on.", "The tool %s failed inside (a bug of Lakecode; see its log).", c.Name)
		}
	}()
	env := &IO{Call: c, Invoke: r.Invoke, Ask: r.cfg.Asker, Progress: func(s string) { r.cfg.Observer.Progress(c, r.cfg.Redact(s)) }}
	return t.run(ctx, args, env)
}

// watchLate logs the stacks when the tool has not returned lateAfter after the
// end of ctx. The caller goes on waiting: a tool is never left behind.
func (r *Runner) watchLate(ctx context.Context, c Call) (stop func()) {
	var mu sync.Mutex // guards timer and returned
	var timer *time.Timer
	returned := false
	unhook := context.AfterFunc(ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		if returned {
			return
		}
		timer = time.AfterFunc(lateAfter, func() {
			buf := make([]byte, 64<<10)
			r.cfg.Log.Error("bug: tool is late", zap.String("tool", c.Name), zap.String("call", c.ID),
				zap.ByteString("stacks", buf[:runtime.Stack(buf, true)]))
		})
	})
	return func() {
		unhook()
		mu.Lock()
		defer mu.Unlock()
		returned = true
		if timer != nil {
			timer.Stop()
		}
	}
}

func (r *Runner) approve(ctx context.Context, c Call, s Spec) *Error {
	if r.cfg.Approve == nil {
		return Errorf(NotAllowed, "", "Not run: %s needs an approval here and nobody can give it.", s.Name)
	}
	ok, err := r.cfg.Approve(ctx, c, s)
	switch {
	case err != nil:
		return Errorf(NotAllowed, "", "Not run: no approval: %v", err)
	case !ok:
		return Errorf(NotAllowed, "Do not ask for the same again; find another way or ask the person what they want.", "Not run: the person refused this call.")
	}
	return nil
}

func notRun(ctx context.Context) *Error {
	return Errorf(Cancelled, "", "Not run: %v.", context.Cause(ctx))
}

// check parses and validates arguments. Only harmless things are forgiven: no
// arguments at all stand for an empty object.
func (t Tool) check(raw string) (json.RawMessage, *Error) {
	if strings.TrimSpace(raw) == "" {
		raw = "{}"
	}
	var v any
	err := json.Unmarshal([]byte(raw), &v)
	if err != nil {
		return nil, Errorf(BadArguments, "Nothing was run. Send the call again with one complete JSON object.", "The arguments of %s are not valid JSON: %v", t.spec.Name, err)
	}
	obj, ok := v.(map[string]any)
	if !ok {
		return nil, Errorf(BadArguments, "Nothing was run. Arguments: "+strings.Join(t.keys, ", ")+".", "The arguments of %s must be one JSON object.", t.spec.Name)
	}
	for k := range obj {
		if !slices.Contains(t.keys, k) {
			return nil, Errorf(BadArguments, "Nothing was run. Arguments: "+strings.Join(t.keys, ", ")+".", "%s has no argument %q.", t.spec.Name, k)
		}
	}
	if t.spec.NeedsDescription {
		if d, _ := obj["description"].(string); strings.TrimSpace(d) == "" {
			return nil, Errorf(BadArguments, "Nothing was run. Say in \"description\" what the call does, why, and which side effects it has.", "%s needs a description.", t.spec.Name)
		}
	}
	if err := t.args.Validate(obj); err != nil {
		return nil, Errorf(BadArguments, "Nothing was run. Arguments: "+strings.Join(t.keys, ", ")+".", "The arguments of %s do not fit: %s", t.spec.Name, readable(err))
	}
	return json.RawMessage(raw), nil
}

// readable drops the validator's prefixes, which name schema paths.
func readable(err error) string {
	s := err.Error()
	if i := strings.LastIndex(s, "validating /properties/"); i >= 0 {
		s = s[i+len("validating /properties/"):]
	}
	s = strings.TrimPrefix(s, "validating root: ")
	return s
}

// bound cuts a text that is too long, and makes it what the log can hold: the
// history in memory would otherwise differ from the one that is read back.
func bound(s string) string {
	if len(s) <= maxOutput {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	cut := strings.ToValidUTF8(s[:maxOutput], "")
	return fmt.Sprintf("%s\n[cut: %d of %d bytes shown]", cut, len(cut), len(s))
}
