package rehearsal

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// ErrLeft means that the client went away, or the server was closed, before the
// answer was complete.
var ErrLeft = errors.New("rehearsal: the client left before the answer was complete")

// Request is one chat request as it came. It is not changed after the answer
// has begun; nobody may change it. Safe for concurrent use.
type Request struct {
	N       int       // of the request, from 1
	Arrived time.Time // when its header was there, before the body was read
	Read    time.Time // when its body was complete
	Path    string
	Header  http.Header
	Body    []byte

	once  sync.Once
	chat  Chat
	wrong error

	done chan struct{} // closed when the answer has ended
	err  error         // readable once done is closed
}

// Done is closed when the answer has ended, one way or another.
func (r *Request) Done() <-chan struct{} { return r.done }

// Err says how the answer ended: nil when everything was sent, [ErrLeft], or
// why the script refused the request. It waits for Done.
func (r *Request) Err() error {
	<-r.done
	return r.err
}

// Chat is the part of a Chat Completions request that scripts and tests look at.
type Chat struct {
	Model    string            `json:"model"`
	Stream   bool              `json:"stream"`
	Messages []json.RawMessage `json:"messages"` // each exactly as it came
	Tools    json.RawMessage   `json:"tools"`    // exactly as it came; nil when absent

	Talk    []Message `json:"-"` // Messages, read
	Offered []Tool    `json:"-"` // Tools, read
}

// Message is one message of a [Chat].
type Message struct {
	Role    string
	Content json.RawMessage // a string, a list of parts, null, or nil when absent
	Text    string          // all text of Content
	Images  int             // how many pictures Content holds
	Calls   []Call
	HasNo   bool   // tool_calls is there and empty, which servers refuse
	Answers string // tool_call_id of a result
}

// Call is one call that an assistant message holds.
type Call struct{ ID, Type, Name, Args string }

// Tool is one tool on offer.
type Tool struct {
	Type, Name, Description string
	Parameters              json.RawMessage
}

// Chat reads the body. The error says what is not a chat request.
func (r *Request) Chat() (*Chat, error) {
	r.once.Do(func() {
		if r.wrong = json.Unmarshal(r.Body, &r.chat); r.wrong == nil {
			r.wrong = r.chat.read()
		}
	})
	return &r.chat, r.wrong
}

// outline reads what every answer needs, in a fraction of the time that Chat
// takes with a long history.
func (r *Request) outline() (model string, stream bool, err error) {
	var c struct {
		Model  string `json:"model"`
		Stream bool   `json:"stream"`
	}
	err = json.Unmarshal(r.Body, &c)
	return c.Model, c.Stream, err
}

func (c *Chat) read() error {
	for i, raw := range c.Messages {
		m, err := readMessage(raw)
		if err != nil {
			return fmt.Errorf("message %d: %w", i+1, err)
		}
		c.Talk = append(c.Talk, m)
	}
	if c.Tools == nil {
		return nil
	}
	var tools []struct {
		Type     string `json:"type"`
		Function struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		} `json:"function"`
	}
	if err := json.Unmarshal(c.Tools, &tools); err != nil {
		return fmt.Errorf("tools: %w", err)
	}
	for _, t := range tools {
		c.Offered = append(c.Offered, Tool{t.Type, t.Function.Name, t.Function.Description, t.Function.Parameters})
	}
	return nil
}

func readMessage(raw json.RawMessage) (Message, error) {
	var in struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
		Calls   *[]struct {
			ID       string `json:"id"`
			Type     string `json:"type"`
			Function struct {
				Name string `json:"name"`
				Args string `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
		Answers string `json:"tool_call_id"`
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return Message{}, err
	}
	m := Message{Role: in.Role, Content: in.Content, Answers: in.Answers}
	if in.Calls != nil {
		m.HasNo = len(*in.Calls) == 0
		for _, c := range *in.Calls {
			m.Calls = append(m.Calls, Call{c.ID, c.Type, c.Function.Name, c.Function.Args})
		}
	}
	if len(in.Content) == 0 || string(in.Content) == "null" {
		return m, nil
	}
	if in.Content[0] == '"' {
		return m, json.Unmarshal(in.Content, &m.Text)
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(in.Content, &parts); err != nil {
		return Message{}, fmt.Errorf("content: %w", err)
	}
	var b strings.Builder
	for _, p := range parts {
		if p.Type == "image_url" {
			m.Images++
		}
		b.WriteString(p.Text)
	}
	m.Text = b.String()
	return m, nil
}

// System returns the text of the system messages.
func (c *Chat) System() string {
	var b strings.Builder
	for _, m := range c.Talk {
		if m.Role == "system" {
			b.WriteString(m.Text)
		}
	}
	return b.String()
}

// User returns the person's last message.
func (c *Chat) User() (string, bool) {
	for i := len(c.Talk) - 1; i >= 0; i-- {
		if c.Talk[i].Role == "user" {
			return c.Talk[i].Text, true
		}
	}
	return "", false
}

// Results returns the results of the last calls, in order.
func (c *Chat) Results() []string {
	var out []string
	for i := len(c.Talk) - 1; i >= 0 && c.Talk[i].Role != "assistant"; i-- {
		if c.Talk[i].Role == "tool" {
			out = append([]string{c.Talk[i].Text}, out...)
		}
	}
	return out
}
