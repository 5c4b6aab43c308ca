package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lakecode/lakecode/agent"
	"github.com/lakecode/lakecode/lsp/wire"
)

// covers ED-8 partly
func TestMalformedMessagesAreAnsweredAndSurvived(t *testing.T) {
	tests := []struct {
		name, body string
		id         string // of the answer; empty: there is none
		code       wire.Code
	}{
		{"not JSON", `{"jsonrpc":`, "null", wire.ParseError},
		{"empty", ``, "null", wire.ParseError},
		{"two values", `{"jsonrpc":"2.0","id":1,"method":"x"} {}`, "null", wire.ParseError},
		{"binary", "\x00\xff", "null", wire.ParseError},
		{"a number", `5`, "null", wire.InvalidRequest},
		{"null", `null`, "null", wire.InvalidRequest},
		{"empty object", `{}`, "null", wire.InvalidRequest},
		{"no version", `{"id":91,"method":"lakecode/state/get"}`, "91", wire.InvalidRequest},
		{"other version", `{"jsonrpc":"1.0","id":"a","method":"lakecode/state/get"}`, `"a"`, wire.InvalidRequest},
		{"float id", `{"jsonrpc":"2.0","id":1.5,"method":"lakecode/state/get"}`, "1.5", wire.InvalidRequest},
		{"huge id", `{"jsonrpc":"2.0","id":92233720368547758089,"method":"lakecode/state/get"}`, "92233720368547758089", wire.InvalidRequest},
		{"object id", `{"jsonrpc":"2.0","id":{},"method":"lakecode/state/get"}`, "null", wire.InvalidRequest},
		{"numeric method", `{"jsonrpc":"2.0","id":93,"method":5}`, "93", wire.InvalidRequest},
		{"no method", `{"jsonrpc":"2.0","id":94}`, "94", wire.InvalidRequest},
		{"empty batch", `[]`, "null", wire.InvalidRequest},
		{"batch of rubbish", `[1]`, "null", wire.InvalidRequest},
		{"params are not JSON", `{"jsonrpc":"2.0","id":95,"method":"lakecode/state/get","params":{bad}}`, "95", wire.ParseError},
		{"params are a string", `{"jsonrpc":"2.0","id":96,"method":"lakecode/state/get","params":"x"}`, "96", wire.InvalidParams},
		{"params are an array", `{"jsonrpc":"2.0","id":97,"method":"lakecode/session/list","params":[1]}`, "97", wire.InvalidParams},
		{"unknown method", `{"jsonrpc":"2.0","id":98,"method":"lakecode/no/such"}`, "98", wire.MethodNotFound},
		{"unknown $ request", `{"jsonrpc":"2.0","id":99,"method":"$/foo"}`, "99", wire.MethodNotFound},
		{"unknown notification", `{"jsonrpc":"2.0","method":"lakecode/no/such"}`, "", 0},
		{"unknown $ notification", `{"jsonrpc":"2.0","method":"$/foo","params":5}`, "", 0},
		{"initialized without params", `{"jsonrpc":"2.0","method":"initialized"}`, "", 0},
		{"null id", `{"jsonrpc":"2.0","id":null,"method":"lakecode/state/get"}`, "", 0},
		{"response to nobody", `{"jsonrpc":"2.0","id":4711,"result":1}`, "", 0},
		{"response with both", `{"jsonrpc":"2.0","id":4711,"result":1,"error":{"code":1,"message":"x"}}`, "", 0},
		{"cancel without params", `{"jsonrpc":"2.0","method":"$/cancelRequest"}`, "", 0},
		{"cancel of null", `{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":null}}`, "", 0},
		{"cancel of a float", `{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1e99}}`, "", 0},
		{"didOpen without params", `{"jsonrpc":"2.0","method":"textDocument/didOpen"}`, "", 0},
		{"didChange with rubbish", `{"jsonrpc":"2.0","method":"textDocument/didChange","params":{"textDocument":5}}`, "", 0},
		{"didClose of nothing", `{"jsonrpc":"2.0","method":"textDocument/didClose","params":{"textDocument":{"uri":"file:///x"}}}`, "", 0},
		{"didSave of nothing", `{"jsonrpc":"2.0","method":"textDocument/didSave","params":{"textDocument":{"uri":"file:///x"}}}`, "", 0},
		{"cancel of a progress nobody has", `{"jsonrpc":"2.0","method":"window/workDoneProgress/cancel","params":{"token":3}}`, "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := serve(t, full)
			before := len(e.messages())
			e.send(tt.body)
			if tt.id == "" {
				e.alive()
				for _, m := range e.messages()[before:] {
					if m.Error != nil {
						t.Errorf("it was answered: %+v", m.Error)
					}
				}
				return
			}
			m := e.await("answer", func(m message) bool { return m.Error != nil })
			checkError(t, m, tt.code, "")
			if string(m.ID) != tt.id {
				t.Errorf("id %s, want %s", m.ID, tt.id)
			}
			e.alive()
		})
	}
}

