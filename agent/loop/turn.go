package loop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/lakecode/lakecode/agent"
	"github.com/lakecode/lakecode/providers"
	"github.com/lakecode/lakecode/session"
	"github.com/lakecode/lakecode/tools"
)

const (
	// maxRequests bounds the model requests of one turn.
	maxRequests = 200
	// maxCalls bounds the calls of one answer that are run.
	maxCalls = 128
	// maxCutAnswers is how many answers in a row may end at the length limit.
	maxCutAnswers = 3
)

// ErrStopped is the cause of a context that a person ended.
var ErrStopped = errors.New("the person stopped the turn")

// ErrShutdown is the cause of a context that ends with the program.
//
//lint:ignore ST1005 Lakecode is a name
var ErrShutdown = errors.New("Lakecode is shutting down")

// Config is one turn. All fields are required but Asker and Approve.
type Config struct {
	Turn     string
	Client   providers.Client
	Snapshot providers.Snapshot
	CacheKey string
	System   string
	View     *tools.View
	// History has the turn's user message as its last one.
	History *History
	Asker   tools.Asker
	Approve func(ctx context.Context, c tools.Call, s tools.Spec) (bool, error)
	// Redact hides credentials in what calls say and in the diffs of what they
	// change. Nil hides nothing.
	Redact func(string) string
	// Emit publishes a fact. It does not block.
	Emit func(agent.Fact)
	// Append writes records and then publishes the facts that tell of them, also
	// when the records could not be written. Whoever looks sees both or neither.
	// With sync the records are on the disk when it returns.
	Append func(ctx context.Context, sync bool, recs []session.Record, facts ...agent.Fact) error
	Log    *zap.Logger
}

type turn struct {
	Config
	runner  *tools.Runner
	specs   []providers.ToolSpec
	began   time.Time
	first   time.Time
	usage   providers.Usage
	request int // requests made
	cut     int // answers in a row that ended at the length limit
	failure *agent.Failure
	starts  starts
}

// Run runs the turn until the model has no more calls, an error, or the end of
// ctx, whose cause says why. The result is not saved: the caller appends it.
// What was appended before an error stays.
func Run(ctx context.Context, c Config) (session.End, *agent.Failure) {
	t := &turn{Config: c, began: time.Now()}
	for _, s := range c.View.Specs() {
		t.specs = append(t.specs, providers.ToolSpec{Name: s.Name, Description: s.Description, Schema: s.Schema})
	}
	if t.Redact == nil {
		t.Redact = func(s string) string { return s }
	}
	t.runner = tools.NewRunner(tools.Config{
		View: c.View, Observer: observer{t}, Asker: c.Asker, Log: c.Log, Approve: c.Approve, Redact: t.Redact,
		Before: func(ctx context.Context, call tools.Call, _ tools.Spec) error {
			return c.Append(ctx, true, []session.Record{session.CallStarted{Turn: c.Turn, Call: call.ID}})
		},
	})
	how := t.loop(ctx)
	c.History.EndTurn()
	return t.end(how), t.failure
}

func (t *turn) end(how session.How) session.End {
	e := session.End{How: how, Time: time.Now().UTC(), Calls: t.request}
	if t.failure != nil {
		e.Error, e.Kind = t.failure.Message, t.failure.Kind
	}
	if t.usage.Known {
		u := storedUsage(t.usage)
		e.Usage = &u
	}
	if !t.first.IsZero() {
		e.FirstMs = t.first.Sub(t.began).Milliseconds()
	}
	return e
}

