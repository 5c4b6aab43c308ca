package providers

import (
	"context"
	"encoding/json"
	"iter"
	"sync/atomic"
	"time"
)

// Client speaks one wire protocol. Implementations are safe for concurrent use
// and keep no state of a conversation.
type Client interface {
	// Stream sends req and yields what the model says, in order. The sequence
	// ends after the first error, which is always an *[Error], or after [Done].
	// Breaking off the loop, or the end of ctx, closes the connection before
	// Stream's iterator returns. Retries happen inside, before the first delta
	// only, and are announced by [Retrying].
	Stream(ctx context.Context, snap Snapshot, req Request) iter.Seq2[Delta, error]
}

// Protocol names a wire protocol as providers.json spells it (spec 30).
type Protocol string

// The protocols of spec 30.
const (
	ChatCompletions   Protocol = "ChatCompletions"
	Responses         Protocol = "Responses"
	AnthropicMessages Protocol = "AnthropicMessages"
)

// Snapshot is one connection and one model as they were when a message was
// accepted. It is a value: later changes of settings cannot reach it.
type Snapshot struct {
	Provider string // connection id in providers.json
	Name     string // what a person calls the connection
	Revision int    // of the connection
	Protocol Protocol
	BaseURL  string // without a trailing slash
	Model    string // api id
	Effort   string // reasoning effort; "" and "none" send no field
	Key      Secret // zero: no Authorization header
	Limits   Limits
}

// Limits are what is known about a model. Zero means not known, never "none".
type Limits struct {
	Context, Input, Output int // tokens
	Images                 bool
	Efforts                []string
}

// Request is what is sent for one model call. The messages are shared between
// the requests of a conversation and never change once they are in one.
type Request struct {
	System   string
	Messages []*Message
	Tools    []ToolSpec // in the order sent; must not change between the calls of a turn
	CacheKey string     // stable for a session
}

// ToolSpec is a tool as the model sees it. Schema is a JSON Schema object.
type ToolSpec struct {
	Name, Description string
	Schema            json.RawMessage
}

// Role says who speaks in a [Message].
type Role uint8

// The roles. A Tool message holds [ToolResult] parts only.
const (
	User Role = iota + 1
	Assistant
	Tool
)

// Message is one immutable message of a request. Use it by pointer.
type Message struct {
	Role  Role
	Parts []Part

	wire atomic.Pointer[encoded]
}

type encoded struct {
	key  string
	data []byte
}

// Encoded returns the message in the wire form that key names, calling encode
// the first time. A long history is then encoded once, not once per request.
// The result must not be changed. Safe for concurrent use.
func (m *Message) Encoded(key string, encode func(*Message) ([]byte, error)) ([]byte, error) {
	if e := m.wire.Load(); e != nil && e.key == key {
		return e.data, nil
	}
	data, err := encode(m)
	if err != nil {
		return nil, err
	}
	m.wire.Store(&encoded{key, data})
	return data, nil
}

// Part is one piece of a message: [Text], [Reasoning], [Image], [ToolCall] or
// [ToolResult].
type Part interface{ part() }

type (
	// Text is plain text for or from the model.
	Text struct{ Text string }

	// Reasoning is what the model showed of its thinking.
	Reasoning struct {
		Text string
		// Field is the wire field that it came under, "" when not known. Some
		// servers want it back under that name while calls are answered; a
		// client sends nothing back when it does not know.
		Field string
	}

	// Image is an encoded picture.
	Image struct {
		MIME string // image/png or image/jpeg
		Data []byte
	}

	// ToolCall is a call that the model wrote completely. Args is what it
	// wrote, {} when it wrote nothing; it need not be valid JSON.
	ToolCall struct {
		ID, Name string
		Args     string
	}

	// ToolResult answers the ToolCall with the same ID.
	ToolResult struct {
		ID      string
		Text    string
		Images  []Image
		IsError bool
	}
)

func (Text) part()       {}
func (Reasoning) part()  {}
func (Image) part()      {}
func (ToolCall) part()   {}
func (ToolResult) part() {}

// Delta is one step of a streamed answer: [TextDelta], [ReasoningDelta],
// [CallDelta], [Retrying] or [Done].
type Delta interface{ delta() }

type (
	// TextDelta continues the answer's text. Never empty.
	TextDelta struct{ Text string }

	// ReasoningDelta continues the reasoning. Never empty.
	ReasoningDelta struct{ Text string }

	// CallDelta says that the model is writing a call. Name is set once it is
	// known; Bytes is how much of the arguments has arrived. It is for display:
	// only the calls in Done may be run.
	CallDelta struct {
		Index int
		Name  string
		Bytes int
	}

	// Retrying says that an attempt failed before anything was shown and that
	// the next one starts after Wait.
	Retrying struct {
		Attempt int // the one that comes, from 2
		Wait    time.Duration
		Err     *Error
	}

	// Done ends a complete answer.
	Done struct {
		Stop  Stop
		Usage Usage
		// Parts is the whole answer in order: Reasoning, Text, ToolCall.
		Parts []Part
		// Warnings names deviations of the server that were tolerated.
		Warnings []string
	}
)

func (TextDelta) delta()      {}
func (ReasoningDelta) delta() {}
func (CallDelta) delta()      {}
func (Retrying) delta()       {}
func (Done) delta()           {}

// Stop is why the model ended its answer.
type Stop string

// The reasons. Length means that the answer was cut: its calls must not run.
const (
	StopEnd     Stop = "end"
	StopCalls   Stop = "calls"
	StopLength  Stop = "length"
	StopFilter  Stop = "filter"
	StopRefusal Stop = "refusal"
)

// Usage is in tokens. Known is false when the server reported none; the
// numbers are then zero and mean nothing.
type Usage struct {
	Known     bool
	Input     int // the whole prompt, cached part included
	Cached    int
	Output    int // reasoning included
	Reasoning int
}

// Add returns the sum; it is known when either is.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		Known: u.Known || v.Known, Input: u.Input + v.Input, Cached: u.Cached + v.Cached,
		Output: u.Output + v.Output, Reasoning: u.Reasoning + v.Reasoning,
	}
}
