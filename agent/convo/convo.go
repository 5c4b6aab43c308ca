package convo

import (
	"context"
	"errors"
	"strings"
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
// Released.
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
	// Redact hides credentials in what calls say. Nil hides nothing.
	Redact func(string) string
	// Released is called once, when everything of the conversation has ended.
	Released func()
	Log      *zap.Logger
}

// accepted is a queued message with what was frozen at acceptance. A restored
// one has no snapshot until the queue is resumed.
type accepted struct {
	m    session.Message
	snap providers.Snapshot
	ok   bool // snap is set
	// through lets it run although the queue is paused.
	through bool
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
	closes atomic.Bool // Close was called
	book   *book
	// unsaved is why the last records are not stored; set before done is closed.
	unsaved error
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
	c.closes.Store(true)
	c.cancel(loop.ErrShutdown)
	select {
	case <-c.done:
		return c.unsaved
	case <-ctx.Done():
	}
	select {
	case <-c.done:
		return c.unsaved
	default:
		return context.Cause(ctx)
	}
}

// Closing reports whether Close was called, so that no command is taken any more.
func (c *Convo) Closing() bool { return c.closes.Load() }

// Do implements agent.Conversation.
func (c *Convo) Do(ctx context.Context, cmd agent.Command) (agent.Receipt, error) {
	switch cmd := cmd.(type) {
	case agent.Submit:
		return c.submit(ctx, cmd)
	case agent.Resolve:
		r := agent.Receipt{Seq: c.State().Seq}
		if err := c.gate.resolve(cmd.Interaction, cmd.Decision); err != nil {
			return agent.Receipt{}, err
		}
		return r, nil
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
	if r.err != nil {
		return agent.Receipt{}, r.err
	}
	return r.Receipt, nil
}

// maxMessage bounds a person's message, in bytes.
const maxMessage = 1 << 20

// submit resolves the model before the owner looks at the queue (spec 20).
func (c *Convo) submit(ctx context.Context, s agent.Submit) (agent.Receipt, error) {
	if s.Mode == "" {
		s.Mode = agent.Build
	}
	switch {
	case strings.TrimSpace(s.Text) == "":
		return agent.Receipt{}, agent.Errorf(agent.BadRequest, "", "The message is empty.")
	case len(s.Text) > maxMessage:
		return agent.Receipt{}, agent.Errorf(agent.BadRequest, "Put it into a file and name the file.", "The message has %d bytes; at most %d are taken.", len(s.Text), maxMessage)
	case s.Mode != agent.Build:
		return agent.Receipt{}, agent.Errorf(agent.Unsupported, "Use the mode build.", "The mode %q is not available.", s.Mode)
	}
	choice := s.Model
	if choice.Provider == "" && choice.Model == "" {
		choice = c.State().Model
		if s.Model.Effort != "" {
			choice.Effort = s.Model.Effort
		}
	}
	snap, refusal := c.resolve(ctx, choice)
	a := accepted{ok: true, snap: snap, m: session.Message{
		ID: uuid.Must(uuid.NewV7()).String(), ClientRequestID: s.ClientRequestID, Text: s.Text, Mode: string(s.Mode),
		Main:     session.Assignment{Provider: snap.Provider, Model: snap.Model, Effort: snap.Effort},
		Accepted: time.Now().UTC(),
	}}
	return c.command(ctx, commandMsg{cmd: s, accept: a, refusal: refusal, reply: make(chan receipt, 1)})
}

// resolve freezes a choice, when there is a client for it.
func (c *Convo) resolve(ctx context.Context, choice agent.Choice) (providers.Snapshot, error) {
	snap, err := c.cfg.Resolve(ctx, choice)
	if err == nil {
		_, err = c.cfg.Client(snap)
	}
	return snap, err
}

// resume looks up the connections of restored messages in the present settings
// first: one that is gone keeps the queue paused, with the reason.
func (c *Convo) resume(ctx context.Context) (agent.Receipt, error) {
	m := commandMsg{cmd: agent.ResumeQueue{}, resolved: map[string]providers.Snapshot{}}
	for {
		m.reply = make(chan receipt, 1)
		r, err := ask(ctx, c, m, m.reply)
		switch {
		case err != nil:
			return agent.Receipt{}, err
		case r.err != nil:
			return agent.Receipt{}, r.err
		case len(r.need) == 0:
			return r.Receipt, nil
		}
		for _, q := range r.need {
			snap, err := c.resolve(ctx, q.Model)
			if err != nil {
				m.problem, m.reply = err.Error(), make(chan receipt, 1)
				_, _ = ask(ctx, c, m, m.reply)
				return agent.Receipt{}, err
			}
			m.resolved[q.ID] = snap
		}
	}
}

// asker is how the tools of a turn reach the person.
type asker struct {
	c    *Convo
	turn string
}

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
			a.c.post(factMsg{a.turn, agent.Answered{Interaction: in.ID, How: "unavailable"}})
			err = tools.ErrNobody
		}
		return tools.Answer{}, err
	}
	return tools.Answer{Chosen: d.Chosen, Text: d.Text, Skipped: d.Skip}, nil
}
