package openai

import (
	"strings"

	"github.com/lakecode/lakecode/providers"
)

// maxWarnings bounds what a server that misbehaves at every token leaves behind.
const maxWarnings = 8

// maxAnswer bounds what an answer says, reasoning and arguments included, in
// bytes. No model says as much; a server that has lost its way may.
const maxAnswer = 8 << 20

// answer is what has arrived of one answer.
type answer struct {
	text, reasoning strings.Builder
	field           string // the name under which the reasoning came
	refused         bool
	calls           calls
	size            int // bytes of text, reasoning and arguments
	finish          string
	usage           providers.Usage
	warnings        []string
}

// take adds a chunk and yields what is new in it. It returns false when the
// consumer wants no more, and a failure when the chunk is one.
func (a *answer) take(c *chunk, yield func(providers.Delta) bool) (more bool, failure *wireError) {
	if c.usage.Known {
		a.usage = c.usage // counts are cumulative: the last ones stand
	}
	a.size += len(c.reasoning) + len(c.text) + len(c.refusal)
	for _, d := range c.calls {
		a.size += len(d.args)
	}
	if a.size > maxAnswer {
		return true, &wireError{kind: providers.BrokenStream, message: "the answer is longer than any model's"}
	}
	if c.reasoning != "" {
		a.reasoning.WriteString(c.reasoning)
		if a.field == "" {
			a.field = c.field
		}
		if !yield(providers.ReasoningDelta{Text: c.reasoning}) {
			return false, nil
		}
	}
	if c.refusal != "" {
		a.refused = true
	}
	for _, s := range [...]string{c.text, c.refusal} {
		if s == "" {
			continue
		}
		a.text.WriteString(s)
		if !yield(providers.TextDelta{Text: s}) {
			return false, nil
		}
	}
	for _, d := range c.calls {
		at, warning := a.calls.add(d)
		if at < 0 {
			return true, &wireError{kind: providers.BrokenStream, message: "the answer holds more tool calls than can be meant"}
		}
		a.warn(warning)
		cl := a.calls.list[at]
		if !yield(providers.CallDelta{Index: at, Name: cl.name, Bytes: cl.args.Len()}) {
			return false, nil
		}
	}
	if c.finish != "" {
		a.finish = c.finish
	}
	return true, c.failure
}

func (a *answer) warn(s string) {
	if s == "" || len(a.warnings) >= maxWarnings {
		return
	}
	for _, w := range a.warnings {
		if w == s {
			return
		}
	}
	a.warnings = append(a.warnings, s)
}

func (a *answer) empty() bool {
	return a.text.Len() == 0 && a.reasoning.Len() == 0 && len(a.calls.list) == 0
}

// stop translates a finish reason. The second result is false for one that is an
// error or that nobody knows.
func stop(finish string) (providers.Stop, bool) {
	switch strings.ToLower(finish) {
	case "stop", "end", "eos", "end_turn", "stop_sequence", "complete", "completed":
		return providers.StopEnd, true
	case "tool_calls", "tool_call", "tool_use", "function_call":
		return providers.StopCalls, true
	case "length", "max_tokens", "max_output_tokens", "model_length":
		return providers.StopLength, true
	case "content_filter":
		return providers.StopFilter, true
	case "refusal":
		return providers.StopRefusal, true
	}
	return "", false
}

// done judges an answer whose stream has ended. ended says that the server
// announced the end, by [DONE] or by a whole JSON document.
//
// A call that was cut off by the token limit stays in the parts, so that the
// history shows it; Stop is then StopLength and nobody may run it.
func (a *answer) done(ended bool, req *providers.Request) (providers.Done, *wireError) {
	broken := func(s string) (providers.Done, *wireError) {
		return providers.Done{}, &wireError{kind: providers.BrokenStream, message: s}
	}
	why, known := providers.StopEnd, true
	switch {
	case a.finish != "":
		if why, known = stop(a.finish); !known {
			return providers.Done{}, finishError(a.finish)
		}
	case !ended:
		return broken("the stream broke off in the middle of the answer")
	case a.empty():
		return broken("the server sent an empty answer")
	case !a.calls.sound():
		return broken("the stream broke off inside a tool call")
	default:
		a.warn("the server gave no finish reason")
	}
	if !a.calls.named() {
		return broken("the server sent a tool call without a name")
	}
	parts, warnings := a.parts(req)
	called := len(parts) > 0 && isCall(parts[len(parts)-1])
	switch {
	case why == providers.StopEnd && called:
		why = providers.StopCalls
	case why == providers.StopCalls && !called:
		if a.empty() {
			return broken("the server announced tool calls and sent none")
		}
		a.warn("the server announced tool calls and sent none")
		why = providers.StopEnd
	case why == providers.StopEnd && a.refused:
		why = providers.StopRefusal
	}
	for _, w := range warnings {
		a.warn(w)
	}
	return providers.Done{Stop: why, Usage: a.usage, Parts: parts, Warnings: a.warnings}, nil
}

func isCall(p providers.Part) bool { _, ok := p.(providers.ToolCall); return ok }

func (a *answer) parts(req *providers.Request) (parts []providers.Part, warnings []string) {
	if a.reasoning.Len() > 0 {
		parts = append(parts, providers.Reasoning{Text: a.reasoning.String(), Field: a.field})
	}
	if a.text.Len() > 0 {
		parts = append(parts, providers.Text{Text: a.text.String()})
	}
	if len(a.calls.list) == 0 {
		return parts, nil
	}
	ids := map[string]bool{}
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			if c, ok := p.(providers.ToolCall); ok {
				ids[c.ID] = true
			}
		}
	}
	made, warnings := a.calls.parts(func(id string) bool { return ids[id] }, len(ids))
	return append(parts, made...), warnings
}
