package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
)

// Tier is what a tool may do at worst (spec 00: Tiers).
type Tier uint8

// The tiers, in rising order.
const (
	Read  Tier = iota + 1 // no side effects
	Write                 // changes files
	Exec                  // starts or controls a process
)

// String returns the tier's name in the specification.
func (t Tier) String() string {
	switch t {
	case Read:
		return "read"
	case Write:
		return "write"
	case Exec:
		return "exec"
	}
	return fmt.Sprintf("tier(%d)", uint8(t))
}

// Spec is the part of a tool that the model, a person and the policy see.
type Spec struct {
	Name        string
	Aliases     []string
	Description string // for the model; state limits and what to use instead
	Tier        Tier
	// NeedsDescription refuses a call whose "description" argument is blank
	// before anything else happens (bash and eval, spec 21).
	NeedsDescription bool
	// Exclusive calls never overlap others, although they have no side effects:
	// they wait for something of which there is only one, such as the person.
	Exclusive bool
	// Schema is the JSON Schema of the arguments, derived by New.
	Schema json.RawMessage
}

// Tool is one tool, bound to its resources. Only a Runner can run it.
type Tool struct {
	spec Spec
	args *jsonschema.Resolved
	keys []string // known argument names, in the schema's order
	// policy refuses a call before anybody is asked; nil: none.
	policy func(raw json.RawMessage) *Error
	run    func(ctx context.Context, raw json.RawMessage, io *IO) (Output, error)
}

// Spec returns the tool's description. The value is shared: do not change it.
func (t Tool) Spec() Spec { return t.spec }

// New makes a tool whose argument schema is derived from In, a struct with json
// and jsonschema tags. Unknown arguments are refused. It fails when In has no
// schema, which is a mistake of the program.
//
// run returns an *[Error] to say what happened and what to do next; any other
// error is shown to the model as it is. It must return within 2 s after ctx has
// ended. It may be called concurrently with itself for the Read tier.
func New[In any](spec Spec, run func(ctx context.Context, in In, io *IO) (Output, error)) (Tool, error) {
	s, err := jsonschema.For[In](nil)
	if err != nil {
		return Tool{}, fmt.Errorf("tool %s: argument schema: %w", spec.Name, err)
	}
	plain(s)
	r, err := s.Resolve(nil)
	if err != nil {
		return Tool{}, fmt.Errorf("tool %s: argument schema: %w", spec.Name, err)
	}
	spec.Schema, err = json.Marshal(s)
	if err != nil {
		return Tool{}, fmt.Errorf("tool %s: argument schema: %w", spec.Name, err)
	}
	return Tool{spec: spec, args: r, keys: s.PropertyOrder, run: func(ctx context.Context, raw json.RawMessage, io *IO) (Output, error) {
		var in In
		if err := json.NewDecoder(bytes.NewReader(raw)).Decode(&in); err != nil {
			return Output{}, &Error{Code: BadArguments, Text: err.Error()}
		}
		return run(ctx, in, io)
	}}, nil
}

// WithPolicy returns t with a check of valid arguments that refuses a call
// before the decision, the lane and the record of its start (spec 11: bash).
// It is cheap, has no side effects and is safe for concurrent use. In is the
// type that t was made with.
func WithPolicy[In any](t Tool, check func(in In) *Error) Tool {
	t.policy = func(raw json.RawMessage) *Error {
		var in In
		if err := json.Unmarshal(raw, &in); err != nil {
			return &Error{Code: BadArguments, Text: err.Error()}
		}
		return check(in)
	}
	return t
}

// plain drops the "null" alternative that jsonschema-go gives slices and
// pointers: a model should leave an optional argument out, and several servers
// refuse a list of types.
func plain(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	for _, p := range s.Properties {
		plain(p)
	}
	plain(s.Items)
}

// Origin says who asked for a call.
type Origin uint8

// The origins.
const (
	FromModel Origin = iota + 1
	FromCell         // an eval cell
)

