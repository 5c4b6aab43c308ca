package wire

import (
	"encoding/json"
	"fmt"
	"time"
)

// Kind names an event.
type Kind string

// The kinds of events, one struct each.
const (
	KindTurnStarted          Kind = "turnStarted"
	KindMessageDelta         Kind = "messageDelta"
	KindReasoningDelta       Kind = "reasoningDelta"
	KindMessageEnded         Kind = "messageEnded"
	KindCallWriting          Kind = "callWriting"
	KindCallProposed         Kind = "callProposed"
	KindCallStarted          Kind = "callStarted"
	KindCallProgress         Kind = "callProgress"
	KindCallEnded            Kind = "callEnded"
	KindRetrying             Kind = "retrying"
	KindUsage                Kind = "usage"
	KindInteractionRequested Kind = "interactionRequested"
	KindInteractionResolved  Kind = "interactionResolved"
	KindTurnFinished         Kind = "turnFinished"
	KindNotice               Kind = "notice"
	KindStateChanged         Kind = "stateChanged"
	KindLagged               Kind = "lagged"
)

// Events is the params of [EventsNote]: events of one conversation in order,
// gathered for at most 16 ms or 64 KiB.
type Events struct {
	ConversationID string  `json:"conversationId"`
	Epoch          string  `json:"epoch"`
	Events         []Event `json:"events"`
}

// Event is one of the structs below, as a pointer. Its JSON is flat: the fields
// of [Head] beside its own.
type Event interface{ Header() *Head }

// Head is common to all events. Seq grows from event to event, with gaps: an
// event that stands for several merged fragments bears the number of the last,
// and changes of state travel as [StateNote].
type Head struct {
	Kind   Kind      `json:"kind"`
	Seq    uint64    `json:"seq"`
	TurnID string    `json:"turnId,omitzero"`
	Time   time.Time `json:"time"`
}

// Header returns h; it makes every struct that embeds a Head an [Event].
func (h *Head) Header() *Head { return h }

type (
	// TurnStarted: a message left the queue and work on it began.
	TurnStarted struct {
		Head
		Text  string `json:"text"`
		Mode  Mode   `json:"mode"`
		Model Model  `json:"model,omitzero"`
	}

	// MessageDelta continues the text of an answer.
	MessageDelta struct {
		Head
		ItemID string `json:"itemId"`
		Text   string `json:"text"`
	}

	// ReasoningDelta continues the reasoning of an answer.
	ReasoningDelta struct {
		Head
		ItemID string `json:"itemId"`
		Text   string `json:"text"`
	}

	// MessageEnded closes an answer; Text is the whole of it.
	MessageEnded struct {
		Head
		ItemID      string `json:"itemId"`
		Text        string `json:"text"`
		Interrupted bool   `json:"interrupted,omitzero"` // the stream broke off
	}

	// CallWriting: the model is writing a call that is not complete yet.
	CallWriting struct {
		Head
		ItemID string `json:"itemId"`
		Index  int    `json:"index"` // which call of the answer, from 0
		Tool   string `json:"tool,omitzero"`
		Bytes  int    `json:"bytes"` // of its arguments so far
	}

	// CallProposed: a complete call is about to be decided and run.
	CallProposed struct {
		Head
		CallID string `json:"callId"`
		Tool   string `json:"tool"`
		Title  string `json:"title"`             // one line for a person
		Args   string `json:"args"`              // JSON as the model wrote it
		Parent string `json:"parentId,omitzero"` // the call that encloses it
	}

	// CallStarted: the call passed all checks and runs.
	CallStarted struct {
		Head
		CallID string `json:"callId"`
	}

	// CallProgress is output of a running call, in addition to what was there.
	CallProgress struct {
		Head
		CallID string `json:"callId"`
		Text   string `json:"text"`
	}

	// CallEnded: exactly one for each CallProposed. Outcome is ok, failed,
	// refused, notRun or interrupted.
	CallEnded struct {
		Head
		CallID  string       `json:"callId"`
		Outcome string       `json:"outcome"`
		Text    string       `json:"text"`         // what the model reads, bounded
		Cut     bool         `json:"cut,omitzero"` // Text is shorter than that
		Changed []FileChange `json:"changed,omitzero"`
		TookMs  int64        `json:"tookMs"` // milliseconds
	}

	// Retrying: a model request failed before its first token and is repeated.
	Retrying struct {
		Head
		Attempt int    `json:"attempt"`
		WaitMs  int64  `json:"waitMs"` // milliseconds until then
		Reason  string `json:"reason"`
	}

	// UsageReported follows each model request that reported its usage.
	UsageReported struct {
		Head
		Usage Usage `json:"usage"`
	}

	// InteractionRequested: a card for a person is on display.
	InteractionRequested struct {
		Head
		Interaction Interaction `json:"interaction"`
	}

	// InteractionResolved: it ended. How is answered, skipped or withdrawn.
	InteractionResolved struct {
		Head
		InteractionID string `json:"interactionId"`
		How           string `json:"how"`
	}

	// TurnFinished closes a turn, before its final save. How is completed,
	// stopped or failed.
	TurnFinished struct {
		Head
		How   string   `json:"how"`
		Error *Failure `json:"error,omitzero"` // set when it failed
		Usage Usage    `json:"usage,omitzero"`
	}

	// NoticeShown is a sentence that a person should read. Level is info,
	// warning or error.
	NoticeShown struct {
		Head
		Level string `json:"level"`
		Text  string `json:"text"`
	}

	// StateChanged carries the new state. Only a stream without [StateNote], such
	// as the lines of `lakecode run --json`, holds it.
	StateChanged struct {
		Head
		State State `json:"state"`
	}

	// Lagged is the last event of a subscription whose reader fell so far behind
	// that events were dropped: fetch the transcript and subscribe from its state.
	Lagged struct{ Head }
)

