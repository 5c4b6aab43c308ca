package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/lakecode/lakecode/providers"
)

var errNotJSON = errors.New("an event of the stream is not JSON")

// chunk is what one event says, after the deviations of servers are evened out.
type chunk struct {
	text, refusal string
	reasoning     string
	field         string // the name that reasoning came under
	calls         []callDelta
	finish        string
	usage         providers.Usage
	failure       *wireError
	choice        bool // there was a choice at all
}

// callDelta is a piece of a tool call.
type callDelta struct {
	index    int // as the server gave it; -1 when it gave none that is usable
	pos, of  int // its place among the pieces in the same chunk
	id, name string
	args     string
}

// decode reads the data of one event. named says that the event was called
// "error", in its event line or by a field of that name.
func decode(data []byte, named bool) (chunk, error) {
	var c chunk
	data = bytes.TrimSpace(data)
	if !json.Valid(data) {
		if named {
			c.failure = &wireError{message: string(data)}
			return c, nil
		}
		return c, errNotJSON
	}
	if data[0] == '[' {
		// Some gateways wrap their errors into a list.
		e := array(data)
		if first, ok := e.next(); ok {
			data = first
		}
	}
	if data[0] != '{' && !named {
		return c, errNotJSON
	}
	var choices []byte
	m := object(data)
	for {
		key, val, ok := m.next()
		if !ok {
			break
		}
		switch string(key) {
		case "choices":
			choices = val
		case "usage":
			c.usage = usage(val)
		case "error":
			if !null(val) {
				c.failure = parseError(data)
			}
		case "object":
			if string(val) == `"error"` {
				c.failure = parseError(data)
			}
		}
	}
	if named || c.failure != nil {
		c.failure = parseError(data)
		return c, nil
	}
	c.choices(choices)
	if !c.choice && choices == nil && !c.usage.Known {
		// Neither answer nor usage: an error in a shape without the word, or an
		// event that this protocol does not know.
		if e := parseError(data); e.message != "" && (get(data, "detail") != nil || get(data, "message") != nil) {
			c.failure = e
		}
	}
	return c, nil
}

// choices reads the first choice; we never ask for more than one.
func (c *chunk) choices(raw []byte) {
	for e := array(raw); ; {
		choice, ok := e.next()
		if !ok {
			return
		}
		if i, ok := number(get(choice, "index")); ok && i != 0 {
			continue
		}
		c.choice = true
		m := object(choice)
		for {
			key, val, ok := m.next()
			if !ok {
				break
			}
			switch string(key) {
			case "delta", "message":
				c.delta(val)
			case "finish_reason":
				c.finish = str(val)
			case "usage":
				if u := usage(val); u.Known {
					c.usage = u
				}
			case "error":
				if !null(val) {
					c.failure = parseError(choice)
				}
			}
		}
	}
}

func (c *chunk) delta(raw []byte) {
	var reasoning [3]string
	var details []byte
	m := object(raw)
	for {
		key, val, ok := m.next()
		if !ok {
			break
		}
		switch string(key) {
		case "content":
			c.text = content(val)
		case "refusal":
			c.refusal = str(val)
		case fields[0]:
			reasoning[0] = str(val)
		case fields[1]:
			reasoning[1] = str(val)
		case fields[2]:
			reasoning[2] = str(val)
		case "reasoning_details":
			details = val
		case "tool_calls":
			c.toolCalls(val)
		case "function_call":
			if !null(val) {
				c.calls = append(c.calls, callDelta{index: 0, of: 1, name: str(get(val, "name")), args: arguments(get(val, "arguments"))})
			}
		}
	}
	// Some servers send the same text under two names.
	for i, s := range reasoning {
		if s != "" {
			c.reasoning, c.field = s, fields[i]
			return
		}
	}
	if details != nil {
		c.reasoning, c.field = reasoningDetails(details), "reasoning_details"
	}
}

// fields are the names under which servers stream reasoning, in the order in
// which they are believed.
var fields = [...]string{"reasoning_content", "reasoning", "reasoning_text"}

func reasoningDetails(raw []byte) string {
	var b strings.Builder
	for e := array(raw); ; {
		d, ok := e.next()
		if !ok {
			return b.String()
		}
		switch str(get(d, "type")) {
		case "reasoning.text":
			b.WriteString(str(get(d, "text")))
		case "reasoning.summary":
			b.WriteString(str(get(d, "summary")))
		}
	}
}

// content returns text that is a string or a list of parts.
func content(raw []byte) string {
	if len(raw) == 0 || raw[0] != '[' {
		return str(raw)
	}
	var b strings.Builder
	for e := array(raw); ; {
		part, ok := e.next()
		if !ok {
			return b.String()
		}
		b.WriteString(str(part))
		b.WriteString(str(get(part, "text")))
	}
}

func (c *chunk) toolCalls(raw []byte) {
	from := len(c.calls)
	for e := array(raw); ; {
		val, ok := e.next()
		if !ok {
			break
		}
		d := callDelta{index: -1, pos: len(c.calls) - from}
		m := object(val)
		for {
			key, val, ok := m.next()
			if !ok {
				break
			}
			switch string(key) {
			case "index":
				if i, ok := number(val); ok && i >= 0 {
					d.index = i
				}
			case "id":
				d.id = str(val)
			case "function":
				d.name = str(get(val, "name"))
				d.args = arguments(get(val, "arguments"))
			}
		}
		c.calls = append(c.calls, d)
	}
	for i := range c.calls[from:] {
		c.calls[from+i].of = len(c.calls) - from
	}
}

// arguments returns the text of the arguments, which some servers send as the
// object itself instead of its text.
func arguments(raw []byte) string {
	if len(raw) > 0 && raw[0] == '{' {
		return string(raw)
	}
	return str(raw)
}

// usage is known when any number in it is not zero: servers that count nothing
// send zeros.
func usage(raw []byte) providers.Usage {
	n := func(raw []byte) int { i, _ := number(raw); return max(i, 0) }
	var u providers.Usage
	m := object(raw)
	for {
		key, val, ok := m.next()
		if !ok {
			break
		}
		switch string(key) {
		case "prompt_tokens":
			u.Input = n(val)
		case "completion_tokens":
			u.Output = n(val)
		case "prompt_cache_hit_tokens", "cached_tokens":
			u.Cached = max(u.Cached, n(val))
		case "prompt_tokens_details":
			u.Cached = max(u.Cached, n(get(val, "cached_tokens")))
		case "completion_tokens_details":
			u.Reasoning = n(get(val, "reasoning_tokens"))
		}
	}
	u.Known = u.Input != 0 || u.Output != 0
	return u
}