// Call is one request to run a tool. Args is what the caller wrote; it need
// not be valid JSON.
type Call struct {
	ID, Name string
	Args     string
	Origin   Origin
	Parent   string // id of the enclosing eval call; empty for the model's own
}

// Output is what a tool hands back when it worked.
type Output struct {
	Text    string
	Images  []Image
	Changed []Change
	EndTurn bool
}

// Image is an encoded picture for the model.
type Image struct {
	MIME string
	Data []byte
}

// Change is a file that a tool has written. Before is nil for a new file and
// After for a deleted one.
type Change struct {
	Path          string // absolute, real
	Rel           string // relative to the root, with forward slashes
	Before, After []byte
}

// Outcome is how a call ended.
type Outcome string

// The outcomes; the words are stored and sent, so they do not change. Refused
// and NotRun had no effect, Interrupted may have had some.
const (
	OK          Outcome = "ok"
	Failed      Outcome = "failed"
	Refused     Outcome = "refused"
	NotRun      Outcome = "notRun"
	Interrupted Outcome = "interrupted"
)

// Result is what the caller receives. Output is valid when Err is nil.
type Result struct {
	CallID  string
	Outcome Outcome
	Output  Output
	Err     *Error
}

// Text returns what the model reads.
func (r Result) Text() string {
	if r.Err == nil {
		return r.Output.Text
	}
	if r.Err.Next == "" {
		return r.Err.Text
	}
	return r.Err.Text + "\n" + r.Err.Next
}

// Code sorts an Error for programs; the text is for the model.
type Code string

// The codes.
const (
	BadArguments Code = "bad_arguments"
	UnknownTool  Code = "unknown_tool"
	NotAllowed   Code = "not_allowed" // policy or a person said no
	NotFound     Code = "not_found"
	OutsideRoot  Code = "outside_root"
	Stale        Code = "stale"     // the file or buffer is no longer what the call assumed
	TooLarge     Code = "too_large" // a limit or work budget was exceeded
	Cancelled    Code = "cancelled"
	TimedOut     Code = "timed_out"
	Internal     Code = "internal"
	Other        Code = "failed"
)

// Error is written for the model: Text says what happened with the concrete
// value, and that nothing was written where that may be in doubt; Next says
// what to do instead. Neither holds a stack, a secret, or a path outside the
// roots that the model did not name itself.
type Error struct {
	Code Code
	Text string
	Next string
}

// Error returns Text.
func (e *Error) Error() string { return e.Text }

// Errorf makes an Error with a code, the next step and a formatted text.
func Errorf(code Code, next, format string, args ...any) *Error {
	return &Error{Code: code, Next: next, Text: fmt.Sprintf(format, args...)}
}

// IO is what a running tool may reach beyond its own resources.
type IO struct {
	Call Call
	// Progress shows text to the person while the tool runs; it never blocks.
	Progress func(text string)
	// Invoke runs another tool by the very path that ran this one.
	Invoke func(ctx context.Context, c Call) Result
	// Ask puts a question to the person and waits. See Asker.
	Ask Asker
}

// Asker reaches the person. Nil when nobody can answer.
type Asker interface {
	// Ask blocks until the answer, the end of ctx, or at once with ErrNobody
	// when nobody is connected. Waiting is not counted against any time-out.
	Ask(ctx context.Context, q Question) (Answer, error)
}

// Question is what ask_user asks.
type Question struct {
	Call          string // id of the call that asks
	Text, Context string
	Options       []Option
	FreeText      bool
	Multi         bool
}

// Option is one answer on offer.
type Option struct {
	Label       string `json:"label" jsonschema:"short answer text"`
	Description string `json:"description,omitempty" jsonschema:"what choosing it means"`
}

// Answer is what the person decided. A skip has neither choice nor text.
type Answer struct {
	Chosen  []int // indexes into Question.Options
	Text    string
	Skipped bool
}
