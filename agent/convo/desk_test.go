package convo

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/lakecode/lakecode/agent"
	"github.com/lakecode/lakecode/agent/loop"
	"github.com/lakecode/lakecode/providers"
	"github.com/lakecode/lakecode/session"
	"github.com/lakecode/lakecode/tools"
)

// The model of these tests does what the first word of the message says: hold
// waits for release or the end, fail breaks off, ask puts a question, work makes
// two calls, panic panics; anything else is answered.
type model struct {
	mu   sync.Mutex // guards all below
	held chan struct{}
	seen map[string]int // requests by message
}

func (m *model) release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.held)
	m.held = make(chan struct{})
}

func (m *model) count(text string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen[text]
}

func (m *model) Stream(ctx context.Context, _ providers.Snapshot, req providers.Request) iter.Seq2[providers.Delta, error] {
	text, answered := lastMessage(req.Messages)
	m.mu.Lock()
	held := m.held
	m.seen[text]++
	m.mu.Unlock()
	return func(yield func(providers.Delta, error) bool) {
		verb, _, _ := strings.Cut(text, " ")
		var done providers.Done
		done.Usage = providers.Usage{Known: true, Input: 3, Output: 1}
		switch {
		case verb == "panic":
			panic("the model's client is broken")
		case verb == "hold":
			if !yield(providers.TextDelta{Text: "holding "}, nil) {
				return
			}
			select {
			case <-held:
			case <-ctx.Done():
				yield(nil, &providers.Error{Kind: providers.Cancelled, Message: "cancelled", Err: context.Cause(ctx)})
				return
			}
			done.Parts = []providers.Part{providers.Text{Text: "holding "}}
		case verb == "fail":
			yield(nil, &providers.Error{Kind: providers.Overloaded, Message: "no capacity"})
			return
		case verb == "ask" && !answered:
			done.Stop, done.Parts = providers.StopCalls, []providers.Part{providers.ToolCall{ID: "q", Name: "ask_user", Args: `{"question":"which?","options":[{"label":"a"},{"label":"b"}]}`}}
		case verb == "work" && !answered:
			if !yield(providers.TextDelta{Text: "Look"}, nil) || !yield(providers.TextDelta{Text: "ing."}, nil) {
				return
			}
			done.Stop, done.Parts = providers.StopCalls, []providers.Part{
				providers.Text{Text: "Looking."}, providers.ToolCall{ID: "r", Name: "read_file", Args: "{}"}, providers.ToolCall{ID: "b", Name: "bash", Args: "{}"},
			}
		default:
			if !yield(providers.TextDelta{Text: "done"}, nil) {
				return
			}
			done.Parts = []providers.Part{providers.Text{Text: "done"}}
		}
		yield(done, nil)
	}
}

// lastMessage is what the person said last, and whether calls were made since.
func lastMessage(ms []*providers.Message) (text string, answered bool) {
	for i := len(ms) - 1; i >= 0; i-- {
		if ms[i].Role != providers.User {
			answered = true
			continue
		}
		all := ms[i].Parts[0].(providers.Text).Text
		if at := strings.LastIndex(all, "\n\n"); at >= 0 {
			all = all[at+2:] // notes come first
		}
		return all, answered
	}
	return "", false
}

// disk is a real log that can be told to fail or to wait.
type disk struct {
	*session.Log

	mu   sync.Mutex // guards all below
	err  error
	held chan struct{} // not nil: writes wait until it is closed
	slow time.Duration // what a write takes longer
}

var errFull = errors.New("no space left on device")

func (d *disk) Append(ctx context.Context, sync bool, rs ...session.Record) error {
	d.mu.Lock()
	held, slow := d.held, d.slow
	d.mu.Unlock()
	if held != nil {
		<-held
	}
	time.Sleep(slow)
	d.mu.Lock()
	err := d.err
	d.mu.Unlock()
	if err != nil {
		return err
	}
	return d.Log.Append(ctx, sync, rs...)
}

func (d *disk) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

func (d *disk) hold() (release func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	ch := make(chan struct{})
	d.held = ch
	return func() {
		d.mu.Lock()
		d.held = nil
		d.mu.Unlock()
		close(ch)
	}
}

// desk is a conversation over a real store. Its tests run in a bubble, so that
// settle waits exactly until nothing moves any more.
type desk struct {
	*Convo
	t     *testing.T
	store *session.Store
	id    session.ID
	disk  *disk
	model *model
	// refuse is what Resolve answers; nil: everything is there.
	refuse   error
	resolved atomic.Int32
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	home, err := session.OpenHome(filepath.Join(t.TempDir(), "home"))
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, store: session.NewStore(home), model: &model{held: make(chan struct{}), seen: map[string]int{}}}
	log, archive, err := d.store.Create(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	d.id = archive.ID
	d.start(log, archive)
	t.Cleanup(func() {
		d.disk.fail(nil)
		_ = d.Close(context.Background())
	})
	return d
}

