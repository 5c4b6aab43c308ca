package openai

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/lakecode/lakecode/providers"
)

type vector struct {
	name string
	raw  string
	want want
}

func made(c ...string) (out []providers.ToolCall) {
	for i := 0; i+2 < len(c); i += 3 {
		out = append(out, providers.ToolCall{ID: c[i], Name: c[i+1], Args: c[i+2]})
	}
	return out
}

var (
	ok       = want{text: hello, stop: providers.StopEnd}
	known    = providers.Usage{Known: true, Input: 10, Cached: 6, Output: 4, Reasoning: 1}
	failed   = providers.Overloaded
	broken   = providers.BrokenStream
	twoCalls = want{stop: providers.StopCalls, calls: made("a", "f", `{"p":1}`, "b", "g", `{}`)}
	oneCall  = want{stop: providers.StopCalls, calls: made("a", "f", `{"p":1}`)}
)

// The vectors of the transport (design/providers 1.5).
var sseVectors = []vector{
	{"SSE-01 no space after data:", strings.ReplaceAll(text(hello)+end("stop")+fin, "data: ", "data:"), ok},
	{"SSE-02 CRLF", strings.ReplaceAll(text(hello)+end("stop")+fin, "\n", "\r\n"), ok},
	{"SSE-03 lone CR", strings.ReplaceAll(text(hello)+end("stop")+fin, "\n", "\r"), ok},
	{"SSE-04 BOM", "\ufeff" + text(hello) + end("stop") + fin, ok},
	{"SSE-05 comments", ": ping\n\n: OPENROUTER PROCESSING\n\n:\n\n" + text(hello) + ":\n\n" + end("stop") + fin, ok},
	{"SSE-06 comment wrapped into data", data(": OPENROUTER PROCESSING") + text(hello) + data("") + end("stop") + fin, ok},
	{"SSE-07 last event without blank line", text(hello) + strings.TrimRight(end("stop"), "\n"), ok},
	{"SSE-08 cut inside JSON", text(hello) + text("lost")[:40], want{text: hello, kind: broken, message: "broke off"}},
	{"SSE-08 cut inside a call", text(hello) + tc(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"p\":"}}`), want{text: hello, kind: broken, message: "broke off"}},
	{"SSE-09 field called error", text(hello) + `error: {"code":500,"message":"boom"}` + "\n\n", want{text: hello, kind: failed, message: "boom"}},
	{"SSE-10 event: error", text(hello) + "event: error\n" + data(`{"message":"boom"}`), want{text: hello, kind: failed, message: "boom"}},
	{"SSE-10 event: error, no JSON", "event: error\n" + data(`it broke`), want{kind: failed, message: "it broke"}},
	{"SSE-11 JSON error in place of a stream", `{"error":{"message":"boom","type":"server_error"}}`, want{kind: failed, message: "boom"}},
	{"SSE-12 HTML in an event", data("<html>gateway</html>"), want{kind: broken, message: "an HTML page"}},
	{"SSE-12 no JSON in an event", data("nonsense"), want{kind: broken, message: "not JSON"}},
	{"SSE-13 no [DONE]", text(hello) + end("stop"), ok},
	{"SSE-14 data in several lines", "data: {\"choices\":[{\"delta\":\ndata: {\"content\":\"Hello\"},\ndata: \"finish_reason\":\"stop\"}]}\n\n" + fin, ok},
	{"SSE-15 a line over the limit", "data: " + strings.Repeat("x", 33<<20) + "\n\n", want{kind: broken, message: "limit"}},
	{"event of many lines over the limit", strings.Repeat("data: "+strings.Repeat("x", 1<<20)+"\n", 20), want{kind: broken, message: "limit"}},
	{"[DONE] with spaces", text(hello) + end("stop") + "data:  [DONE] \n\n", ok},
	{"id and retry fields", "id: 1\nretry: 5\n" + text(hello) + end("stop") + fin, ok},
	{"nothing at all", "", want{kind: broken, message: "broke off"}},
	{"[DONE] alone", fin, want{kind: broken, message: "empty answer"}},
	{"plain words", "upstream connect error", want{kind: broken, message: "upstream connect error"}},
	{"a page", "<!doctype html><title>502</title>", want{kind: broken, message: "an HTML page"}},
	{
		"whole completion in place of a stream", `{"id":"c1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`,
		want{text: hello, stop: providers.StopEnd, usage: providers.Usage{Known: true, Input: 3, Output: 2}},
	},
	{"bytes that are no UTF-8", text("a\xff\xfeb") + end("stop") + fin, want{text: "a\ufffd\ufffdb", stop: providers.StopEnd}},
	{"half a surrogate pair", text(`a\ud800b`) + end("stop") + fin, want{text: "a\ufffdb", stop: providers.StopEnd}},
}

