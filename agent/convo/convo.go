package convo

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/lakecode/lakecode/agent"
	"github.com/lakecode/lakecode/agent/loop"
	"github.com/lakecode/lakecode/providers"
	"github.com/lakecode/lakecode/session"
	"github.com/lakecode/lakecode/tools"
)

// Config is what a conversation is made of. All fields are required but
// Default and Released.
type Config struct {
	// Archive is the stored session, repaired; the conversation takes it over.
	Archive *session.Archive
	// Store is where records go. It is closed with the conversation.
	Store Store
	// Registry is the whole catalogue of tools.
	Registry *tools.Registry
	// Resolve turns a choice into what is used, with an *agent.Error that says
	// what is wrong. The zero choice asks for the default.
	Resolve func(ctx context.Context, c agent.Choice) (providers.Snapshot, error)
	// Client returns the client for a snapshot's protocol.
	Client func(providers.Snapshot) (providers.Client, error)
	// System is the prompt of Build.
	System string
	// Released is called once, when everything of the conversation has ended.
	Released func()
	Log      *zap.Logger
}

// Store is the log of one session; *session.Log implements it.
type Store interface {
	Append(ctx context.Context, sync bool, rs ...session.Record) error
	Close() error
}

// accepted is a queued message with what was frozen at acceptance. A restored
// one has no snapshot until the queue is resumed.
type accepted struct {
	m    session.Message
	snap providers.Snapshot
	ok   bool // snap is set
}

// Convo implements agent.Conversation.
type Convo struct {
	cfg    Config
	epoch  string
	box    chan message
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when the owner has ended
	wg     sync.WaitGroup
	feed   *feed
	gate   *gate
	state  atomic.Pointer[agent.State]
	book   *book
}

// Start takes over a stored session. A queue that it holds stays paused until a
// person resumes it. ctx bounds the life of the conversation; Close ends it.
func Start(ctx context.Context, cfg Config) *Convo {
	ctx, cancel := context.WithCancelCause(ctx)
	c := &Convo{
		cfg: cfg, epoch: uuid.NewString(), box: make(chan message, 256), cancel: cancel,
		done: make(chan struct{}), feed: newFeed(), book: newBook(cfg.Store),
	}
	c.gate = &gate{
		show: func(in agent.Interaction) { c.post(showMsg{in}) },
		hide: func(id, how string) { c.post(hideMsg{id, how}) },
	}
	o := newOwner(c, ctx)
	o.start()
	go o.run(ctx) // joined through c.done by Close
	return c
}

// post delivers a worker's message. The owner is draining while a worker lives;
// after its end there is nothing left to tell.
func (c *Convo) post(m message) {
	select {
	case c.box <- m:
	case <-c.done:
	}
}

// ask posts a message and waits for the owner's reply.
func ask[T any](ctx context.Context, c *Convo, m message, reply chan T) (T, error) {
	var zero T
	select {
	case c.box <- m:
	case <-ctx.Done():
		return zero, context.Cause(ctx)
	case <-c.done:
		return zero, errClosed()
	}
	select {
	case v := <-reply:
		return v, nil
	case <-ctx.Done():
		return zero, context.Cause(ctx)
	case <-c.done:
		select {
		case v := <-reply: // the owner answered and ended
			return v, nil
		default:
			return zero, errClosed()
		}
	}
}

func errClosed() error {
	return agent.Errorf(agent.Closed, "Open the session again.", "The conversation is closed.")
}

// State implements agent.Conversation.
func (c *Convo) State() agent.State { return *c.state.Load() }

// Attach implements agent.Conversation.
func (c *Convo) Attach() (release func()) { return c.gate.attach() }

