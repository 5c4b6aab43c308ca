package fakemodel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/lakecode/lakecode/providers/rehearsal"
	"github.com/lakecode/lakecode/tools"
)

// DefaultMaxBody is the largest request that passes unless Config says
// otherwise, in bytes.
const DefaultMaxBody = 16 << 20

// Config says what to play and what every request must be like. The zero value
// plays nothing, wants no key and offers what [tools.Build] may have.
type Config struct {
	// Script is the text of a script; see [rehearsal.Manual].
	Script string
	// Key is the key that every request must carry; "" wants none.
	Key string
	// Role is what the model may be offered; nil means [tools.Build].
	Role tools.Role
	// Images allows pictures in a request.
	Images bool
	// Canary lists secrets that may stand nowhere but in the Authorization
	// header, where only Key may.
	Canary []string
	// Rewrites allows the history to change between requests, as rewinding and
	// compaction do. The system prompt and the tools must still stay.
	Rewrites bool
	// Session tells the conversations of one server apart; nil means that all
	// requests belong to one.
	Session func(*rehearsal.Request) string
	// MaxBody bounds a request, in bytes; 0 means DefaultMaxBody.
	MaxBody int
	// Partial allows the script to be left unfinished, for tests that kill or
	// stop what plays it.
	Partial bool
	// AtEnd judges the requests when the test ends, not before each answer, so
	// that a benchmark does not measure it.
	AtEnd bool
}

// Checker judges requests in the order in which they come. Safe for concurrent
// use.
type Checker struct {
	conf Config

	mu   sync.Mutex
	last map[string]*rehearsal.Chat // the last request of each session; guarded by mu
}

// NewChecker makes a judge. It does not look at conf.Script and conf.AtEnd.
func NewChecker(conf Config) *Checker {
	if conf.Role == nil {
		conf.Role = tools.Build
	}
	if conf.MaxBody == 0 {
		conf.MaxBody = DefaultMaxBody
	}
	if conf.Session == nil {
		conf.Session = func(*rehearsal.Request) string { return "" }
	}
	return &Checker{conf: conf, last: map[string]*rehearsal.Chat{}}
}

// findings collects what is wrong with one request.
type findings []string

func (f *findings) add(format string, args ...any) { *f = append(*f, fmt.Sprintf(format, args...)) }

// Check returns what is wrong with a request, one sentence each; nil when
// nothing is.
func (c *Checker) Check(r *rehearsal.Request) []string {
	var f findings
	c.envelope(&f, r)
	c.canaries(&f, r)
	chat, err := r.Chat()
	if err != nil {
		f.add("the body is not a chat request: %v", err)
		return f
	}
	c.body(&f, r, chat)
	c.offered(&f, chat)
	shape(&f, chat.Talk, c.conf.Images)
	pairs(&f, chat.Talk)
	c.prefix(&f, c.conf.Session(r), chat)
	return f
}

// envelope checks what is around the body.
func (c *Checker) envelope(f *findings, r *rehearsal.Request) {
	want := http.Header{}
	if c.conf.Key != "" {
		want.Set("Authorization", "Bearer "+c.conf.Key)
	}
	if got := r.Header["Authorization"]; !slices.Equal(got, want["Authorization"]) {
		// The values are keys: they are not for a test's log.
		f.add("the Authorization header is not what the connection says (%d values of %d bytes)", len(got), len(strings.Join(got, "")))
	}
	if got := r.Header.Get("Content-Type"); !strings.HasPrefix(got, "application/json") {
		f.add("Content-Type is %q, not application/json", got)
	}
	if len(r.Body) > c.conf.MaxBody {
		f.add("the body has %d bytes, more than %d", len(r.Body), c.conf.MaxBody)
	}
	if !utf8.Valid(r.Body) {
		f.add("the body is not UTF-8")
	}
}

func (c *Checker) canaries(f *findings, r *rehearsal.Request) {
	for i, secret := range c.conf.Canary {
		if bytes.Contains(r.Body, []byte(secret)) {
			f.add("canary %d stands in the body", i+1)
		}
		for name, values := range r.Header {
			if name != "Authorization" && strings.Contains(strings.Join(values, "\n"), secret) {
				f.add("canary %d stands in the header %s", i+1, name)
			}
		}
		if strings.Contains(r.Path, secret) {
			f.add("canary %d stands in the address", i+1)
		}
	}
}

func (c *Checker) body(f *findings, r *rehearsal.Request, chat *rehearsal.Chat) {
	var also struct {
		Options struct {
			Usage bool `json:"include_usage"`
		} `json:"stream_options"`
	}
	if err := json.Unmarshal(r.Body, &also); err != nil {
		f.add("stream_options: %v", err)
	}
	if !chat.Stream {
		f.add("the request does not say stream: true")
	}
	if !also.Options.Usage {
		f.add("the request does not ask for the usage (stream_options.include_usage)")
	}
	if chat.Model == "" {
		f.add("the request names no model")
	}
}

var toolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// offered checks the tools.
func (c *Checker) offered(f *findings, chat *rehearsal.Chat) {
	if chat.Tools != nil && len(chat.Offered) == 0 {
		f.add("the list of tools is there and empty, which servers refuse; it must be left out")
	}
	seen := map[string]bool{}
	for _, t := range chat.Offered {
		if _, may := c.conf.Role[t.Name]; !may {
			f.add("the tool %q is offered, which the role may not have", t.Name)
		}
		if seen[t.Name] {
			f.add("the tool %q is offered twice", t.Name)
		}
		seen[t.Name] = true
		if t.Type != "function" || !toolName.MatchString(t.Name) || t.Description == "" {
			f.add("the tool %q lacks a type, a proper name or a description", t.Name)
		}
		var schema struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(t.Parameters, &schema) != nil || schema.Type != "object" {
			f.add("the parameters of the tool %q are no object schema", t.Name)
		}
	}
}

// shape checks each message by itself.
func shape(f *findings, talk []rehearsal.Message, images bool) {
	if len(talk) == 0 {
		f.add("the request has no messages")
		return
	}
	if last := talk[len(talk)-1].Role; last != "user" && last != "tool" {
		f.add("the last message is of the role %q, so there is nothing to answer", last)
	}
	for i, m := range talk {
		at := i + 1
		switch m.Role {
		case "system":
			if i > 0 {
				f.add("message %d is a system message, which may only come first", at)
			}
		case "user":
		case "assistant":
			if m.HasNo {
				f.add("message %d has an empty list of calls", at)
			}
		case "tool":
			if m.Answers == "" {
				f.add("message %d is a result without the id of its call", at)
			}
		default:
			f.add("message %d is of the role %q", at, m.Role)
		}
		if m.Text == "" && m.Images == 0 && len(m.Calls) == 0 {
			f.add("message %d (%s) is empty", at, m.Role)
		}
		if m.Images > 0 && (!images || m.Role != "user") {
			f.add("message %d (%s) holds a picture, which this model or this role cannot have", at, m.Role)
		}
		if m.Role != "assistant" && len(m.Calls) > 0 {
			f.add("message %d (%s) holds calls", at, m.Role)
		}
		for _, c := range m.Calls {
			var object map[string]json.RawMessage
			if c.ID == "" || c.Type != "function" || c.Name == "" {
				f.add("a call in message %d lacks its id, type or name: %+v", at, c)
			} else if json.Unmarshal([]byte(c.Args), &object) != nil {
				// Several servers parse them to fill the chat template.
				f.add("the arguments of the call %s in message %d are no JSON object", c.ID, at)
			}
		}
	}
}

// pairs checks that each call has exactly one result right after its message,
// in the order of the calls, and each result its call.
func pairs(f *findings, talk []rehearsal.Message) {
	var open []string // calls that still want a result, in order
	calls, results := map[string]bool{}, map[string]bool{}
	settle := func(at int) {
		for _, id := range open {
			f.add("the call %s has no result before message %d", id, at)
		}
		open = nil
	}
	for i, m := range talk {
		if m.Role != "tool" {
			settle(i + 1)
		}
		for _, c := range m.Calls {
			if calls[c.ID] {
				f.add("the call id %s is used twice", c.ID)
			}
			calls[c.ID] = true
			open = append(open, c.ID)
		}
		if m.Role != "tool" {
			continue
		}
		where := slices.Index(open, m.Answers)
		switch {
		case results[m.Answers]:
			f.add("message %d is a second result of the call %s", i+1, m.Answers)
		case where < 0:
			f.add("message %d is a result of %s, which no call right before it has", i+1, m.Answers)
		case where > 0:
			f.add("message %d is the result of %s, out of order: %s comes first", i+1, m.Answers, open[0])
		}
		if where >= 0 {
			open = slices.Delete(open, where, where+1)
		}
		results[m.Answers] = true
	}
	settle(len(talk) + 1)
}

// prefix checks that what was sent before is sent again byte by byte, without
// which no provider's prompt cache works.
func (c *Checker) prefix(f *findings, session string, now *rehearsal.Chat) {
	c.mu.Lock()
	before := c.last[session]
	c.last[session] = now
	c.mu.Unlock()
	if before == nil {
		return
	}
	if !bytes.Equal(before.Tools, now.Tools) {
		f.add("the tools have changed since the last request: %s", difference(before.Tools, now.Tools))
	}
	if before.System() != now.System() {
		f.add("the system prompt has changed since the last request: %s", difference([]byte(before.System()), []byte(now.System())))
		return
	}
	if c.conf.Rewrites {
		return
	}
	for i, m := range before.Messages {
		if i >= len(now.Messages) {
			f.add("the history is shorter than in the last request: %d messages, before %d", len(now.Messages), len(before.Messages))
			return
		}
		if !bytes.Equal(m, now.Messages[i]) {
			f.add("message %d has changed since the last request: %s", i+1, difference(m, now.Messages[i]))
			return
		}
	}
}

// difference shows where two texts part.
func difference(before, now []byte) string {
	at := 0
	for at < min(len(before), len(now)) && before[at] == now[at] {
		at++
	}
	around := func(b []byte) string {
		return strings.ToValidUTF8(string(b[max(0, min(at-40, len(b))):min(at+80, len(b))]), "")
	}
	return fmt.Sprintf("at byte %d, before %q, now %q", at, around(before), around(now))
}
