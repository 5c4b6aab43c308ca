package agent

// Command is something a person intends: [Submit], [Stop], [Resolve],
// [ResumeQueue], [DropQueued], [RetrySave] or [Rename].
type Command interface{ command() }

type (
	// Submit sends a message. It is queued while a turn runs.
	Submit struct {
		Text string
		Mode Mode // empty: Build
		// Model chooses the connection and model; without both it is the
		// conversation's, then the only one that providers.json has.
		Model Choice
		// ClientRequestID makes a repeated Submit return the first receipt.
		ClientRequestID string
	}

	// Stop ends the running turn and leaves the queue paused if it holds
	// messages, also while the turn is being saved. Accepted, without effect, when
	// nothing runs.
	Stop struct{}

	// Resolve decides an interaction.
	Resolve struct {
		Interaction string
		Decision    Decision
	}

	// ResumeQueue starts a paused queue.
	ResumeQueue struct{}

	// DropQueued removes a queued message.
	DropQueued struct{ ID string }

	// RetrySave tries the save again that left the conversation blocked.
	RetrySave struct{}

	// Rename sets the title.
	Rename struct{ Title string }
)

func (Submit) command()      {}
func (Stop) command()        {}
func (Resolve) command()     {}
func (ResumeQueue) command() {}
func (DropQueued) command()  {}
func (RetrySave) command()   {}
func (Rename) command()      {}

// Mode decides tools, prompt and policies of a turn (spec 21).
type Mode string

// The modes.
const (
	Build    Mode = "build"
	Plan     Mode = "plan"
	Research Mode = "research"
)

// Choice names a connection and a model by id. Effort may be empty.
type Choice struct{ Provider, Model, Effort string }

// Decision is a person's answer to an interaction.
type Decision struct {
	Chosen []int  // indexes of options
	Text   string // free text
	Skip   bool
}

// Receipt says that a command was accepted.
type Receipt struct {
	RequestID string // id of the message for Submit, else empty
	Seq       uint64 // last event published before the command took effect
	// Queued is set for a Submit that waits behind other work.
	Queued bool
}
