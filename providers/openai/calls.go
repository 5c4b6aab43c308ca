package openai

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/lakecode/lakecode/providers"
)

// maxCalls bounds the calls of one answer.
const maxCalls = 10_000

// call is a tool call that is being written.
type call struct {
	id, name string
	args     strings.Builder
	object   balance
}

// calls puts tool calls together from their pieces. Servers disagree about what
// tells the pieces of two calls apart, see find.
type calls struct {
	list    []*call
	byIndex map[int]int // last call for an index that a server gave
	byPos   map[int]int // last call for a place in a chunk, without an index
	byID    map[string]int
}

// add takes a piece and returns the place of its call, or -1 when there are too
// many calls.
func (cs *calls) add(d callDelta) (at int, warning string) {
	at = cs.find(d)
	if at < 0 {
		if len(cs.list) >= maxCalls {
			return -1, ""
		}
		at = cs.open(d)
	}
	c := cs.list[at]
	if c.name == "" {
		c.name = d.name
	}
	if c.id == "" && d.id != "" {
		c.id = d.id
		cs.byID[d.id] = at
	}
	return at, c.write(d.args)
}

func (cs *calls) open(d callDelta) int {
	if cs.byID == nil {
		cs.byID, cs.byIndex, cs.byPos = map[string]int{}, map[int]int{}, map[int]int{}
	}
	at := len(cs.list)
	cs.list = append(cs.list, &call{})
	if d.index >= 0 {
		cs.byIndex[d.index] = at
	} else {
		cs.byPos[d.pos] = at
	}
	return at
}

// find returns the call that a piece continues, or -1 for a new one. What is
// believed, in this order: an index together with the same id or none; an id; the
// place in a chunk of several pieces; and that a piece without id and name
// continues the last call.
func (cs *calls) find(d callDelta) int {
	if len(cs.list) == 0 {
		return -1
	}
	if d.index >= 0 {
		if at, ok := cs.byIndex[d.index]; ok {
			return cs.same(at, d)
		}
		at, ok := cs.byID[d.id]
		if !ok || d.id == "" || cs.list[at].reused(d) {
			return -1
		}
		return cs.same(at, d)
	}
	if at, ok := cs.byID[d.id]; ok && d.id != "" {
		return at
	}
	last := len(cs.list) - 1
	if c := cs.list[last]; c.name != "" && (d.id != "" && d.name != "" || c.followed(d)) {
		return -1
	}
	if d.of > 1 {
		if at, ok := cs.byPos[d.pos]; ok {
			return cs.same(at, d)
		}
		return -1
	}
	return cs.same(last, d)
}

// followed reports whether d, which has neither id nor name, can only be the
// beginning of another call whose name comes later.
func (c *call) followed(d callDelta) bool {
	return d.id == "" && d.name == "" && d.of == 1 && strings.HasPrefix(d.args, "{") &&
		c.object.closed && c.args.String() != "{}" && !c.repeats(d.args)
}

// reused reports whether d, at an index of its own, begins another call under an
// id that the server has given before.
func (c *call) reused(d callDelta) bool {
	return d.name != "" && c.object.closed && !c.repeats(d.args)
}

// same returns at when d can belong to the call at that place, and -1 when it
// begins another one.
func (cs *calls) same(at int, d callDelta) int {
	c := cs.list[at]
	switch {
	case d.name == "" || c.name == "":
		return at // a new id without a name continues the call
	case d.id != "" && d.id == c.id:
		return at
	case d.name != c.name:
		return -1
	case !c.object.closed:
		return at
	case d.id == "" && c.repeats(d.args):
		return at
	}
	return -1
}

// repeats reports whether args says what the call already holds, plainly or
// encoded once more.
func (c *call) repeats(args string) bool {
	have := c.args.String()
	return args == have || str([]byte(args)) == have
}

