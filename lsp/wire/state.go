package wire

import "time"

// Mode is build, plan or research.
type Mode string

// Phase is what a conversation is doing: idle, running, saving or blocked.
type Phase string

// Model names a connection, a model and an effort by their ids.
type Model struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
	Effort   string `json:"effort,omitzero"`
}

// State is a conversation as it was at the event numbered Seq. It is the params
// of [StateNote].
type State struct {
	ConversationID string `json:"conversationId"`
	Seq            uint64 `json:"seq"`
	// Epoch is the life of the numbers: another one, and they start anew.
	Epoch       string       `json:"epoch"`
	Cwd         string       `json:"cwd"` // absolute path of the workspace
	Phase       Phase        `json:"phase"`
	TurnID      string       `json:"turnId,omitzero"` // the running turn
	Queue       []Queued     `json:"queue"`
	QueuePaused bool         `json:"queuePaused"`
	QueueReason string       `json:"queueReason,omitzero"` // why, for a person
	Interaction *Interaction `json:"interaction,omitzero"` // what waits for a person
	// Blocked is why nothing may start, for a person. retrySave tries again.
	Blocked string `json:"blocked,omitzero"`
	Title   string `json:"title"`
	Mode    Mode   `json:"mode"`
	Model   Model  `json:"model,omitzero"`
	Usage   Usage  `json:"usage,omitzero"` // the whole session
	Turns   int    `json:"turns"`
}

// Queued is a message that waits.
type Queued struct {
	MessageID string `json:"messageId"`
	Text      string `json:"text"`
	Mode      Mode   `json:"mode"`
	Model     Model  `json:"model,omitzero"`
}

// Usage counts tokens. An absent Usage means that nothing was reported.
type Usage struct {
	InputTokens     int `json:"inputTokens"`
	CachedTokens    int `json:"cachedTokens,omitzero"` // part of the input
	OutputTokens    int `json:"outputTokens"`
	ReasoningTokens int `json:"reasoningTokens,omitzero"` // part of the output
}

// Interaction is a question or an approval that waits for a person.
type Interaction struct {
	InteractionID string   `json:"interactionId"`
	Kind          string   `json:"kind"`            // question, approval
	CallID        string   `json:"callId,omitzero"` // the call that asks
	Text          string   `json:"text"`
	Context       string   `json:"context,omitzero"`
	Options       []Option `json:"options"`
	FreeText      bool     `json:"freeText,omitzero"`
	Multi         bool     `json:"multi,omitzero"` // several may be chosen
}

// Option is one answer on offer.
type Option struct {
	Label       string `json:"label"`
	Description string `json:"description,omitzero"`
}

// Turn is a message of a person and what was done for it.
type Turn struct {
	TurnID  string    `json:"turnId"`
	Text    string    `json:"text"`
	Mode    Mode      `json:"mode"`
	Model   Model     `json:"model,omitzero"`
	Started time.Time `json:"started"`
	Items   []Item    `json:"items"`
	// How is completed, stopped, failed or crashed; absent while it runs.
	How   string `json:"how,omitzero"`
	Error string `json:"error,omitzero"` // for a person
	Usage Usage  `json:"usage,omitzero"`
}

// Item is one step of a turn. Kind is answer (Text, Reasoning, Interrupted),
// call (CallID, Tool, Title, Args, Outcome, Text, Cut, Changed, TookMs) or note
// (Text).
type Item struct {
	ItemID      string       `json:"itemId"`
	Kind        string       `json:"kind"`
	Text        string       `json:"text,omitzero"`
	Reasoning   string       `json:"reasoning,omitzero"`
	Interrupted bool         `json:"interrupted,omitzero"`
	CallID      string       `json:"callId,omitzero"`
	Tool        string       `json:"tool,omitzero"`
	Title       string       `json:"title,omitzero"`
	Args        string       `json:"args,omitzero"`    // JSON as the model wrote it
	Outcome     string       `json:"outcome,omitzero"` // see [CallEnded]; absent while it runs
	Cut         bool         `json:"cut,omitzero"`
	Changed     []FileChange `json:"changed,omitzero"`
	TookMs      int64        `json:"tookMs,omitzero"` // milliseconds
}

// FileChange is a file that a call wrote.
type FileChange struct {
	Path    string `json:"path"` // relative to the state's cwd
	Kind    string `json:"kind"` // create, update, delete
	Added   int    `json:"added"`
	Removed int    `json:"removed"`       // lines
	Diff    string `json:"diff,omitzero"` // unified, bounded for display
}

// Status is the params of [StatusNote]: how the whole process is. Health is ok,
// warning or error; Message says why when it is not ok.
type Status struct {
	Health              string `json:"health"`
	Message             string `json:"message,omitzero"`
	ActiveTurns         int    `json:"activeTurns"`
	PendingInteractions int    `json:"pendingInteractions"`
}