func (t *turn) loop(ctx context.Context) session.How {
	for {
		if t.request++; t.request > maxRequests {
			t.request--
			return t.fail("limit", fmt.Sprintf("The turn was ended after %d model requests.", maxRequests), "Send a message to go on.")
		}
		if err := t.History.Check(); err != nil {
			t.Log.Error("bug: history is not sendable", zap.Error(err))
			return t.fail("internal", "The history is inconsistent: "+err.Error()+".", "This is a bug of Lakecode; see its log.")
		}
		a, stop, err := t.ask(ctx)
		t.cut++
		if stop != providers.StopLength {
			t.cut = 0
		}
		// A stop or a full disk may come right after a complete answer: its calls
		// then do not run, but they still get their results.
		endTurn := false
		if len(a.Calls) > 0 {
			endTurn, err = t.runCalls(ctx, a.Calls, stop, err)
		}
		switch {
		case ctx.Err() != nil:
			return t.interrupted(ctx)
		case err != nil:
			return t.failed(ctx, err)
		case len(a.Calls) == 0:
			return t.finish(a, stop)
		case endTurn:
			return session.Completed
		case t.cut >= maxCutAnswers:
			return t.fail(string(providers.TooLong), fmt.Sprintf("%d answers in a row were cut at the model's output limit.", t.cut), "Ask for smaller steps, or raise MaxOutputTokens of the model.")
		}
	}
}

// finish ends the turn on an answer without calls.
func (t *turn) finish(a session.Answer, stop providers.Stop) session.How {
	switch {
	case stop == providers.StopLength:
		return t.fail(string(providers.TooLong), "The answer was cut at the model's output limit.", "Send \"go on\", or raise MaxOutputTokens of the model.")
	case stop == providers.StopFilter:
		return t.fail(string(providers.Filtered), "The provider's content filter ended the answer.", "")
	case strings.TrimSpace(a.Text) == "":
		return t.fail(string(providers.BrokenStream), "The model ended its answer without saying anything.", "Send the message again, or choose another model.")
	}
	return session.Completed
}

// interrupted notes why ctx ended, for the model's next turn.
func (t *turn) interrupted(ctx context.Context) session.How {
	cause := context.Cause(ctx)
	text := "The last turn was interrupted: " + cause.Error() + ". What finished calls did remains."
	t.addNote(ctx, "stopped", text)
	if errors.Is(cause, ErrStopped) || errors.Is(cause, ErrShutdown) {
		return session.Stopped
	}
	t.failure = &agent.Failure{Kind: "internal", Message: cause.Error()}
	return session.Errored
}

func (t *turn) failed(ctx context.Context, err error) session.How {
	why := "a model request failed"
	var pe *providers.Error
	switch {
	case errors.As(err, &pe):
		t.failure = &agent.Failure{Kind: string(pe.Kind), Message: sentence(pe.Error()), Next: pe.Next}
	case errors.Is(err, errUnwritten):
		t.failure = Unwritten(err)
		why = "the session could not be written"
	default:
		t.failure = &agent.Failure{Kind: "internal", Message: err.Error()}
	}
	t.addNote(ctx, "error", "The last turn ended early because "+why+". What finished calls did remains.")
	return session.Errored
}

// sentence ends a text that another one may follow.
func sentence(s string) string {
	if s == "" || strings.ContainsAny(s[len(s)-1:], ".!?") {
		return s
	}
	return s + "."
}

// errUnwritten marks an error of Append.
var errUnwritten = errors.New("not stored")

// Unwritten is the failure of a turn whose records cannot be written.
func Unwritten(err error) *agent.Failure {
	return &agent.Failure{Kind: string(agent.NotSaved), Message: "The session cannot be written: " + err.Error() + ".", Next: "Free space or mend the folder, then retry the save."}
}

func (t *turn) fail(kind, message, next string) session.How {
	t.failure = &agent.Failure{Kind: kind, Message: message, Next: next}
	return session.Errored
}

// addNote keeps the note for the next turn. Failing to write it is told by the
// final save, which writes the backlog.
func (t *turn) addNote(ctx context.Context, kind, text string) {
	t.History.AddNote(text)
	_ = t.Append(context.WithoutCancel(ctx), false, []session.Record{note(t.Turn, kind, text)})
}

func storedUsage(u providers.Usage) session.Usage {
	return session.Usage{Input: u.Input, Cached: u.Cached, Output: u.Output, Reasoning: u.Reasoning}
}

// UsageOf converts a provider's usage for events and state.
func UsageOf(u providers.Usage) agent.Usage {
	return agent.Usage{Known: u.Known, Input: u.Input, Cached: u.Cached, Output: u.Output, Reasoning: u.Reasoning}
}
