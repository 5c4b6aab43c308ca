package openai

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lakecode/lakecode/providers"
)

// sent returns the body that a server gets for a request.
func sent(t *testing.T, snap providers.Snapshot, req providers.Request) string {
	t.Helper()
	var got []byte
	here := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got, _ = io.ReadAll(r.Body)
		events(text(hello)+end("stop")+fin)(w, r)
	})
	snap.BaseURL = here.BaseURL
	check(t, listen(t, client(t, Config{}), t.Context(), snap, req), ok)
	if !json.Valid(got) {
		t.Fatalf("the body is not JSON: %s", got)
	}
	return string(got)
}

func checkMessages(t *testing.T, want string, messages ...*providers.Message) {
	t.Helper()
	body := sent(t, snapshot(""), providers.Request{Messages: messages})
	if diff := cmp.Diff(`{"model":"m","messages":[`+want+`],"stream":true,"stream_options":{"include_usage":true}}`, body); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
}

func says(role providers.Role, parts ...providers.Part) *providers.Message {
	return &providers.Message{Role: role, Parts: parts}
}

func TestMessages(t *testing.T) {
	png := providers.Image{MIME: "image/png", Data: []byte{1, 2}}
	for _, v := range []struct {
		name     string
		messages []*providers.Message
		want     string
	}{
		{"text is a string", []*providers.Message{says(providers.User, providers.Text{Text: "a<b>&\xff\u2028\n\"\x00"})}, `{"content":"a<b>&\ufffd\u2028\n\"\u0000","role":"user"}`},
		{"texts are joined", []*providers.Message{says(providers.User, providers.Text{Text: "a"}, providers.Text{Text: "b"})}, `{"content":"a\n\nb","role":"user"}`},
		{
			"a picture",
			[]*providers.Message{says(providers.User, providers.Text{Text: "see"}, png)},
			`{"content":[{"text":"see","type":"text"},{"image_url":{"url":"data:image/png;base64,AQI="},"type":"image_url"}],"role":"user"}`,
		},
		{"an answer", []*providers.Message{says(providers.Assistant, providers.Reasoning{Text: "hm", Field: "reasoning_content"}, providers.Text{Text: "a"})}, `{"content":"a","role":"assistant"}`},
		{
			"CC-36 reasoning goes back with calls",
			[]*providers.Message{says(providers.Assistant, providers.Reasoning{Text: "hm", Field: "reasoning_content"}, providers.ToolCall{ID: "a", Name: "f", Args: `{"p":1}`})},
			`{"tool_calls":[{"id":"a","function":{"arguments":"{\"p\":1}","name":"f"},"type":"function"}],"role":"assistant","content":null,"reasoning_content":"hm"}`,
		},
		{
			"reasoning of another name does not",
			[]*providers.Message{says(providers.Assistant, providers.Reasoning{Text: "hm", Field: "reasoning"}, providers.Text{Text: "x"}, providers.ToolCall{ID: "a", Name: "f"})},
			`{"content":"x","tool_calls":[{"id":"a","function":{"arguments":"{}","name":"f"},"type":"function"}],"role":"assistant"}`,
		},
		{
			"results, pictures after them",
			[]*providers.Message{says(providers.Tool, providers.ToolResult{ID: "a", Text: "one", Images: []providers.Image{png}}, providers.ToolResult{ID: "b"})},
			`{"content":"one","tool_call_id":"a","role":"tool"},{"content":"(empty)","tool_call_id":"b","role":"tool"},` +
				`{"content":[{"text":"Images of the result of call a:","type":"text"},{"image_url":{"url":"data:image/png;base64,AQI="},"type":"image_url"}],"role":"user"}`,
		},
	} {
		t.Run(v.name, func(t *testing.T) { checkMessages(t, v.want, v.messages...) })
	}
}

func TestBodyFields(t *testing.T) {
	req := ask("hi")
	req.System = "be <brief>"
	req.Tools = []providers.ToolSpec{
		{Name: "f", Description: "does f", Schema: json.RawMessage(`{"type": "object", "properties": {"z":{}, "a":{}}}`)},
		{Name: "g", Description: "does g", Schema: json.RawMessage(`{"type":"object"}`)},
	}
	snap := snapshot("")
	snap.Model, snap.Effort, snap.Limits.Output = `odd"model`, "high", 4096
	want := `{"model":"odd\"model","messages":[{"content":"be <brief>","role":"system"},{"content":"hi","role":"user"}],` +
		`"tools":[{"function":{"name":"f","description":"does f","parameters":{"type":"object","properties":{"z":{},"a":{}}}},"type":"function"},` +
		`{"function":{"name":"g","description":"does g","parameters":{"type":"object"}},"type":"function"}],` +
		`"stream":true,"stream_options":{"include_usage":true},"reasoning_effort":"high","max_tokens":4096}`
	if diff := cmp.Diff(want, sent(t, snap, req)); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
	for _, effort := range []string{"", "none"} {
		if b := sent(t, providers.Snapshot{Model: "m", Effort: effort}, ask("hi")); strings.Contains(b, "effort") || strings.Contains(b, "max_") || strings.Contains(b, "tools") {
			t.Errorf("effort %q: %s", effort, b)
		}
	}
	for base, field := range map[string]string{
		"https://api.openai.com/v1": "max_completion_tokens", "https://x.openai.azure.com/openai/v1": "max_completion_tokens",
		"http://127.0.0.1:8080/v1": "max_tokens", "https://api.openai.com.evil.example/v1": "max_tokens",
	} {
		if got := maxTokensField(base); got != field {
			t.Errorf("%s: %s, want %s", base, got, field)
		}
	}
}

