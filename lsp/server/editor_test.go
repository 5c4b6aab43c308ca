package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lakecode/lakecode/lsp/overlay"
	"github.com/lakecode/lakecode/lsp/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait of a test.
const patience = 60 * time.Second

// full is the offer of an editor with all of it.
const full = `{"experimental":{"lakecode":{"versions":[1],"save":true,"cards":true,"events":true}}}`

// message is any message from the server.
type message struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *struct {
		Code    wire.Code
		Message string
		Data    wire.Error
	}
	at time.Time
}

// editor is the other end of a connection, on raw frames.
type editor struct {
	t    testing.TB
	host *fakeHost
	docs *overlay.Store
	logs *observer.ObservedLogs
	srv  *Server
	to   *io.PipeWriter
	from *io.PipeReader
	stop context.CancelCauseFunc

	next  int
	ended chan struct{} // closed when Serve has returned
	clean bool
	err   error

	mu      sync.Mutex // guards all below
	got     []message
	arrived chan struct{}
	mute    bool // do not answer requests of the server
}

// connect starts a server without saying initialize. Nothing is read from it
// until listen.
func connect(t testing.TB) *editor {
	core, logs := observer.New(zap.InfoLevel)
	e := &editor{
		t: t, host: newFakeHost(), docs: overlay.NewStore(), logs: logs,
		ended: make(chan struct{}), arrived: make(chan struct{}),
	}
	e.srv = New(Config{Host: e.host, Docs: e.docs, Version: "1.2.3", Log: zap.New(core)})
	in, to := io.Pipe()
	from, out := io.Pipe()
	e.to, e.from = to, from
	ctx, stop := context.WithCancelCause(t.Context())
	e.stop = stop
	go func() {
		e.clean, e.err = e.srv.Serve(ctx, in, out)
		close(e.ended)
	}()
	t.Cleanup(func() {
		to.Close()
		from.Close()
		e.wait()
		stop(nil)
	})
	return e
}

// listen reads what the server sends.
func (e *editor) listen() *editor {
	go func() {
		in := bufio.NewReader(e.from)
		for {
			m, err := readMessage(in)
			if err != nil {
				return
			}
			e.mu.Lock()
			mute := e.mute
			e.got = append(e.got, m)
			close(e.arrived)
			e.arrived = make(chan struct{})
			e.mu.Unlock()
			if m.Method != "" && m.ID != nil && !mute {
				e.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":null}`, m.ID))
			}
		}
	}()
	return e
}

func readMessage(in *bufio.Reader) (message, error) {
	head, err := textproto.NewReader(in).ReadMIMEHeader()
	if err != nil {
		return message{}, err
	}
	n, err := strconv.Atoi(head.Get("Content-Length"))
	if err != nil {
		return message{}, err
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(in, body); err != nil {
		return message{}, err
	}
	m := message{at: time.Now()}
	if err := json.Unmarshal(body, &m); err != nil {
		return message{}, fmt.Errorf("%w: %s", err, body)
	}
	return m, nil
}

// serve connects and says initialize with these capabilities (JSON).
func serve(t testing.TB, capabilities string) *editor {
	e := connect(t).listen()
	e.ok("initialize", `{"processId":null,"rootUri":"file:///ws","capabilities":`+capabilities+`}`)
	e.notify("initialized", `{}`)
	return e
}

func frame(body string) string {
	return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)
}

// raw writes bytes to the server.
func (e *editor) raw(data string) {
	e.t.Helper()
	if _, err := io.WriteString(e.to, data); err != nil {
		e.t.Errorf("writing to the server: %v", err)
	}
}

func (e *editor) send(body string) { e.t.Helper(); e.raw(frame(body)) }

func (e *editor) notify(method, params string) {
	e.t.Helper()
	e.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params))
}

// request sends a request and returns its id.
func (e *editor) request(method, params string) string {
	e.t.Helper()
	e.next++
	id := strconv.Itoa(e.next)
	e.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params))
	return id
}

// await returns the first message for which is holds, sent already or not yet.
func (e *editor) await(what string, is func(message) bool) message {
	e.t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for seen := 0; ; {
		e.mu.Lock()
		fresh, arrived := e.got[seen:], e.arrived
		seen = len(e.got)
		e.mu.Unlock()
		for _, m := range fresh {
			if is(m) {
				return m
			}
		}
		select {
		case <-arrived:
		case <-limit.C:
			e.t.Fatalf("no %s came; got:\n%s", what, e.wirelog())
		}
	}
}

func (e *editor) wirelog() string {
	var b strings.Builder
	for _, m := range e.messages() {
		fmt.Fprintf(&b, "  id=%s method=%s params=%.200s result=%.200s error=%+v\n", m.ID, m.Method, m.Params, m.Result, m.Error)
	}
	return b.String()
}

func (e *editor) messages() []message {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.got[:len(e.got):len(e.got)]
}

func (e *editor) response(id string) message {
	e.t.Helper()
	return e.await("response to "+id, func(m message) bool { return m.Method == "" && string(m.ID) == id })
}

// ok sends a request and returns its result.
func (e *editor) ok(method, params string) json.RawMessage {
	e.t.Helper()
	m := e.response(e.request(method, params))
	if m.Error != nil {
		e.t.Fatalf("%s %s: error %d %s", method, params, m.Error.Code, m.Error.Message)
	}
	return m.Result
}

// fails sends a request and checks that it is refused with this code and with a
// message that holds the words.
func (e *editor) fails(code wire.Code, words, method, params string) message {
	e.t.Helper()
	m := e.response(e.request(method, params))
	checkError(e.t, m, code, words)
	return m
}

func checkError(t testing.TB, m message, code wire.Code, words string) {
	t.Helper()
	if m.Error == nil {
		t.Fatalf("want error %d %q, got result %s", code, words, m.Result)
	}
	if m.Error.Code != code || !strings.Contains(m.Error.Message, words) {
		t.Errorf("want error %d with %q, got %d %q", code, words, m.Error.Code, m.Error.Message)
	}
}

// conversation creates one and returns what the agent has of it.
func (e *editor) conversation() *fakeConv {
	e.t.Helper()
	var r wire.OpenResult
	into(e.t, e.ok(wire.ConversationCreate, `{}`), &r)
	return e.host.conv(r.ConversationID)
}

// events returns the events that came so far, and their notifications.
func (e *editor) events() (all []wire.Event, batches []wire.Events) {
	for _, m := range e.messages() {
		if m.Method == wire.EventsNote {
			var b wire.Events
			into(e.t, m.Params, &b)
			batches = append(batches, b)
			all = append(all, b.Events...)
		}
	}
	return all, batches
}

// alive checks that the connection still works.
func (e *editor) alive() {
	e.t.Helper()
	e.ok(wire.StateGet, `{}`)
}

func (e *editor) wait() {
	select {
	case <-e.ended:
	case <-time.After(patience):
		e.t.Error("Serve did not return")
	}
}

func into(t testing.TB, data []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
}

func quote(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err)
	}
	return strings.TrimSpace(b.String())
}

func errorField(err error) zap.Field { return zap.Error(err) }
