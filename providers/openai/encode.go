package openai

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"github.com/lakecode/lakecode/providers"
)

// wireKey names the encoding of a message that is kept with it.
const wireKey = "chat-completions"

// body puts a request together. Its beginning (model, system prompt, messages so
// far) has the same bytes in every request of a session, which is what a
// server's prompt cache goes by.
func (c *Client) body(snap *providers.Snapshot, req *providers.Request) ([]byte, error) {
	head, err := c.heads.get(req)
	if err != nil {
		return nil, err
	}
	size := len(head.system) + len(head.tools) + len(snap.Model) + 256
	parts := make([][]byte, 0, len(req.Messages)+1)
	if len(head.system) > 0 {
		parts = append(parts, head.system)
	}
	for _, m := range req.Messages {
		data, err := m.Encoded(wireKey, encode)
		if err != nil {
			return nil, err
		}
		if len(data) == 0 {
			continue
		}
		parts = append(parts, data)
		size += len(data) + 1
	}
	model, err := json.Marshal(snap.Model)
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, size)
	b = append(append(b, `{"model":`...), model...)
	b = append(b, `,"messages":[`...)
	for i, p := range parts {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, p...)
	}
	b = append(b, ']')
	if len(head.tools) > 0 {
		b = append(append(b, `,"tools":`...), head.tools...)
	}
	b = append(b, `,"stream":true,"stream_options":{"include_usage":true}`...)
	if snap.Effort != "" && snap.Effort != "none" {
		effort, err := json.Marshal(snap.Effort)
		if err != nil {
			return nil, err
		}
		b = append(append(b, `,"reasoning_effort":`...), effort...)
	}
	if snap.Limits.Output > 0 {
		b = append(b, `,"`+maxTokensField(snap.BaseURL)+`":`...)
		b = strconv.AppendInt(b, int64(snap.Limits.Output), 10)
	}
	return append(b, '}'), nil
}

// maxTokensField is max_tokens, which every server knows, except for OpenAI
// itself, whose reasoning models refuse it.
func maxTokensField(base string) string {
	u, err := url.Parse(base)
	if err == nil && (u.Hostname() == "api.openai.com" || strings.HasSuffix(u.Hostname(), ".openai.azure.com")) {
		return "max_completion_tokens"
	}
	return "max_tokens"
}

// head is the encoded part of a request that does not grow.
type head struct {
	text  string
	specs []providers.ToolSpec

	system []byte // nil without a system prompt
	tools  []byte // nil without tools
}

// heads keeps the last few heads, one for each role that is at work.
type heads struct {
	mu   sync.Mutex
	list []*head // guarded by mu; latest first
}

// maxHeads is the number of roles that may alternate without encoding anew.
const maxHeads = 8

func (h *heads) get(req *providers.Request) (*head, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, old := range h.list {
		if old.text == req.System && slices.EqualFunc(old.specs, req.Tools, sameSpec) {
			copy(h.list[1:i+1], h.list[:i])
			h.list[0] = old
			return old, nil
		}
	}
	made, err := encodeHead(req)
	if err != nil {
		return nil, err
	}
	h.list = append([]*head{made}, h.list[:min(len(h.list), maxHeads-1)]...)
	return made, nil
}

func sameSpec(a, b providers.ToolSpec) bool {
	return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Schema, b.Schema)
}

func encodeHead(req *providers.Request) (*head, error) {
	h := &head{text: req.System, specs: slices.Clone(req.Tools)}
	if req.System != "" {
		data, err := openai.SystemMessage(req.System).MarshalJSON()
		if err != nil {
			return nil, err
		}
		h.system = data
	}
	for i, t := range req.Tools {
		f := shared.FunctionDefinitionParam{Name: t.Name, Description: param.NewOpt(t.Description)}
		f.SetExtraFields(map[string]any{"parameters": t.Schema})
		data, err := openai.ChatCompletionFunctionTool(f).MarshalJSON()
		if err != nil {
			return nil, err
		}
		h.tools = append(append(h.tools, "[,"[min(i, 1)]), data...)
	}
	if len(h.tools) > 0 {
		h.tools = append(h.tools, ']')
	}
	return h, nil
}