func (d *desk) start(log *session.Log, archive *session.Archive) {
	d.t.Helper()
	question, err := tools.NewAsk()
	if err != nil {
		d.t.Fatal(err)
	}
	type none struct{}
	plain := func(name string, tier tools.Tier) tools.Tool {
		tool, err := tools.New(tools.Spec{Name: name, Tier: tier}, func(_ context.Context, _ none, io *tools.IO) (tools.Output, error) {
			io.Progress("working\n")
			return tools.Output{Text: "result of " + name}, nil
		})
		if err != nil {
			d.t.Fatal(err)
		}
		return tool
	}
	var reg tools.Registry
	if err := reg.Add(question, plain("read_file", tools.Read), plain("bash", tools.Exec)); err != nil {
		d.t.Fatal(err)
	}
	d.disk = &disk{Log: log}
	d.Convo = Start(context.Background(), Config{
		Archive: archive, Store: d.disk, Registry: &reg, System: "be brief", Log: zap.NewNop(),
		Resolve: func(_ context.Context, c agent.Choice) (providers.Snapshot, error) {
			d.resolved.Add(1)
			if c.Model == "" {
				c.Model = "m"
			}
			return providers.Snapshot{Provider: "p", Protocol: providers.ChatCompletions, Model: c.Model, Effort: c.Effort}, d.refuse
		},
		Client: func(providers.Snapshot) (providers.Client, error) { return d.model, nil },
	})
}

// stored closes the conversation and reads its log.
func (d *desk) stored() *session.Archive {
	d.t.Helper()
	if err := d.Close(context.Background()); err != nil {
		d.t.Fatalf("close: %v", err)
	}
	log, archive, err := d.store.Open(d.t.Context(), d.id)
	if err != nil {
		d.t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		d.t.Fatal(err)
	}
	return archive
}

// reopen closes the conversation and opens it as another process would.
func (d *desk) reopen() {
	d.t.Helper()
	_ = d.Close(context.Background())
	log, archive, err := d.store.Open(d.t.Context(), d.id)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, r := range loop.Repair(archive, func() session.End { return session.End{How: session.Crashed, Time: time.Now()} }) {
		if err := log.Append(d.t.Context(), true, r); err != nil {
			d.t.Fatal(err)
		}
		if err := archive.Apply(r); err != nil {
			d.t.Fatal(err)
		}
	}
	d.start(log, archive)
}

// settle waits until nothing moves and returns the state.
func (d *desk) settle() agent.State {
	synctest.Wait()
	return d.State()
}

func (d *desk) do(c agent.Command) agent.Receipt {
	d.t.Helper()
	r, err := d.Do(d.t.Context(), c)
	if err != nil {
		d.t.Fatalf("%T: %v", c, err)
	}
	return r
}

func (d *desk) submit(text string) agent.Receipt {
	d.t.Helper()
	return d.do(agent.Submit{Text: text})
}

func (d *desk) refused(c agent.Command, want agent.Code) *agent.Error {
	d.t.Helper()
	_, err := d.Do(d.t.Context(), c)
	var ae *agent.Error
	if !errors.As(err, &ae) || ae.Code != want {
		d.t.Fatalf("%T: got %v, want %s", c, err, want)
	}
	return ae
}

// check compares phase, queue and pause, as "running [a b] paused".
func (d *desk) check(want string) agent.State {
	d.t.Helper()
	s := d.settle()
	if got := brief(s); got != want {
		d.t.Fatalf("state %q, want %q (reason %q, blocked %q)", got, want, s.QueueReason, s.Blocked)
	}
	if (s.QueueReason != "") != s.QueuePaused || (s.Blocked != "") != (s.Phase == agent.Stuck) {
		d.t.Errorf("state %+v", s)
	}
	return s
}

func brief(s agent.State) string {
	texts := make([]string, len(s.Queue))
	for i, q := range s.Queue {
		texts[i] = q.Text
	}
	out := fmt.Sprintf("%s %v", s.Phase, texts)
	if s.QueuePaused {
		out += " paused"
	}
	return out
}

// history lists the stored turns as "text how".
func history(a *session.Archive) []string {
	out := []string{}
	for _, t := range a.Turns {
		how := "open"
		if t.End != nil {
			how = string(t.End.How)
		}
		out = append(out, t.Message.Text+": "+how)
	}
	return out
}

func (d *desk) events(after uint64) []agent.Event {
	d.t.Helper()
	sub, err := d.feed.subscribe(after)
	if err != nil {
		d.t.Fatal(err)
	}
	defer sub.Close()
	return drain(d.t, sub)
}

func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}