// Subscribe implements agent.Conversation.
func (c *Convo) Subscribe(after uint64) (agent.Subscription, error) {
	s, err := c.feed.subscribe(after)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Snapshot implements agent.Conversation.
func (c *Convo) Snapshot(ctx context.Context, before string, limit int) (agent.Transcript, agent.State, error) {
	reply := make(chan snapshot, 1)
	s, err := ask(ctx, c, snapshotMsg{before: before, limit: limit, reply: reply}, reply)
	if err != nil {
		return agent.Transcript{}, agent.State{}, err
	}
	return s.transcript, s.state, s.err
}

// Close implements agent.Conversation.
func (c *Convo) Close(ctx context.Context) error {
	c.cancel(loop.ErrShutdown)
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Do implements agent.Conversation.
func (c *Convo) Do(ctx context.Context, cmd agent.Command) (agent.Receipt, error) {
	switch cmd := cmd.(type) {
	case agent.Submit:
		return c.submit(ctx, cmd)
	case agent.Resolve:
		err := c.gate.resolve(cmd.Interaction, cmd.Decision)
		return agent.Receipt{Seq: c.State().Seq}, err
	case agent.ResumeQueue:
		return c.resume(ctx)
	case agent.Stop, agent.DropQueued, agent.RetrySave, agent.Rename:
		return c.command(ctx, commandMsg{cmd: cmd, reply: make(chan receipt, 1)})
	default:
		return agent.Receipt{}, agent.Errorf(agent.Unsupported, "", "Unknown command %T.", cmd)
	}
}

func (c *Convo) command(ctx context.Context, m commandMsg) (agent.Receipt, error) {
	r, err := ask(ctx, c, m, m.reply)
	if err != nil {
		return agent.Receipt{}, err
	}
	return r.Receipt, r.err
}

// maxMessage bounds a person's message, in bytes.
const maxMessage = 1 << 20

// submit resolves the model before the owner looks at the queue (spec 20).
func (c *Convo) submit(ctx context.Context, s agent.Submit) (agent.Receipt, error) {
	if s.Mode == "" {
		s.Mode = agent.Build
	}
	switch {
	case s.Text == "":
		return agent.Receipt{}, agent.Errorf(agent.BadRequest, "", "The message is empty.")
	case len(s.Text) > maxMessage:
		return agent.Receipt{}, agent.Errorf(agent.BadRequest, "Put it into a file and name the file.", "The message has %d bytes; at most %d are taken.", len(s.Text), maxMessage)
	case s.Mode != agent.Build:
		return agent.Receipt{}, agent.Errorf(agent.Unsupported, "Use the mode build.", "The mode %q is not available.", s.Mode)
	}
	choice := s.Model
	if choice == (agent.Choice{}) {
		choice = c.State().Model
	}
	snap, err := c.cfg.Resolve(ctx, choice)
	if err != nil {
		return agent.Receipt{}, err
	}
	if _, err := c.cfg.Client(snap); err != nil {
		return agent.Receipt{}, err
	}
	a := accepted{ok: true, snap: snap, m: session.Message{
		ID: uuid.Must(uuid.NewV7()).String(), ClientRequestID: s.ClientRequestID, Text: s.Text, Mode: string(s.Mode),
		Main:     session.Assignment{Provider: snap.Provider, Model: snap.Model, Effort: snap.Effort},
		Accepted: time.Now().UTC(),
	}}
	return c.command(ctx, commandMsg{cmd: s, accept: a, reply: make(chan receipt, 1)})
}

// resume resolves restored messages against the present settings first: a
// connection that is gone keeps the queue paused and says so.
func (c *Convo) resume(ctx context.Context) (agent.Receipt, error) {
	m := commandMsg{cmd: agent.ResumeQueue{}, reply: make(chan receipt, 1), resolved: map[string]providers.Snapshot{}}
	for _, q := range c.State().Queue {
		snap, err := c.cfg.Resolve(ctx, q.Model)
		if err == nil {
			_, err = c.cfg.Client(snap)
		}
		if err != nil {
			m.problem = err.Error()
			_, _ = c.command(ctx, m)
			return agent.Receipt{}, err
		}
		m.resolved[q.ID] = snap
	}
	return c.command(ctx, m)
}

// asker is how the tools of a turn reach the person.
type asker struct{ c *Convo }

// Ask implements tools.Asker.
func (a asker) Ask(ctx context.Context, q tools.Question) (tools.Answer, error) {
	in := agent.Interaction{
		ID: uuid.NewString(), Kind: "question", Call: q.Call, Text: q.Text, Context: q.Context,
		FreeText: q.FreeText, Multi: q.Multi, Options: make([]agent.Option, len(q.Options)),
	}
	for i, o := range q.Options {
		in.Options[i] = agent.Option{Label: o.Label, Description: o.Description}
	}
	d, err := a.c.gate.ask(ctx, in)
	if err != nil {
		var ae *agent.Error
		if errors.As(err, &ae) && ae.Code == agent.NoHuman {
			a.c.post(factMsg{agent.Answered{Interaction: in.ID, How: "unavailable"}})
			err = tools.ErrNobody
		}
		return tools.Answer{}, err
	}
	return tools.Answer{Chosen: d.Chosen, Text: d.Text, Skipped: d.Skip}, nil
}
