package agent

import "time"

// Event is something that happened in one conversation. Seq grows by one from
// event to event and belongs to the conversation's Epoch.
type Event struct {
	Seq     uint64
	Request string // the turn it belongs to; may be empty
	Time    time.Time
	Fact    Fact
}

// Fact is the content of an Event.
type Fact interface{ fact() }

type (
	// TurnStarted: a message left the queue and work on it began.
	TurnStarted struct {
		Text  string
		Mode  Mode
		Model Choice
	}

	// TextAdded continues the text of an answer. Item is the answer's id.
	TextAdded struct{ Item, Text string }

	// ReasoningAdded continues the reasoning of an answer.
	ReasoningAdded struct{ Item, Text string }

	// AnswerEnded closes an answer; Text is the whole of it.
	AnswerEnded struct {
		Item, Text  string
		Interrupted bool
	}

	// CallWriting: the model is writing a call that is not complete yet.
	CallWriting struct {
		Item  string
		Index int
		Tool  string
		Bytes int
	}

	// CallProposed: a complete call is about to be decided and run.
	CallProposed struct {
		Call   string
		Tool   string
		Title  string // one line for a person, such as the path or the command
		Args   string // the model's own text
		Parent string // enclosing eval call
	}

	// CallStarted: it passed all checks and runs.
	CallStarted struct{ Call string }

	// CallProgress is output while it runs, not part of the result.
	CallProgress struct{ Call, Text string }

	// CallEnded: exactly one for each CallProposed.
	CallEnded struct {
		Call    string
		Outcome string // ok, failed, refused, notRun, interrupted
		Text    string // what the model reads, bounded for display
		Cut     bool   // Text is shorter than what the model reads
		Changed []FileChange
		Took    time.Duration
	}

	// Retrying: a model request failed before its first token and is repeated.
	Retrying struct {
		Attempt int
		Wait    time.Duration
		Reason  string
	}

	// UsageReported follows each model request that reported its usage.
	UsageReported struct{ Usage Usage }

	// Asked: an interaction is on display.
	Asked struct{ Interaction Interaction }

	// Answered: an interaction ended; How is answered, skipped, withdrawn, or
	// unavailable when nobody could be asked (there was no Asked then).
	Answered struct{ Interaction, How string }

	// TurnFinished closes a turn, before its final save.
	TurnFinished struct {
		How   string // completed, stopped, failed
		Error *Failure
		Usage Usage
	}

	// Notice is a sentence that a person should read.
	Notice struct{ Level, Text string } // level: info, warning, error

	// StateChanged carries the new state. Its Seq is that of this event.
	StateChanged struct{ State State }
)

func (TurnStarted) fact()    {}
func (TextAdded) fact()      {}
func (ReasoningAdded) fact() {}
func (AnswerEnded) fact()    {}
func (CallWriting) fact()    {}
func (CallProposed) fact()   {}
func (CallStarted) fact()    {}
func (CallProgress) fact()   {}
func (CallEnded) fact()      {}
func (Retrying) fact()       {}
func (UsageReported) fact()  {}
func (Asked) fact()          {}
func (Answered) fact()       {}
func (TurnFinished) fact()   {}
func (Notice) fact()         {}
func (StateChanged) fact()   {}

// FileChange is a file that a call wrote. Path is relative to the root.
type FileChange struct {
	Path           string
	Kind           string // create, update, delete
	Added, Removed int    // lines
	Diff           string // unified, bounded for display
}

// Failure is why a turn failed, for a person.
type Failure struct {
	Kind    string // see providers.Kind; "internal" for our own
	Message string
	Next    string
}

// Usage is in tokens; Known is false when nothing was reported.
type Usage struct {
	Known                            bool
	Input, Cached, Output, Reasoning int
}

// Interaction is something the agent waits on a person for.
type Interaction struct {
	ID       string
	Kind     string // question, approval
	Call     string // the call that asks
	Text     string
	Context  string
	Options  []Option
	FreeText bool
	Multi    bool
}

// Option is one answer on offer.
type Option struct{ Label, Description string }
