package session

import (
	"strings"
	"time"
)

// Version is the schema version this program writes. A log of a newer one is
// refused; older ones are migrated while reading.
const Version = 1

// ID names a session. It is a UUIDv7, so ids sort by time of creation.
type ID string

// Record is one entry of a session's log: [Created], [Accepted], [Dropped],
// [TurnStarted], [ItemAdded], [CallStarted], [TurnEnded] or [Titled].
type Record interface{ kind() string }

type (
	// Created is the first record of a log.
	Created struct {
		ID           ID            `json:"id"`
		Root         string        `json:"root"` // real path of the workspace
		Time         time.Time     `json:"time"`
		Instructions []Instruction `json:"instructions,omitzero"`
	}

	// Accepted puts a message at the end of the queue.
	Accepted struct {
		Message Message `json:"message"`
	}

	// Dropped takes a queued message away without running it.
	Dropped struct {
		ID string `json:"id"`
	}

	// TurnStarted moves a message from the queue into the history. One record,
	// so that a crash leaves it in exactly one of the two.
	TurnStarted struct {
		ID   string    `json:"id"`
		Time time.Time `json:"time"`
	}

	// ItemAdded appends an item to the turn that is running.
	ItemAdded struct {
		Turn string `json:"turn"`
		Item Item   `json:"item"`
	}

	// CallStarted says that a call with effects is about to run. A call that has
	// this record and no result was interrupted; one without never ran.
	CallStarted struct {
		Turn string `json:"turn"`
		Call string `json:"call"`
	}

	// TurnEnded closes the turn.
	TurnEnded struct {
		Turn string `json:"turn"`
		End  End    `json:"end"`
	}

	// Titled names the session.
	Titled struct {
		Title string `json:"title"`
	}
)

func (Created) kind() string     { return "created" }
func (Accepted) kind() string    { return "accepted" }
func (Dropped) kind() string     { return "dropped" }
func (TurnStarted) kind() string { return "turnStarted" }
func (ItemAdded) kind() string   { return "itemAdded" }
func (CallStarted) kind() string { return "callStarted" }
func (TurnEnded) kind() string   { return "turnEnded" }
func (Titled) kind() string      { return "titled" }

// Archive is everything a log says: the whole history and the queue.
type Archive struct {
	ID           ID
	Root         string
	Created      time.Time
	Title        string
	Instructions []Instruction
	Turns        []Turn
	Queue        []Message
	// Repairs are sentences for a person about what opening had to mend, such
	// as a torn last record. Empty for a sound log.
	Repairs []string
}

// Instruction is a snapshot of an AGENTS.md, taken when the session was made.
type Instruction struct {
	Path string `json:"path"`
	Text string `json:"text"`
}

// Assignment is a choice of model by ids; it never holds a key.
type Assignment struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
	Effort   string `json:"effort,omitzero"`
}

// Message is a person's message as it was accepted.
type Message struct {
	ID              string     `json:"id"`
	ClientRequestID string     `json:"clientRequestId,omitzero"`
	Text            string     `json:"text"`
	Mode            string     `json:"mode"`
	Main            Assignment `json:"main"`
	Accepted        time.Time  `json:"accepted"`
}

// Turn is a message and all that was done for it.
type Turn struct {
	Message Message
	Started time.Time
	Items   []Item
	// CallsStarted holds the ids of calls with effects that began.
	CallsStarted []string
	End          *End // nil: running, or cut off by a crash
}

// Item is one step of a turn. Exactly one of the pointers is set.
type Item struct {
	ID     string  `json:"id"`
	Answer *Answer `json:"answer,omitzero"`
	Result *Result `json:"result,omitzero"`
	Note   *Note   `json:"note,omitzero"`
}

// Answer is one answer of the model, complete or cut short.
type Answer struct {
	Reasoning string `json:"reasoning,omitzero"`
	// ReasoningField is the wire field that the reasoning came under; some
	// servers want it back there in the turn's next request.
	ReasoningField string `json:"reasoningField,omitzero"`
	Text           string `json:"text,omitzero"`
	Calls          []Call `json:"calls,omitzero"`
	Interrupted    bool   `json:"interrupted,omitzero"` // the stream did not end by itself
	Usage          *Usage `json:"usage,omitzero"`       // nil: not reported
}

// Call is a call of an answer. Args is the model's own text.
type Call struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Args string `json:"args"`
}

// Outcome is how a call ended.
type Outcome string

// The outcomes. NotRun and Refused had no effect; Interrupted may have had some.
const (
	OK          Outcome = "ok"
	Failed      Outcome = "failed"
	Refused     Outcome = "refused"
	NotRun      Outcome = "notRun"
	Interrupted Outcome = "interrupted"
)

// Result answers the call with the same id; Text is what the model was told.
type Result struct {
	Call    string   `json:"call"`
	Outcome Outcome  `json:"outcome"`
	Text    string   `json:"text"`
	Changed []Change `json:"changed,omitzero"`
	Millis  int64    `json:"millis,omitzero"` // duration in milliseconds
}

// Change is a file that a call wrote, relative to the root, with the size of
// the change in lines and a unified diff bounded for display.
type Change struct {
	Path    string `json:"path"`
	Kind    string `json:"kind"` // create, update, delete
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	Diff    string `json:"diff,omitzero"`
}

// Note is a fact for the model that is neither answer nor result, such as that
// the person stopped the turn.
type Note struct {
	Kind string `json:"kind"` // stopped, error, crashed
	Text string `json:"text"`
}

// Usage is in tokens, as the provider reported it.
type Usage struct {
	Input     int `json:"input"`
	Cached    int `json:"cached,omitzero"`
	Output    int `json:"output"`
	Reasoning int `json:"reasoning,omitzero"`
}

// How a turn ended.
type How string

// The ends of a turn. Crashed is written by the repair on opening.
const (
	Completed How = "completed"
	Stopped   How = "stopped"
	Errored   How = "failed"
	Crashed   How = "crashed"
)

// End closes a turn.
type End struct {
	How     How       `json:"how"`
	Error   string    `json:"error,omitzero"` // for a person; set when failed
	Kind    string    `json:"kind,omitzero"`  // class of the error, see providers.Kind
	Time    time.Time `json:"time"`
	Calls   int       `json:"calls,omitzero"`   // model calls made
	Usage   *Usage    `json:"usage,omitzero"`   // sum over the turn; nil: nothing reported
	FirstMs int64     `json:"firstMs,omitzero"` // milliseconds to the first token of the turn
}

// Summary is one line of a list of sessions.
type Summary struct {
	ID      ID        `json:"id"`
	Root    string    `json:"root"`
	Title   string    `json:"title"`
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
	Turns   int       `json:"turns"`
	Queued  int       `json:"queued"`
	// Problem says for a person why the session cannot be opened; empty: nothing
	// is known. Then the other fields hold what is known, which may be only the
	// ID.
	Problem string `json:"problem,omitzero"`
}

// titleRunes bounds a heading that is taken from a message.
const titleRunes = 60

// Heading is the title, else the beginning of the first message; empty for a
// session without either.
func (a *Archive) Heading() string {
	switch {
	case a.Title != "":
		return a.Title
	case len(a.Turns) > 0:
		return heading(a.Turns[0].Message.Text)
	case len(a.Queue) > 0:
		return heading(a.Queue[0].Text)
	}
	return ""
}

func heading(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	line = strings.Join(strings.Fields(line), " ")
	if r := []rune(line); len(r) > titleRunes {
		return string(r[:titleRunes-1]) + "…"
	}
	return line
}