// write appends a piece of the arguments. Nothing can follow a whole object, so
// what comes then is a repetition or rubbish, except that some servers begin
// with an empty object as a placeholder.
func (c *call) write(args string) (warning string) {
	if args == "" {
		return ""
	}
	if c.object.closed {
		switch {
		case strings.TrimSpace(args) == "" || c.repeats(args):
			return ""
		case c.args.String() == "{}" && args[0] == '{':
			c.args.Reset()
			c.object = balance{}
		default:
			return "the server sent more after the arguments of a call were complete"
		}
	}
	c.args.WriteString(args)
	c.object.write(args)
	return ""
}

// balance watches JSON text for the end of its first object.
type balance struct {
	depth         int
	quoted, after bool // inside a string; after a backslash
	closed        bool
}

func (b *balance) write(s string) {
	for i := 0; i < len(s) && !b.closed; i++ {
		switch c := s[i]; {
		case b.after:
			b.after = false
		case b.quoted:
			b.after = c == '\\'
			b.quoted = c != '"'
		case c == '"':
			b.quoted = true
		case c == '{' || c == '[':
			b.depth++
		case c == '}' || c == ']':
			b.depth--
			b.closed = b.depth <= 0
		}
	}
}

// parts returns the calls. Ids that the server left out are made up, different
// from every id that used holds.
func (cs *calls) parts(used func(id string) bool, first int) (parts []providers.Part, warnings []string) {
	n := first
	for _, c := range cs.list {
		if c.ghost() {
			continue
		}
		id := c.id
		for id == "" {
			id = "call_" + strconv.Itoa(n)
			if _, taken := cs.byID[id]; taken || used(id) {
				id = ""
			}
			n++
		}
		args, repaired := repair(c.args.String())
		if repaired {
			warnings = append(warnings, "the arguments of "+c.name+" held bare control characters or wrong escapes and were mended")
		}
		parts = append(parts, providers.ToolCall{ID: id, Name: c.name, Args: args})
	}
	return parts, warnings
}

// ghost reports whether there was nothing but an index or an id: no call.
func (c *call) ghost() bool { return c.name == "" && c.args.Len() == 0 }

// named reports whether every call has a name.
func (cs *calls) named() bool {
	for _, c := range cs.list {
		if c.name == "" && !c.ghost() {
			return false
		}
	}
	return true
}

// sound reports whether the arguments of every call are an object.
func (cs *calls) sound() bool {
	for _, c := range cs.list {
		args, _ := repair(c.args.String())
		if !strings.HasPrefix(strings.TrimSpace(args), "{") || !json.Valid([]byte(args)) {
			return false
		}
	}
	return true
}

// repair returns arguments fit to be parsed: an empty object for none, and with
// bare control characters and meaningless backslashes in strings escaped, when
// that makes them valid. What it cannot mend it returns as it is.
func repair(args string) (string, bool) {
	if strings.TrimSpace(args) == "" {
		return "{}", false
	}
	if json.Valid([]byte(args)) {
		return args, false
	}
	out := make([]byte, 0, len(args)+16)
	quoted := false
	for i := 0; i < len(args); i++ {
		c := args[i]
		switch {
		case !quoted:
			quoted = c == '"'
		case c == '"':
			quoted = false
		case c < 0x20:
			out = append(out, control(c)...)
			continue
		case c == '\\' && (i+1 == len(args) || !strings.ContainsRune(`"\/bfnrtu`, rune(args[i+1]))):
			out = append(out, '\\', '\\')
			continue
		case c == '\\':
			out = append(out, c)
			i++
			c = args[i]
		}
		out = append(out, c)
	}
	if !json.Valid(out) {
		return args, false
	}
	return string(out), true
}

// control returns the escape of a control character.
func control(c byte) string {
	switch c {
	case '\n':
		return `\n`
	case '\r':
		return `\r`
	case '\t':
		return `\t`
	}
	const hex = "0123456789abcdef"
	return `\u00` + string([]byte{hex[c>>4], hex[c&15]})
}