func TestGarbageBetweenMessagesIsSurvived(t *testing.T) {
	e := serve(t, full)
	e.raw("Segmentation fault\n\x1b[31mwarning: x\x1b[0m\n")
	e.alive()
	logged := e.logs.FilterMessage("input that is no message was passed over").All()
	if len(logged) != 1 || logged[0].ContextMap()["bytes"] != int64(len("Segmentation fault\x1b[31mwarning: x\x1b[0m")) {
		t.Errorf("logged %v", logged)
	}
	e.raw("Content-Length: 200000000\r\n\r\n")
	if _, err := io.CopyN(e.to, zeros{}, 200000000); err != nil {
		t.Fatal(err)
	}
	m := e.await("answer", func(m message) bool { return m.Error != nil })
	checkError(t, m, wire.InvalidRequest, "64 MiB")
	e.alive()
}

func TestBatchIsServed(t *testing.T) {
	e := serve(t, full)
	e.send(`[{"jsonrpc":"2.0","id":"a","method":"lakecode/state/get"},{"jsonrpc":"2.0","method":"$/x"},7,{"jsonrpc":"2.0","id":"b","method":"lakecode/session/list"}]`)
	for _, id := range []string{`"a"`, "null", `"b"`} {
		e.response(id)
	}
	e.alive()
}

func TestParamsErrorsNameTheField(t *testing.T) {
	e := serve(t, full)
	id := e.conversation().state.Session
	with := func(more string) string { return fmt.Sprintf(`{"conversationId":%q%s}`, id, more) }
	tests := []struct{ method, params, words string }{
		{wire.ConversationSubmit, `{}`, "conversationId"},
		{wire.ConversationSubmit, with(`,"text":5`), "text must be a string, not a number"},
		{wire.ConversationSubmit, with(`,"text":" "`), "text is empty"},
		{wire.ConversationSubmit, with(`,"text":"x","mode":"yolo"`), "yolo"},
		{wire.ConversationSubmit, with(`,"text":"x","model":{"model":[]}`), "model.model must be a string"},
		{wire.ConversationSubscribe, with(`,"sinceSeq":-1,"epoch":"e"`), "sinceSeq must be a whole number from 0"},
		{wire.ConversationSubscribe, with(`,"sinceSeq":3`), "epoch"},
		{wire.ConversationTranscript, with(`,"limit":201`), "limit"},
		{wire.ConversationRename, with(`,"title":""`), "title"},
		{wire.InteractionResolve, with(``), "interactionId"},
		{wire.InteractionResolve, with(`,"interactionId":"i","chosen":[0,-1]`), "chosen[1]"},
		{wire.QueueRemove, with(``), "messageId"},
		{wire.ConversationOpen, `{}`, "conversationId"},
		{wire.SessionList, `{"cwd":"x"}`, "cwd"},
		{"workspace/executeCommand", `{"command":"rm"}`, `"rm"`},
		{"workspace/executeCommand", `{"command":"lakecode.state.get","arguments":[1,2]}`, "arguments"},
		{"workspace/executeCommand", `{"command":"lakecode.conversation.submit","arguments":["{\"text\":5}"]}`, "text"},
	}
	for _, tt := range tests {
		m := e.fails(wire.InvalidParams, tt.words, tt.method, tt.params)
		if m.Error.Data.Kind != "badRequest" {
			t.Errorf("%s %s: kind %q", tt.method, tt.params, m.Error.Data.Kind)
		}
	}
	if got := e.host.conv(id).commands(); len(got) != 0 {
		t.Errorf("commands were done: %v", got)
	}
}