// The vectors of Chat Completions (design/providers 1.5).
var chatVectors = []vector{
	{"CC-01 content null, missing, empty", ch(`{"role":"assistant","content":null}`, "null") + ch(`{}`, "null") + text("") + text(hello) + end("stop") + fin, ok},
	{"CC-02 usage with empty choices", text(hello) + end("stop") + usageEv + fin, want{text: hello, stop: providers.StopEnd, usage: known}},
	{
		"CC-03 choices null or missing", data(`{"choices":null,"usage":{"prompt_tokens":1,"completion_tokens":1}}`) + data(`{"id":"x"}`) + text(hello) + end("stop") + fin,
		want{text: hello, stop: providers.StopEnd, usage: providers.Usage{Known: true, Input: 1, Output: 1}},
	},
	{"CC-04 no usage", text(hello) + end("stop") + fin, ok},
	{
		"CC-05 usage in every chunk", data(`{"choices":[{"delta":{"content":"Hello"}}],"usage":{"prompt_tokens":10,"completion_tokens":1}}`) +
			data(`{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":4}}`) +
			data(`{"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0}}`) + fin,
		want{text: hello, stop: providers.StopEnd, usage: providers.Usage{Known: true, Input: 10, Output: 4}},
	},
	{
		"CC-05 usage inside the choice", data(`{"choices":[{"delta":{"content":"Hello"},"finish_reason":"stop","usage":{"prompt_tokens":10,"completion_tokens":4,"cached_tokens":6}}]}`) + fin,
		want{text: hello, stop: providers.StopEnd, usage: providers.Usage{Known: true, Input: 10, Output: 4, Cached: 6}},
	},
	{
		"CC-05 DeepSeek's cache numbers", text(hello) + end("stop") + data(`{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":4,"prompt_cache_hit_tokens":6}}`) + fin,
		want{text: hello, stop: providers.StopEnd, usage: providers.Usage{Known: true, Input: 10, Output: 4, Cached: 6}},
	},
	{"CC-06 two calls in a chunk, ids, no index", tc(`{"id":"a","function":{"name":"f","arguments":"{\"p\":1}"}}`, `{"id":"b","function":{"name":"g","arguments":"{}"}}`) + end("tool_calls") + fin, twoCalls},
	{
		"CC-06 the same, without ids", tc(`{"function":{"name":"f","arguments":"{\"p\":"}}`, `{"function":{"name":"g","arguments":"{}"}}`) + tc(`{"function":{"arguments":"1}"}}`) + end("tool_calls") + fin,
		want{stop: providers.StopCalls, warning: "more after", calls: made("call_0", "f", `{"p":`, "call_1", "g", `{}`)},
	},
	{
		"CC-06 the same, in two chunks of two", tc(`{"function":{"name":"f","arguments":"{\"p\":"}}`, `{"function":{"name":"g","arguments":"{"}}`) + tc(`{"function":{"arguments":"1}"}}`, `{"function":{"arguments":"}"}}`) + end("tool_calls") + fin,
		want{stop: providers.StopCalls, calls: made("call_0", "f", `{"p":1}`, "call_1", "g", `{}`)},
	},
	{"CC-07 two calls in two chunks, ids, no index", tc(`{"id":"a","function":{"name":"f","arguments":"{\"p\":1}"}}`) + tc(`{"id":"b","function":{"name":"g","arguments":"{}"}}`) + end("tool_calls") + fin, twoCalls},
	{
		"CC-07 no ids either", tc(`{"function":{"name":"f","arguments":"{\"p\":1}"}}`) + tc(`{"function":{"name":"f","arguments":"{\"p\":2}"}}`) + end("tool_calls") + fin,
		want{stop: providers.StopCalls, calls: made("call_0", "f", `{"p":1}`, "call_1", "f", `{"p":2}`)},
	},
	{"CC-08 index 0 twice, each complete", tc(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"p\":1}"}}`) + tc(`{"index":0,"id":"b","function":{"name":"g","arguments":"{}"}}`) + end("tool_calls") + fin, twoCalls},
	{
		"CC-08 the same tool", tc(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"p\":1}"}}`) + tc(`{"index":0,"id":"b","function":{"name":"f","arguments":"{\"p\":2}"}}`) + end("tool_calls") + fin,
		want{stop: providers.StopCalls, calls: made("a", "f", `{"p":1}`, "b", "f", `{"p":2}`)},
	},
	{"CC-09 a new id with each delta", tc(`{"index":0,"id":"a","function":{"name":"f","arguments":""}}`) + tc(`{"index":0,"id":"x","function":{"arguments":"{\"p\""}}`) + tc(`{"index":0,"id":"y","function":{"arguments":":1}"}}`) + end("tool_calls") + fin, oneCall},
	{"CC-10 id and name in each delta", tc(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"p\""}}`) + tc(`{"index":0,"id":"a","function":{"name":"f","arguments":":1}"}}`) + end("tool_calls") + fin, oneCall},
	{"CC-11 the whole call once more, encoded twice", tc(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"p\":1}"}}`) + tc(`{"index":0,"id":"a","function":{"name":"f","arguments":"\"{\\\"p\\\":1}\""}}`) + end("tool_calls") + fin, oneCall},
	{"CC-11 the whole call once more", tc(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"p\":1}"}}`) + tc(`{"index":0,"function":{"name":"f","arguments":"{\"p\":1}"}}`) + end("tool_calls") + fin, oneCall},
	{
		"CC-12 no id", tc(`{"index":0,"function":{"name":"f","arguments":"{\"p\":1}"}}`) + tc(`{"index":1,"id":"call_0","function":{"name":"g","arguments":"{}"}}`) + end("tool_calls") + fin,
		want{stop: providers.StopCalls, calls: made("call_1", "f", `{"p":1}`, "call_0", "g", `{}`)},
	},
	{"CC-13 continued with empty id and name", tc(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"p\""}}`) + tc(`{"index":0,"id":"","function":{"name":"","arguments":":1}"}}`) + end("tool_calls") + fin, oneCall},
	{"CC-14 index null", tc(`{"index":null,"id":"a","function":{"name":"f","arguments":"{\"p\":1}"}}`) + tc(`{"index":null,"id":"b","function":{"name":"g","arguments":"{}"}}`) + end("tool_calls") + fin, twoCalls},
	{"CC-14 index as text", tc(`{"index":"0","id":"a","function":{"name":"f","arguments":"{\"p\""}}`) + tc(`{"index":"0","function":{"arguments":":1}"}}`) + end("tool_calls") + fin, oneCall},
	{"CC-15 first index is 1", tc(`{"index":1,"id":"a","function":{"name":"f","arguments":"{\"p\":1}"}}`) + end("tool_calls") + fin, oneCall},
	{"CC-16 arguments as an object", tc(`{"index":0,"id":"a","function":{"name":"f","arguments":{"p":1}}}`) + end("tool_calls") + fin, oneCall},
	{
		"CC-17 arguments null, empty, missing", tc(`{"index":0,"id":"a","function":{"name":"f","arguments":null}}`) + tc(`{"index":1,"id":"b","function":{"name":"g","arguments":""}}`) + tc(`{"index":2,"id":"c","function":{"name":"h"}}`) + end("tool_calls") + fin,
		want{stop: providers.StopCalls, calls: made("a", "f", `{}`, "b", "g", `{}`, "c", "h", `{}`)},
	},
	{"CC-17 an empty object first", tc(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`) + tc(`{"index":0,"function":{"arguments":"{\"p\":1}"}}`) + end("tool_calls") + fin, oneCall},
	{"CC-18 arguments cut by length", tc(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"p\":"}}`) + end("length") + fin, want{stop: providers.StopLength, calls: made("a", "f", `{"p":`)}},
	{
		"CC-19 bare line end in the arguments", tc(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"p\":\"x\n\\q\u0001\"}"}}`) + end("tool_calls") + fin,
		want{stop: providers.StopCalls, warning: "mended", calls: made("a", "f", `{"p":"x\n\\q\u0001"}`)},
	},
	{"CC-19 beyond mending", tc(`{"index":0,"id":"a","function":{"name":"f","arguments":"{p:1"}}`) + end("tool_calls") + fin, want{stop: providers.StopCalls, calls: made("a", "f", `{p:1`)}},
	{
		"CC-20 arguments before the name", tc(`{"function":{"arguments":"{\"p\":1}"}}`) + tc(`{"id":"a","function":{"name":"f"}}`) + tc(`{"function":{"arguments":"{\"p\":2}"}}`) + tc(`{"id":"b","function":{"name":"g"}}`) + end("tool_calls") + fin,
		want{stop: providers.StopCalls, calls: made("a", "f", `{"p":1}`, "b", "g", `{"p":2}`)},
	},
	{"CC-21 empty finish reason on the way", ch(`{"content":"Hel"}`, `""`) + ch(`{"content":"lo"}`, `""`) + end("stop") + fin, ok},
	{"CC-22 no finish reason, clean [DONE]", text(hello) + fin, want{text: hello, stop: providers.StopEnd, warning: "no finish reason"}},
	{"CC-22 the same with a whole call", tc(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"p\":1}"}}`) + fin, want{stop: providers.StopCalls, calls: oneCall.calls, warning: "no finish reason"}},
	{"CC-22 the same with half a call", tc(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"p\":"}}`) + fin, want{kind: broken, message: "inside a tool call"}},
	{"CC-23 stop with calls", tc(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"p\":1}"}}`) + end("stop") + fin, oneCall},
	{"CC-24 last piece and finish together", tc(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"p\""}}`) + ch(`{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}`, `"tool_calls"`) + fin, oneCall},
	{"CC-25 chunk id changes", text("Hel") + strings.Replace(text("lo"), `"c1"`, `"c2"`, 1) + end("stop") + fin, ok},
	{"CC-26 error: null", data(`{"error":null,"choices":[{"delta":{"content":"Hello"}}]}`) + end("stop") + fin, ok},
	{"CC-27 error in the stream", text(hello) + data(`{"error":{"message":"boom","type":"server_error","code":"529"}}`), want{text: hello, kind: failed, message: "boom"}},
	{"CC-28 error with empty choices", data(`{"choices":[],"error":{"message":"boom","code":400}}`), want{kind: providers.Invalid, message: "boom"}},
	{"CC-29 error inside the choice", data(`{"choices":[{"delta":{"content":"Hello"},"finish_reason":"error","error":{"message":"boom"}}]}`), want{text: hello, kind: failed, message: "boom"}},
	{"CC-29 finish reason error alone", text(hello) + end("error") + fin, want{text: hello, kind: failed, message: `"error"`}},
	{"CC-30 object: error", data(`{"object":"error","message":"boom","code":404}`), want{kind: providers.NotFound, message: "boom"}},
	{"CC-30 detail", data(`{"detail":"boom"}`), want{kind: failed, message: "boom"}},
	{"CC-31 reasoning_content", ch(`{"reasoning_content":"hm"}`, "null") + text(hello) + end("stop") + fin, want{text: hello, reasoning: "hm", stop: providers.StopEnd}},
	{"CC-31 reasoning", ch(`{"reasoning":"hm"}`, "null") + text(hello) + end("stop") + fin, want{text: hello, reasoning: "hm", stop: providers.StopEnd}},
	{"CC-31 both", ch(`{"reasoning":"hm","reasoning_content":"hm","reasoning_details":[{"type":"reasoning.text","text":"hm"}]}`, "null") + text(hello) + end("stop") + fin, want{text: hello, reasoning: "hm", stop: providers.StopEnd}},
	{"CC-31 details alone", ch(`{"reasoning_details":[{"type":"reasoning.summary","summary":"h"},{"type":"reasoning.encrypted","data":"x"},{"type":"reasoning.text","text":"m"}]}`, "null") + text(hello) + end("stop") + fin, want{text: hello, reasoning: "hm", stop: providers.StopEnd}},
	{"CC-32 both in one delta", ch(`{"content":"Hello","reasoning_content":"hm"}`, "null") + end("stop") + fin, want{text: hello, reasoning: "hm", stop: providers.StopEnd}},
	{"CC-33 think tags", text("<think>x</think>") + end("stop") + fin, want{text: "<think>x</think>", stop: providers.StopEnd}},
	{"CC-34 content in parts", ch(`{"content":[{"type":"text","text":"Hel"},"l",{"type":"text","text":"o"}]}`, "null") + end("stop") + fin, ok},
	{"CC-35 odd types and unknown fields", data(`{"created":1.5,"x":{"y":[1,{"z":"]}"}]},"id":7,"choices":[{"index":0,"logprobs":null,"delta":{"content":"Hello","q":[[]]}}]}`) + data(`{"created":"now","choices":[{"delta":{},"finish_reason":"stop"}]}`) + fin, ok},
	{"CC-37 finishReason in camel case", data(`{"choices":[{"delta":{"content":"Hello"},"finishReason":"STOP","finish_reason":null}]}`) + fin, want{text: hello, stop: providers.StopEnd, warning: "no finish reason"}},
	{"CC-38 refusal", ch(`{"refusal":"I must not."}`, "null") + end("stop") + fin, want{text: "I must not.", stop: providers.StopRefusal}},
	{"finish reason nobody knows", text(hello) + end("gave_up_on_it") + fin, want{text: hello, kind: broken, message: "gave_up_on_it"}},
	{"content filter", text(hello) + end("content_filter") + fin, want{text: hello, stop: providers.StopFilter}},
	{"calls announced, none sent", end("tool_calls") + fin, want{kind: broken, message: "sent none"}},
	{"call without a name", tc(`{"index":0,"id":"a","function":{"arguments":"{}"}}`) + end("tool_calls") + fin, want{kind: broken, message: "without a name"}},
	{"second choice", data(`{"choices":[{"index":1,"delta":{"content":"other"}},{"index":0,"delta":{"content":"Hello"},"finish_reason":"stop"}]}`) + fin, ok},
	{"legacy function_call", ch(`{"function_call":{"name":"f","arguments":"{\"p\":"}}`, "null") + ch(`{"function_call":{"arguments":"1}"}}`, "null") + end("function_call") + fin, want{stop: providers.StopCalls, calls: made("call_0", "f", `{"p":1}`)}},
	{
		"interleaved calls", tc(`{"index":0,"id":"a","function":{"name":"f","arguments":""}}`) + tc(`{"index":1,"id":"b","function":{"name":"g","arguments":"{"}}`) + tc(`{"index":0,"function":{"arguments":"{\"p\":1}"}}`) + tc(`{"index":1,"function":{"arguments":"}"}}`) + end("tool_calls") + usageEv + fin,
		want{stop: providers.StopCalls, calls: twoCalls.calls, usage: known},
	},
}

// Each deviation of a server leads to the right answer or to a clear error, over
// a real connection.
// covers PROV-17
func TestVectors(t *testing.T) {
	c := client(t, Config{Attempts: 1})
	for _, v := range append(append([]vector{}, sseVectors...), chatVectors...) {
		t.Run(v.name, func(t *testing.T) {
			snap := serve(t, events(v.raw))
			check(t, listen(t, c, t.Context(), snap, ask("hi")), v.want)
		})
	}
}

// SSE-17: it does not matter how the network cuts the bytes.
// covers PROV-17
func TestVectorsByteByByte(t *testing.T) {
	for _, v := range append(append([]vector{}, sseVectors...), chatVectors...) {
		if len(v.raw) > 1<<20 {
			continue
		}
		c := client(t, Config{Attempts: 1})
		c.http.Transport = body(func() io.Reader { return oneByte{strings.NewReader(v.raw)} })
		t.Run(v.name, func(t *testing.T) {
			check(t, listen(t, c, t.Context(), snapshot("http://test/v1"), ask("hi")), v.want)
		})
	}
	t.Run("SSE-17 a rune in two reads", func(t *testing.T) {
		c := client(t, Config{Attempts: 1})
		c.http.Transport = body(func() io.Reader { return oneByte{strings.NewReader(text("жук ✓") + end("stop") + fin)} })
		check(t, listen(t, c, t.Context(), snapshot("http://test/v1"), ask("hi")), want{text: "жук ✓", stop: providers.StopEnd})
	})
}

// A stream that is cut anywhere gives an error or the whole answer, never a part
// of one as if it were whole.
// covers PROV-17
func TestCutStreamIsNeverDone(t *testing.T) {
	whole := ": hi\n\n" + ch(`{"reasoning_content":"hm"}`, "null") + text("Hel") + text("lo") +
		tc(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"p\""}}`) +
		tc(`{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}}`) +
		tc(`{"index":0,"function":{"arguments":":1}"}}`) + end("tool_calls") + usageEv + fin
	for name, raw := range map[string]string{
		"LF": whole, "CRLF": strings.ReplaceAll(whole, "\n", "\r\n"), "CR": strings.ReplaceAll(whole, "\n", "\r"),
		"no finish reason": strings.Replace(whole, end("tool_calls"), "", 1),
		"one document":     `{"choices":[{"message":{"content":"Hello","reasoning_content":"hm","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"p\":1}"}},{"id":"b","function":{"name":"g","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			parts := []providers.ToolCall{{ID: "a", Name: "f", Args: `{"p":1}`}, {ID: "b", Name: "g", Args: `{}`}}
			done := 0
			for i := range len(raw) {
				for _, how := range []error{io.EOF, io.ErrUnexpectedEOF} {
					c := New(Config{Attempts: 1})
					c.http.Transport = body(func() io.Reader { return &cutReader{raw[:i], how} })
					h := listen(t, c, t.Context(), snapshot("http://test/v1"), ask("hi"))
					if h.Err != nil {
						if h.Err.Kind != providers.BrokenStream {
							t.Fatalf("cut at %d: kind %q, %v", i, h.Err.Kind, h.Err)
						}
						continue
					}
					done++
					h.Done.Warnings, h.Done.Usage = nil, providers.Usage{}
					check(t, h, want{text: hello, reasoning: "hm", stop: providers.StopCalls, calls: parts})
				}
			}
			if done > 2*len(end("tool_calls")+usageEv+fin)+20 {
				t.Errorf("Done at %d of %d cuts, more than lie behind the finish reason", done, 2*len(raw))
			}
		})
	}
}

// FuzzStream feeds anything at all to reader and assembler.
func FuzzStream(f *testing.F) {
	for _, v := range append(append([]vector{}, sseVectors...), chatVectors...) {
		if len(v.raw) < 4096 {
			f.Add([]byte(v.raw))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		play := func(r io.Reader) heard {
			c := New(Config{Attempts: 1})
			c.http.Transport = body(func() io.Reader { return r })
			return listen(t, c, t.Context(), snapshot("http://test/v1"), ask("hi"))
		}
		a, b := play(bytes.NewReader(raw)), play(oneByte{bytes.NewReader(raw)})
		if a.Order != b.Order || a.Text != b.Text || a.Reasoning != b.Reasoning {
			t.Errorf("the answer depends on how the bytes arrive:\n%+v\n%+v", a, b)
		}
		if a.Done != nil {
			for _, p := range a.Done.Parts {
				if call, ok := p.(providers.ToolCall); ok && (call.ID == "" || call.Name == "" || call.Args == "") {
					t.Errorf("a call with an empty field: %+v", call)
				}
			}
		}
	})
}

// body is a transport that answers 200 with the bytes of a reader.
type body func() io.Reader

func (b body) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	_ = r.Body.Close()
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(b()), Request: r}, context.Cause(r.Context())
}

type oneByte struct{ r io.Reader }

func (o oneByte) Read(p []byte) (int, error) { return o.r.Read(p[:min(len(p), 1)]) }

type cutReader struct {
	s   string
	err error
}

func (c *cutReader) Read(p []byte) (int, error) {
	if c.s == "" {
		return 0, c.err
	}
	n := copy(p, c.s)
	c.s = c.s[n:]
	return n, nil
}
