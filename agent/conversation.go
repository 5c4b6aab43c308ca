package agent

import (
	"context"
	"errors"
	"time"
)

// Conversation is the single coordinator of one session. Safe for concurrent
// use.
type Conversation interface {
	// Do accepts or refuses a command, with an *[Error]. It returns once the
	// command is durable where that is promised (Submit), and never waits for
	// the work.
	Do(ctx context.Context, c Command) (Receipt, error)

	// State returns the present state at once.
	State() State

	// Snapshot returns a page of the history and the state, both as of the same
	// moment: the events after State.Seq continue them. Before is the id of the
	// turn that the page ends in front of, empty for the newest; limit is at
	// most 200 turns, 0 means 50.
	Snapshot(ctx context.Context, before string, limit int) (Transcript, State, error)

	// Subscribe delivers the events after the given number, the oldest first.
	// ErrLagged when they are not kept any more: take a Snapshot and subscribe
	// from its State.Seq.
	Subscribe(after uint64) (Subscription, error)

	// Attach says that a person can answer interactions as long as release has
	// not been called.
	Attach() (release func())

	// Close ends the work, waits for it and for the final save, and unlocks the
	// session. When ctx ends first, it returns its error and goes on in the
	// background.
	Close(ctx context.Context) error
}

// Subscription is a queue of events for one reader.
type Subscription interface {
	// Next waits for an event. ErrLagged, once, when the reader fell so far
	// behind that events were dropped; ErrClosed after the last event of a
	// closed conversation, and after Close.
	Next(ctx context.Context) (Event, error)
	Close()
}

// Errors of subscriptions.
var (
	ErrLagged = errors.New("the subscriber fell behind: take a snapshot")
	ErrClosed = errors.New("the conversation is closed")
)

// Host is the process: it creates and opens conversations and answers what does
// not belong to one. Safe for concurrent use.
type Host interface {
	// Create starts a new session for the workspace at root, a folder.
	Create(ctx context.Context, root string) (Conversation, error)

	// Open returns the conversation of a stored session, the same one while it
	// is open. Errors: NotFound, Locked, Damaged.
	Open(ctx context.Context, session string) (Conversation, error)

	// Sessions lists the sessions of a workspace, newest first; an empty root
	// lists all. A session in which nothing was ever said is left out.
	Sessions(ctx context.Context, root string) ([]SessionInfo, error)

	// Models lists what can be chosen, and problems with providers.json.
	Models(ctx context.Context) (Catalog, error)

	// Close closes every conversation and ends every child process.
	Close(ctx context.Context) error
}

// SessionInfo is one line of the list of sessions.
type SessionInfo struct {
	ID, Root, Title  string
	Created, Updated time.Time
	Turns, Queued    int
	Open             bool // in this process
	// Problem says why the session cannot be opened; empty: nothing is known.
	Problem string
}

// Catalog is the list of models.
type Catalog struct {
	Models  []ModelInfo
	Problem string // why providers.json could not be used; empty: it could
}

// ModelInfo is a model that may be chosen.
type ModelInfo struct {
	Choice
	ProviderName string
	Context      int // tokens; 0: unknown
	Known        bool
}
