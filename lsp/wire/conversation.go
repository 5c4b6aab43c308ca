package wire

import "time"

// ConversationParams names a conversation; it is the params of every method
// that needs nothing else.
type ConversationParams struct {
	ConversationID string `json:"conversationId"`
}

// Accepted answers a command that returns nothing of its own. Seq is the last
// event before the command took effect: what it causes comes after.
type Accepted struct {
	Seq uint64 `json:"seq"`
}

// StateGetParams asks for states; without an id for those of all conversations
// that are open on this connection.
type StateGetParams struct {
	ConversationID string `json:"conversationId,omitzero"`
}

// StateGetResult is the answer to [StateGet].
type StateGetResult struct {
	States []State `json:"states"`
}

// CreateParams starts a session. Cwd is an absolute path or a file URI; without
// it the first workspace folder is taken.
type CreateParams struct {
	Cwd string `json:"cwd,omitzero"`
}

// OpenResult is the answer to [ConversationCreate] and [ConversationOpen].
// Subscribe from State.Seq and State.Epoch to miss nothing.
type OpenResult struct {
	ConversationID string `json:"conversationId"`
	State          State  `json:"state"`
}

// SubmitParams sends a message. It is queued while a turn runs.
type SubmitParams struct {
	ConversationID string `json:"conversationId"`
	Text           string `json:"text"`
	Mode           Mode   `json:"mode,omitzero"`  // default: build
	Model          Model  `json:"model,omitzero"` // default: the conversation's, then the workspace's last one
	// ClientRequestID makes a repetition return the first answer.
	ClientRequestID string `json:"clientRequestId,omitzero"`
}

// SubmitResult says that the message is stored. TurnID is the id of the turn
// that it starts, now or later; MessageID in the queue is the same id.
type SubmitResult struct {
	TurnID string `json:"turnId"`
	Seq    uint64 `json:"seq"`
	Queued bool   `json:"queued"`
}

// SubscribeParams asks for the events of a conversation as [EventsNote] and its
// state as [StateNote]. With Epoch the events after SinceSeq come first; without
// it those after the last change of state. A second subscription to a
// conversation replaces the first.
type SubscribeParams struct {
	ConversationID string `json:"conversationId"`
	SinceSeq       uint64 `json:"sinceSeq,omitzero"`
	Epoch          string `json:"epoch,omitzero"`
}

// SubscribeResult answers [ConversationSubscribe]. When SnapshotRequired is set
// nothing was subscribed, because the events asked for are not kept or belong to
// another epoch: fetch the transcript and subscribe from its state. Otherwise
// the events after Seq follow.
type SubscribeResult struct {
	SnapshotRequired bool   `json:"snapshotRequired"`
	Epoch            string `json:"epoch"`
	Seq              uint64 `json:"seq"`
}

// TranscriptParams asks for a page of history: the turns before the turn named
// by Before, or the newest. Limit is 1-200 turns, default 50.
type TranscriptParams struct {
	ConversationID string `json:"conversationId"`
	Before         string `json:"before,omitzero"`
	Limit          int    `json:"limit,omitzero"`
}

// TranscriptResult is a page of history, oldest turn first, and the state of the
// same moment: the events after State.Seq continue the newest page.
type TranscriptResult struct {
	Turns []Turn `json:"turns"`
	More  bool   `json:"more"` // there are turns before the first one here
	State State  `json:"state"`
}

// RenameParams sets the title of a conversation.
type RenameParams struct {
	ConversationID string `json:"conversationId"`
	Title          string `json:"title"`
}

// ResolveParams decides an interaction. Chosen holds indexes of its options,
// from 0. The first decision wins; a later one is refused with alreadyResolved.
type ResolveParams struct {
	ConversationID string `json:"conversationId"`
	InteractionID  string `json:"interactionId"`
	Chosen         []int  `json:"chosen,omitzero"`
	Text           string `json:"text,omitzero"`
	Skip           bool   `json:"skip,omitzero"`
}

// RemoveParams takes a message out of the queue.
type RemoveParams struct {
	ConversationID string `json:"conversationId"`
	MessageID      string `json:"messageId"`
}

// SessionListParams asks for the stored sessions of the workspace at Cwd, by
// default the first workspace folder, or of all workspaces.
type SessionListParams struct {
	Cwd string `json:"cwd,omitzero"`
	All bool   `json:"all,omitzero"`
}

// SessionListResult is the list of sessions, newest first.
type SessionListResult struct {
	Sessions []Session `json:"sessions"`
}

// Session is one line of the list of sessions. ConversationID opens it.
type Session struct {
	ConversationID string    `json:"conversationId"`
	Cwd            string    `json:"cwd"` // absolute path
	Title          string    `json:"title"`
	Created        time.Time `json:"created"`
	Updated        time.Time `json:"updated"`
	Turns          int       `json:"turns"`
	Queued         int       `json:"queued"`
	Open           bool      `json:"open"` // in this process
	// Problem says for a person why it cannot be opened.
	Problem string `json:"problem,omitzero"`
}

// ModelListResult is what can be chosen. Problem says why providers.json could
// not be used; absent when it could.
type ModelListResult struct {
	Models  []ModelInfo `json:"models"`
	Problem string      `json:"problem,omitzero"`
}

// ModelInfo is a model on offer.
type ModelInfo struct {
	Model        Model  `json:"model"`
	ProviderName string `json:"providerName"`
	// ContextTokens is the size of its context; absent when it is not known.
	ContextTokens int `json:"contextTokens,omitzero"`
	// Known: its data comes from a catalogue, not from a bare id.
	Known bool `json:"known"`
}
