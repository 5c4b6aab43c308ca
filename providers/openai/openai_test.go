package openai

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/lakecode/lakecode/providers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testKey = "sk-canary-0123456789abcdefWXYZ"

// heard is what a consumer of Stream saw.
type heard struct {
	Text, Reasoning string
	Done            *providers.Done
	Err             *providers.Error
	Retries         []providers.Retrying
	Calls           []providers.CallDelta
	Order           string // t, r, c, R, D or E for each thing that came
}

func listen(t testing.TB, c *Client, ctx context.Context, snap providers.Snapshot, req providers.Request) heard {
	t.Helper()
	var h heard
	for d, err := range c.Stream(ctx, snap, req) {
		if h.Done != nil || h.Err != nil {
			t.Fatalf("the stream went on after its end with %#v, %v", d, err)
		}
		if err != nil {
			if !errors.As(err, &h.Err) {
				t.Fatalf("error of type %T: %v", err, err)
			}
			h.Order += "E"
			continue
		}
		switch d := d.(type) {
		case providers.TextDelta:
			h.Text += d.Text
			h.Order += "t"
		case providers.ReasoningDelta:
			h.Reasoning += d.Text
			h.Order += "r"
		case providers.CallDelta:
			h.Calls = append(h.Calls, d)
			h.Order += "c"
		case providers.Retrying:
			h.Retries = append(h.Retries, d)
			h.Order += "R"
		case providers.Done:
			h.Done = &d
			h.Order += "D"
		}
	}
	if (h.Done == nil) == (h.Err == nil) {
		t.Fatalf("a stream must end with Done or an error, got %+v", h)
	}
	return h
}

// serve runs a real server and returns a snapshot that points at it.
func serve(t testing.TB, h http.HandlerFunc) providers.Snapshot {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return snapshot(srv.URL + "/v1")
}

func snapshot(base string) providers.Snapshot {
	return providers.Snapshot{
		Provider: "local", Name: "Local server", Protocol: providers.ChatCompletions,
		BaseURL: base, Model: "m", Key: providers.NewSecret(testKey),
	}
}

func client(t testing.TB, cfg Config) *Client {
	t.Helper()
	c := New(cfg)
	t.Cleanup(c.Close)
	return c
}

func ask(text string) providers.Request {
	return providers.Request{Messages: []*providers.Message{{Role: providers.User, Parts: []providers.Part{providers.Text{Text: text}}}}}
}

// events answers with a stream whose raw bytes are given.
func events(raw string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, raw)
	}
}

func data(s string) string { return "data: " + s + "\n\n" }

// ch is a chunk with one choice; fin is JSON.
func ch(delta, fin string) string {
	return data(`{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + fin + `}]}`)
}

// tc is a chunk with pieces of tool calls.
func tc(pieces ...string) string {
	return ch(`{"tool_calls":[`+strings.Join(pieces, ",")+`]}`, "null")
}

const (
	hello   = "Hello"
	fin     = "data: [DONE]\n\n"
	usageEv = `data: {"id":"c1","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":4,"total_tokens":14,"prompt_tokens_details":{"cached_tokens":6},"completion_tokens_details":{"reasoning_tokens":1}}}` + "\n\n"
)

func text(s string) string { return ch(`{"content":"`+s+`"}`, "null") }
func end(why string) string {
	return ch(`{}`, `"`+why+`"`)
}

// want is what a vector must lead to. A kind means an error of that kind.
type want struct {
	text, reasoning string
	calls           []providers.ToolCall
	stop            providers.Stop
	usage           providers.Usage
	warning         string // a piece of one of the warnings; "" for none
	kind            providers.Kind
	message         string // a piece of the error's text
}

// check compares what was heard with what was wanted.
func check(t *testing.T, h heard, w want) {
	t.Helper()
	if h.Text != w.text || h.Reasoning != w.reasoning {
		t.Errorf("text %q, reasoning %q, want %q and %q", h.Text, h.Reasoning, w.text, w.reasoning)
	}
	if w.kind != "" {
		if h.Err == nil {
			t.Fatalf("Done %+v, want an error of kind %q", h.Done, w.kind)
		}
		if h.Err.Kind != w.kind || !strings.Contains(h.Err.Error(), w.message) {
			t.Errorf("error %q of kind %q, want kind %q and %q in it", h.Err, h.Err.Kind, w.kind, w.message)
		}
		if s := h.Err.Error() + h.Err.Next; strings.Contains(s, testKey) || strings.ContainsAny(s, "\n\r") {
			t.Errorf("the text of the error holds the key or a line end: %q", s)
		}
		return
	}
	if h.Err != nil {
		t.Fatalf("error %v (%s), want Done", h.Err, h.Err.Kind)
	}
	var parts []providers.Part
	if w.reasoning != "" {
		parts = append(parts, providers.Reasoning{Text: w.reasoning, Field: h.field()})
	}
	if w.text != "" {
		parts = append(parts, providers.Text{Text: w.text})
	}
	for _, c := range w.calls {
		parts = append(parts, c)
	}
	if diff := cmp.Diff(parts, h.Done.Parts); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
	if h.Done.Stop != w.stop || h.Done.Usage != w.usage {
		t.Errorf("stop %q usage %+v, want %q and %+v", h.Done.Stop, h.Done.Usage, w.stop, w.usage)
	}
	warned := strings.Join(h.Done.Warnings, "\n")
	if w.warning == "" && warned != "" || !strings.Contains(warned, w.warning) {
		t.Errorf("warnings %q, want %q", warned, w.warning)
	}
}

func (h heard) field() string {
	for _, p := range h.Done.Parts {
		if r, ok := p.(providers.Reasoning); ok {
			return r.Field
		}
	}
	return ""
}
