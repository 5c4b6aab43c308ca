package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// model is a chat server whose answers are written by play: it gets the number
// of the request, from 0, and its body. It does nothing else on the way, so that
// what is measured is the client.
type model struct {
	play func(a *answer, n int, body []byte)
	http *http.Server
	url  string

	mu       sync.Mutex // guards all below
	requests []request
}

type request struct {
	arrived time.Time // the whole body has been read
	ended   time.Time // the answer's last byte has been handed to the kernel
	size    int
}

func newModel(play func(a *answer, n int, body []byte)) (*model, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	m := &model{play: play, url: "http://" + l.Addr().String() + "/v1"}
	m.http = &http.Server{Handler: http.HandlerFunc(m.serve)}
	go func() { _ = m.http.Serve(l) }()
	return m, nil
}

func (m *model) serve(w http.ResponseWriter, r *http.Request) {
	body := make([]byte, max(0, r.ContentLength))
	if r.ContentLength < 0 {
		body, _ = io.ReadAll(r.Body)
	} else if _, err := io.ReadFull(r.Body, body); err != nil {
		return
	}
	arrived := time.Now()
	m.mu.Lock()
	n := len(m.requests)
	m.requests = append(m.requests, request{arrived: arrived, size: len(body)})
	m.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	a := &answer{w: w}
	m.play(a, n, body)
	a.raw("data: [DONE]\n\n")
	a.flush()
	m.mu.Lock()
	m.requests[n].ended = time.Now()
	m.mu.Unlock()
}

func (m *model) take() []request {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.requests
	m.requests = nil
	return r
}

func (m *model) close() { _ = m.http.Close() }

// install writes a providers.json for this model.
func (m *model) install(home string) error {
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	text, err := json.Marshal(map[string]any{"SchemaVersion": 3, "Providers": []any{map[string]any{
		"Id": "bench", "DefinitionId": "openai-compatible", "Name": "Bench", "Revision": 1,
		"BaseUrl": m.url, "Protocol": "ChatCompletions", "ApiKey": "k",
	}}})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(home, "providers.json"), text, 0o600)
}

// answer writes chunks.
type answer struct{ w http.ResponseWriter }

func (a *answer) raw(s string) { _, _ = io.WriteString(a.w, s) }

func (a *answer) flush() { a.w.(http.Flusher).Flush() }

const chunkHead = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":`

func (a *answer) text(s string) {
	q, _ := json.Marshal(s)
	a.raw(chunkHead + `{"content":` + string(q) + "},\"finish_reason\":null}]}\n\n")
}

func (a *answer) say(s string) {
	a.text(s)
	a.raw(chunkHead + "{},\"finish_reason\":\"stop\"}]}\n\n")
}

func (a *answer) call(n int, tool string, args map[string]any) {
	raw, _ := json.Marshal(args)
	q, _ := json.Marshal(string(raw))
	a.raw(chunkHead + fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"call_%d","type":"function","function":{"name":%q,"arguments":%s}}]},"finish_reason":null}]}`, n, tool, q) + "\n\n")
	a.raw(chunkHead + "{},\"finish_reason\":\"tool_calls\"}]}\n\n")
}

// lines is a text of about n bytes in lines of 64.
func lines(n int) string {
	return strings.Repeat(strings.Repeat("x", 63)+"\n", n/64)
}
