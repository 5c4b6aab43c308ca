package agent

import "time"

// Phase is what a conversation is doing.
type Phase string

// The phases. Blocked means that the last save failed: nothing starts until
// RetrySave succeeds.
const (
	Idle    Phase = "idle"
	Running Phase = "running"
	Saving  Phase = "saving"
	Stuck   Phase = "blocked"
)

// State is an immutable picture of a conversation. Do not change its slices.
type State struct {
	Seq         uint64 // last event that it includes
	Epoch       string // changes with each process
	Session     string
	Root        string
	Phase       Phase
	Turn        string // id of the running turn
	Queue       []Queued
	QueuePaused bool
	QueueReason string       // why it is paused, for a person
	Interaction *Interaction // on display; nil: none
	Blocked     string       // why nothing may start; empty: nothing hinders
	Title       string
	Mode        Mode
	Model       Choice
	Usage       Usage // sum of the session in this process and before
	Turns       int
}

// Queued is a message that waits.
type Queued struct {
	ID, Text string
	Mode     Mode
	Model    Choice
}

// Transcript is an immutable page of the history, oldest turn first.
type Transcript struct {
	Turns []TurnView
	// More is set when there are turns before the first one here.
	More bool
}

// TurnView is one turn for display.
type TurnView struct {
	ID      string
	Text    string // the person's message
	Mode    Mode
	Model   Choice
	Started time.Time
	Items   []ItemView
	How     string // completed, stopped, failed, crashed; empty while it runs
	Error   string
	Usage   Usage
}

// ItemView is one step of a turn. Kind says which fields are set: "answer"
// (Text, Reasoning, Interrupted), "call" (Call, Tool, Title, Args, Outcome,
// Text, Changed, Took) or "note" (Text).
type ItemView struct {
	ID, Kind        string
	Text, Reasoning string
	Interrupted     bool
	Call            string
	Tool            string
	Title           string
	Args            string
	Outcome         string // empty while it runs
	Cut             bool
	Changed         []FileChange
	Took            time.Duration
}