// A request begins with the bytes of the one before it, and a message is encoded
// once.
func TestPrefixIsStable(t *testing.T) {
	c := client(t, Config{})
	snap := snapshot("http://test/v1")
	req := ask("hi")
	req.System = "system"
	req.Tools = []providers.ToolSpec{{Name: "f", Schema: json.RawMessage(`{}`)}}
	before := ""
	for i := range 5 {
		b, err := c.body(&snap, &req)
		if err != nil {
			t.Fatal(err)
		}
		prefix, _, _ := strings.Cut(string(b), `],"tools"`)
		if !strings.HasPrefix(prefix, before) {
			t.Fatalf("request %d begins with\n%s\nnot with\n%s", i, prefix, before)
		}
		before = prefix
		first, _ := req.Messages[0].Encoded(wireKey, nil) // would panic if it had to encode
		again, _ := req.Messages[0].Encoded(wireKey, nil)
		if &first[0] != &again[0] {
			t.Fatal("the encoding is not kept")
		}
		req.Messages = append(req.Messages,
			says(providers.Assistant, providers.ToolCall{ID: "a", Name: "f", Args: "{}"}),
			says(providers.Tool, providers.ToolResult{ID: "a", Text: "done"}))
	}
}

// Roles that take turns keep their encoded heads, and a changed tool gets a new
// one.
func TestHeads(t *testing.T) {
	var h heads
	spec := func(d string) []providers.ToolSpec {
		return []providers.ToolSpec{{Name: "f", Description: d, Schema: json.RawMessage(`{}`)}}
	}
	get := func(system, d string) *head {
		got, err := h.get(&providers.Request{System: system, Tools: spec(d)})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(got.system), system) || !strings.Contains(string(got.tools), d) {
			t.Fatalf("head of %s, %s: %s %s", system, d, got.system, got.tools)
		}
		return got
	}
	a, b := get("one", "da"), get("two", "db")
	if get("one", "da") != a || get("two", "db") != b || get("one", "db") == a {
		t.Error("heads are mixed up or not kept")
	}
	for i := range 3 * maxHeads {
		get("many", strings.Repeat("x", i+1))
	}
	if len(h.list) != maxHeads {
		t.Errorf("%d heads are kept", len(h.list))
	}
	if _, err := h.get(&providers.Request{Tools: []providers.ToolSpec{{Name: "f", Schema: json.RawMessage(`{`)}}}); err == nil {
		t.Error("a schema that is not JSON was encoded")
	}
}

// A request that cannot be encoded is refused before the network.
func TestBrokenSchemaIsRefused(t *testing.T) {
	req := ask("hi")
	req.Tools = []providers.ToolSpec{{Name: "f", Schema: json.RawMessage(`{`)}}
	h := listen(t, client(t, Config{}), t.Context(), serve(t, func(http.ResponseWriter, *http.Request) { t.Error("something was sent") }), req)
	check(t, h, want{kind: providers.Misconfigured, message: "cannot be encoded"})
}

// A made-up id differs from every id of the conversation.
func TestMadeUpIDs(t *testing.T) {
	req := ask("hi")
	req.Messages = append(req.Messages,
		says(providers.Assistant, providers.ToolCall{ID: "call_1", Name: "f"}),
		says(providers.Tool, providers.ToolResult{ID: "call_1", Text: "x"}))
	snap := serve(t, events(tc(`{"index":0,"function":{"name":"f","arguments":"{}"}}`)+tc(`{"index":1,"function":{"name":"g","arguments":"{}"}}`)+end("tool_calls")+fin))
	check(t, listen(t, client(t, Config{}), t.Context(), snap, req), want{stop: providers.StopCalls, calls: made("call_2", "f", "{}", "call_3", "g", "{}")})
}

// What is shown of a call while it is written: its name and how much there is.
func TestCallDeltas(t *testing.T) {
	snap := serve(t, events(text("x")+tc(`{"index":3,"id":"a","function":{"name":"f","arguments":"{\"p\""}}`)+tc(`{"index":3,"function":{"arguments":":1}"}}`)+tc(`{"index":4,"id":"b","function":{"name":"g"}}`)+end("tool_calls")+fin))
	h := listen(t, client(t, Config{}), t.Context(), snap, ask("hi"))
	want := []providers.CallDelta{{Index: 0, Name: "f", Bytes: 4}, {Index: 0, Name: "f", Bytes: 7}, {Index: 1, Name: "g"}}
	if diff := cmp.Diff(want, h.Calls); diff != "" || h.Order != "tcccD" {
		t.Errorf("order %s, calls (-want +got):\n%s", h.Order, diff)
	}
}

// A thousand calls in one answer are a thousand calls; a flood is an error.
func TestManyCalls(t *testing.T) {
	many := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteString(`{"function":{"name":"f","arguments":"{}"}},`)
		}
		return ch(`{"tool_calls":[`+strings.TrimSuffix(b.String(), ",")+`]}`, `"tool_calls"`) + fin
	}
	h := listen(t, client(t, Config{}), t.Context(), serve(t, events(many(1000))), ask("hi"))
	if h.Done == nil || len(h.Done.Parts) != 1000 || h.Done.Stop != providers.StopCalls {
		t.Errorf("%+v", h.Err)
	}
	h = listen(t, client(t, Config{}), t.Context(), serve(t, events(many(maxCalls+1))), ask("hi"))
	check(t, h, want{kind: providers.BrokenStream, message: "more tool calls"})
}