// Failure is why a turn failed. Message and Next are for a person.
type Failure struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Next    string `json:"next,omitzero"`
}

// NewEvent returns an empty event of a kind, and nil for a kind that this
// version does not know. It does not set the Head.
func NewEvent(k Kind) Event {
	switch k {
	case KindTurnStarted:
		return &TurnStarted{}
	case KindMessageDelta:
		return &MessageDelta{}
	case KindReasoningDelta:
		return &ReasoningDelta{}
	case KindMessageEnded:
		return &MessageEnded{}
	case KindCallWriting:
		return &CallWriting{}
	case KindCallProposed:
		return &CallProposed{}
	case KindCallStarted:
		return &CallStarted{}
	case KindCallProgress:
		return &CallProgress{}
	case KindCallEnded:
		return &CallEnded{}
	case KindRetrying:
		return &Retrying{}
	case KindUsage:
		return &UsageReported{}
	case KindInteractionRequested:
		return &InteractionRequested{}
	case KindInteractionResolved:
		return &InteractionResolved{}
	case KindTurnFinished:
		return &TurnFinished{}
	case KindNotice:
		return &NoticeShown{}
	case KindStateChanged:
		return &StateChanged{}
	case KindLagged:
		return &Lagged{}
	}
	return nil
}

// Kinds lists the kinds of events in the order of docs/protocol.md. The caller
// owns the slice.
func Kinds() []Kind {
	return []Kind{
		KindTurnStarted, KindMessageDelta, KindReasoningDelta, KindMessageEnded,
		KindCallWriting, KindCallProposed, KindCallStarted, KindCallProgress, KindCallEnded,
		KindRetrying, KindUsage, KindInteractionRequested, KindInteractionResolved,
		KindTurnFinished, KindNotice, KindStateChanged, KindLagged,
	}
}

// UnmarshalJSON decodes each event by its kind. Events of unknown kinds are
// left out, as a reader of a newer server's stream must do.
func (e *Events) UnmarshalJSON(data []byte) error {
	var raw struct {
		ConversationID string            `json:"conversationId"`
		Epoch          string            `json:"epoch"`
		Events         []json.RawMessage `json:"events"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	*e = Events{ConversationID: raw.ConversationID, Epoch: raw.Epoch, Events: make([]Event, 0, len(raw.Events))}
	for _, r := range raw.Events {
		ev, err := DecodeEvent(r)
		if err != nil {
			return err
		}
		if ev != nil {
			e.Events = append(e.Events, ev)
		}
	}
	return nil
}

// DecodeEvent decodes one event; it returns nil without an error for an unknown
// kind.
func DecodeEvent(data []byte) (Event, error) {
	var head struct {
		Kind Kind `json:"kind"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("event without a kind: %w", err)
	}
	ev := NewEvent(head.Kind)
	if ev == nil {
		return nil, nil
	}
	if err := json.Unmarshal(data, ev); err != nil {
		return nil, fmt.Errorf("event %s: %w", head.Kind, err)
	}
	return ev, nil
}