func TestRefusalsOfTheAgentKeepTheirKind(t *testing.T) {
	e := serve(t, full)
	c := e.conversation()
	for _, tt := range []struct {
		err  error
		code wire.Code
		data wire.Error
	}{
		{agent.Errorf(agent.Busy, "Wait.", "Busy."), wire.CodeBusy, wire.Error{Kind: "busy", Retryable: true, Next: "Wait."}},
		{&agent.Error{Code: agent.NotSaved, Text: "No.", Err: errors.New("disk full")}, wire.CodeNotSaved, wire.Error{Kind: "notSaved", Retryable: true, Detail: "disk full"}},
		{fmt.Errorf("do: %w", agent.Errorf(agent.AlreadyResolved, "", "Done.")), wire.CodeAlreadyResolved, wire.Error{Kind: "alreadyResolved"}},
		{errors.New("odd"), wire.RequestFailed, wire.Error{Kind: "failed"}},
		{context.Canceled, wire.RequestCancelled, wire.Error{Kind: "cancelled", Retryable: true}},
	} {
		c.do = func(context.Context, agent.Command) (agent.Receipt, error) { return agent.Receipt{}, tt.err }
		m := e.fails(tt.code, "", wire.ConversationStop, `{"conversationId":"s1"}`)
		if d := cmp.Diff(tt.data, m.Error.Data); d != "" {
			t.Errorf("%v (-want +got):\n%s", tt.err, d)
		}
	}
	e.fails(wire.CodeNotFound, "not open", wire.ConversationStop, `{"conversationId":"s9"}`)
	e.fails(wire.CodeNotFound, "no session", wire.ConversationOpen, `{"conversationId":"s9"}`)
}

// Every code of the agent has a line in the table of the protocol.
func TestEveryRefusalHasACode(t *testing.T) {
	for _, code := range []agent.Code{
		agent.Busy, agent.Blocked, agent.AlreadyResolved, agent.NoHuman, agent.BadModel, agent.BadRequest,
		agent.NotFound, agent.NotSaved, agent.Locked, agent.Damaged, agent.Closed, agent.Unsupported,
	} {
		got, _, data := ErrorOf(agent.Errorf(code, "", "x"))
		if got == wire.RequestFailed || data.Kind != string(code) {
			t.Errorf("%s: code %d, kind %s", code, got, data.Kind)
		}
	}
}

// covers ED-8 partly
func TestPanicIsAnsweredLoggedAndSurvived(t *testing.T) {
	e := serve(t, full)
	c := e.conversation()
	c.do = func(context.Context, agent.Command) (agent.Receipt, error) { panic("in the lane") }
	e.host.set(func(h *fakeHost) {
		h.sessions = func(context.Context, string) ([]agent.SessionInfo, error) { panic("beside the read loop") }
	})
	m := e.fails(wire.InternalError, "log", wire.ConversationStop, `{"conversationId":"s1"}`)
	if m.Error.Data.Kind != "internal" {
		t.Errorf("kind %q", m.Error.Data.Kind)
	}
	e.fails(wire.InternalError, wire.SessionList, wire.SessionList, `{}`)
	e.srv.methods["test/panic"] = func(context.Context, []byte) (any, waiting, error) { panic("on the read loop") }
	e.srv.notes["test/panic"] = func([]byte) error { panic("in a notification") }
	e.fails(wire.InternalError, "test/panic", "test/panic", `{}`)
	e.notify("test/panic", `{}`)
	c.do = nil
	e.ok(wire.ConversationStop, `{"conversationId":"s1"}`)
	for _, what := range []string{"in the lane", "beside the read loop", "on the read loop", "in a notification"} {
		found := false
		for _, l := range e.logs.All() {
			f := l.ContextMap()
			stack, _ := f["stack"].(string)
			found = found || f["panic"] == what && strings.Contains(stack, "robust_test.go")
		}
		if !found {
			t.Errorf("%s: no log with its stack", what)
		}
	}
}