// encode returns the wire form of a message: one JSON object, or several joined
// by commas, because each result of a call is a message of its own here.
func encode(m *providers.Message) ([]byte, error) {
	var out []openai.ChatCompletionMessageParamUnion
	switch m.Role {
	case providers.User:
		out = append(out, user(m.Parts))
	case providers.Assistant:
		out = append(out, assistant(m.Parts))
	case providers.Tool:
		out = results(m.Parts)
	}
	var b []byte
	for i, o := range out {
		data, err := o.MarshalJSON()
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, data...)
	}
	return b, nil
}

// user sends text alone as a string, which every server takes, and a list of
// parts only when there are pictures.
func user(parts []providers.Part) openai.ChatCompletionMessageParamUnion {
	var texts []string
	var list []openai.ChatCompletionContentPartUnionParam
	pictures := false
	for _, p := range parts {
		switch p := p.(type) {
		case providers.Text:
			texts = append(texts, p.Text)
			list = append(list, openai.TextContentPart(p.Text))
		case providers.Image:
			pictures = true
			list = append(list, picture(p))
		}
	}
	if pictures {
		return openai.UserMessage(list)
	}
	return openai.UserMessage(strings.Join(texts, "\n\n"))
}

func picture(p providers.Image) openai.ChatCompletionContentPartUnionParam {
	return openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{
		URL: "data:" + p.MIME + ";base64," + base64.StdEncoding.EncodeToString(p.Data),
	})
}

// assistant repeats an answer. Reasoning goes back only with calls, and only
// under reasoning_content, the one name under which servers insist on having it
// back (DeepSeek); a server that streamed it under another name, or none, may
// refuse a field that it does not know.
func assistant(parts []providers.Part) openai.ChatCompletionMessageParamUnion {
	var text, reasoning strings.Builder
	msg := &openai.ChatCompletionAssistantMessageParam{}
	for _, p := range parts {
		switch p := p.(type) {
		case providers.Text:
			text.WriteString(p.Text)
		case providers.Reasoning:
			if p.Field == fields[0] {
				reasoning.WriteString(p.Text)
			}
		case providers.ToolCall:
			args := argsObject(p.Args)
			msg.ToolCalls = append(msg.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{
				OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
					ID:       p.ID,
					Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: p.Name, Arguments: args},
				},
			})
		}
	}
	extra := map[string]any{}
	if text.Len() > 0 || len(msg.ToolCalls) == 0 {
		msg.Content.OfString = param.NewOpt(text.String())
	} else {
		extra["content"] = nil
	}
	if reasoning.Len() > 0 && len(msg.ToolCalls) > 0 {
		extra[fields[0]] = reasoning.String()
	}
	if len(extra) > 0 {
		msg.SetExtraFields(extra)
	}
	return openai.ChatCompletionMessageParamUnion{OfAssistant: msg}
}

// results sends one message for each result. Pictures follow in a message of the
// user, because servers refuse them inside a result.
func results(parts []providers.Part) []openai.ChatCompletionMessageParamUnion {
	var out []openai.ChatCompletionMessageParamUnion
	var pictures []openai.ChatCompletionContentPartUnionParam
	for _, p := range parts {
		r, ok := p.(providers.ToolResult)
		if !ok {
			continue
		}
		text := r.Text
		if text == "" {
			text = "(empty)" // some servers refuse a message without content
		}
		out = append(out, openai.ToolMessage(text, r.ID))
		if len(r.Images) > 0 {
			pictures = append(pictures, openai.TextContentPart("Images of the result of call "+r.ID+":"))
		}
		for _, img := range r.Images {
			pictures = append(pictures, picture(img))
		}
	}
	if len(pictures) > 0 {
		out = append(out, openai.UserMessage(pictures))
	}
	return out
}

// argsObject returns the arguments of a past call as a JSON object, which some
// servers parse them to be and refuse the whole history otherwise. What the
// model wrote is kept inside; the call's result says what was wrong with it.
func argsObject(args string) string {
	trimmed := strings.TrimSpace(args)
	switch {
	case trimmed == "":
		return "{}"
	case strings.HasPrefix(trimmed, "{") && json.Valid([]byte(args)):
		return args
	}
	quoted, err := json.Marshal(map[string]string{"unparsed": args})
	if err != nil {
		return "{}" // a map of strings always encodes
	}
	return string(quoted)
}