// covers ED-8 partly
func TestThousandRequestsInFlight(t *testing.T) {
	const n = 1000
	e := serve(t, full)
	release, entered := make(chan struct{}), make(chan struct{}, n)
	answer := func(ctx context.Context, _ string) ([]agent.SessionInfo, error) {
		entered <- struct{}{}
		select {
		case <-release:
		case <-ctx.Done():
		}
		return nil, ctx.Err()
	}
	e.host.set(func(h *fakeHost) { h.sessions = answer })
	ids := make([]string, n)
	for i := range ids {
		ids[i] = e.request(wire.SessionList, `{}`)
	}
	for range n {
		select {
		case <-entered:
		case <-time.After(patience):
			t.Fatal("not all are in flight at once")
		}
	}
	e.alive() // others are still served
	for i, id := range ids {
		if i%2 == 0 {
			e.notify("$/cancelRequest", `{"id":`+id+`}`)
		}
	}
	for i, id := range ids {
		if i%2 == 0 {
			checkError(t, e.response(id), wire.RequestCancelled, "cancelled")
		}
	}
	close(release)
	for i, id := range ids {
		if i%2 == 1 {
			if m := e.response(id); m.Error != nil {
				t.Fatalf("%s: %+v", id, m.Error)
			}
		}
	}
}

func TestRequestsInFlightEndWithTheConnection(t *testing.T) {
	e := serve(t, full)
	entered := make(chan struct{})
	answer := func(ctx context.Context, _ string) ([]agent.SessionInfo, error) {
		close(entered)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	e.host.set(func(h *fakeHost) { h.sessions = answer })
	e.request(wire.SessionList, `{}`)
	<-entered
	e.to.Close()
	e.wait()
}

func TestCancelledCommandIsNotRunLater(t *testing.T) {
	e := serve(t, full)
	c := e.conversation()
	first, release := make(chan struct{}, 1), make(chan struct{})
	c.do = func(context.Context, agent.Command) (agent.Receipt, error) {
		select {
		case first <- struct{}{}:
			<-release
		default:
		}
		return agent.Receipt{}, nil
	}
	stop := e.request(wire.ConversationStop, `{"conversationId":"s1"}`)
	submit := e.request(wire.ConversationSubmit, `{"conversationId":"s1","text":"x"}`)
	last := e.request(wire.ConversationRename, `{"conversationId":"s1","title":"t"}`)
	e.notify("$/cancelRequest", `{"id":`+submit+`}`)
	checkError(t, e.response(submit), wire.RequestCancelled, "")
	close(release)
	e.response(stop)
	e.response(last)
	if d := cmp.Diff([]agent.Command{agent.Stop{}, agent.Rename{Title: "t"}}, c.commands()); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestFullLaneRefusesAndNothingElseWaits(t *testing.T) {
	e := serve(t, full)
	c := e.conversation()
	other := e.conversation()
	release, running := make(chan struct{}), make(chan struct{}, maxLane+1)
	c.do = func(context.Context, agent.Command) (agent.Receipt, error) {
		running <- struct{}{}
		<-release
		return agent.Receipt{}, nil
	}
	params := `{"conversationId":"` + c.state.Session + `"}`
	e.request(wire.ConversationStop, params)
	<-running
	ids := make([]string, maxLane)
	for i := range ids {
		ids[i] = e.request(wire.ConversationStop, params)
	}
	m := e.fails(wire.CodeBusy, strconv.Itoa(maxLane), wire.ConversationStop, params)
	if !m.Error.Data.Retryable {
		t.Error("not retryable")
	}
	e.ok(wire.ConversationStop, `{"conversationId":"`+other.state.Session+`"}`)
	close(release)
	for _, id := range ids {
		e.response(id)
	}
}
