package server

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lakecode/lakecode/agent"
	"github.com/lakecode/lakecode/lsp/wire"
)

const withProgress = `{"window":{"workDoneProgress":true}}`

func turn(c *fakeConv) {
	c.publish(
		agent.TurnStarted{Text: "fix the test\nplease"},
		agent.CallProposed{Call: "c1", Tool: "bash", Title: "go test"},
		agent.TurnFinished{How: "completed"},
	)
}

func TestRunningTurnIsShownAsProgress(t *testing.T) {
	e := serve(t, withProgress)
	turn(e.conversation())
	isEnd := func(m message) bool {
		return m.Method == "$/progress" && strings.Contains(string(m.Params), `"kind":"end"`)
	}
	e.await("end", isEnd)
	var got []string
	for _, m := range e.messages() {
		switch m.Method {
		case "window/workDoneProgress/create":
			got = append(got, "create "+string(m.Params))
		case "$/progress":
			got = append(got, string(m.Params))
		}
	}
	want := []string{
		`create {"token":"lakecode/s1/t1"}`,
		`{"token":"lakecode/s1/t1","value":{"cancellable":true,"kind":"begin","message":"fix the test","title":"Lakecode"}}`,
		`{"token":"lakecode/s1/t1","value":{"cancellable":true,"kind":"report","message":"bash go test"}}`,
		`{"token":"lakecode/s1/t1","value":{"kind":"end"}}`,
	}
	if len(got) == len(want)-1 { // the end may overtake a report that was not shown yet
		want = append(want[:2], want[3])
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestProgressIsNotShownTwice(t *testing.T) {
	e := serve(t, `{"window":{"workDoneProgress":true},"experimental":{"lakecode":{"versions":[1],"events":true}}}`)
	c := e.conversation()
	turn(c)
	begins := func(title string) (n int) {
		for _, m := range e.messages() {
			if m.Method == "$/progress" && strings.Contains(string(m.Params), `"kind":"begin","message":"`+title) {
				n++
			}
		}
		return n
	}
	eventually(t, "the turn", func() bool { return begins("fix") == 1 })
	e.ok(wire.ConversationSubscribe, `{"conversationId":"s1","epoch":"epoch-1"}`)
	e.event(wire.KindTurnFinished)
	c.publish(agent.TurnStarted{Text: "next"})
	eventually(t, "the next turn", func() bool { return begins("next") == 1 })
	if n := begins("fix"); n != 1 {
		t.Errorf("the first turn was shown %d times", n)
	}
}

func TestEditorWithoutProgressIsNotAsked(t *testing.T) {
	e := serve(t, full)
	c := e.conversation()
	e.ok(wire.ConversationSubscribe, `{"conversationId":"s1"}`)
	turn(c)
	e.event(wire.KindTurnFinished)
	e.alive()
	for _, m := range e.messages() {
		if m.Method != "" && m.ID != nil || m.Method == "$/progress" {
			t.Errorf("%s", m.Method)
		}
	}
}

func TestEditorThatIgnoresProgressHoldsNothingUp(t *testing.T) {
	e := serve(t, `{"window":{"workDoneProgress":true},"experimental":{"lakecode":{"versions":[1],"events":true}}}`)
	p := e.srv.present
	p.wait = time.Second
	e.mu.Lock()
	e.mute = true
	e.mu.Unlock()
	c := e.conversation()
	e.ok(wire.ConversationSubscribe, `{"conversationId":"s1"}`)
	turn(c)
	e.event(wire.KindTurnFinished)
	if p.mu.Lock(); p.off {
		t.Error("the events waited for the progress")
	}
	p.mu.Unlock()
	eventually(t, "the end of asking", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.off
	})
	turn(c)
	c.publish(agent.Retrying{Attempt: 1})
	e.event(wire.KindRetrying)
	asked := 0
	for _, m := range e.messages() {
		if m.Method == "window/workDoneProgress/create" {
			asked++
		}
	}
	if asked != 1 {
		t.Errorf("it was asked %d times", asked)
	}
	if p.mu.Lock(); len(p.queue) > 0 || len(p.stop) > 0 {
		t.Errorf("%d steps wait for nobody, %d stops", len(p.queue), len(p.stop))
	}
	p.mu.Unlock()
}

func TestPersonStopsATurnByItsProgress(t *testing.T) {
	e := serve(t, withProgress)
	c := e.conversation()
	c.publish(agent.TurnStarted{Text: "x"})
	e.await("begin", func(m message) bool { return m.Method == "$/progress" })
	e.notify("window/workDoneProgress/cancel", `{"token":"lakecode/s1/t1"}`)
	eventually(t, "the stop", func() bool { return len(c.commands()) == 1 })
	if d := cmp.Diff([]agent.Command{agent.Stop{}}, c.commands()); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestPlainEditorIsToldWhatAPersonMustKnow(t *testing.T) {
	e := serve(t, `{}`)
	c := e.conversation()
	c.publish(
		agent.Notice{Level: "info", Text: "by the way"},
		agent.Notice{Level: "warning", Text: "look out"},
		agent.TurnFinished{How: "failed", Error: &agent.Failure{Kind: "auth", Message: "The key is wrong.", Next: "Set another one."}},
	)
	e.await("failure", func(m message) bool {
		return m.Method == "window/showMessage" && strings.Contains(string(m.Params), "Set another one")
	})
	var got []string
	for _, m := range e.messages() {
		if strings.HasPrefix(m.Method, "window/") {
			got = append(got, m.Method+" "+string(m.Params))
		}
	}
	want := []string{
		`window/showMessage {"type":2,"message":"look out"}`,
		`window/logMessage {"type":1,"message":"Lakecode: The key is wrong. Set another one."}`,
		`window/showMessage {"type":1,"message":"Lakecode: The key is wrong. Set another one."}`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestStatusFollowsTheConversations(t *testing.T) {
	e := serve(t, `{"experimental":{"serverStatusNotification":true,"lakecode":{"versions":[1],"events":true}}}`)
	status := func(want wire.Status) {
		t.Helper()
		e.await(fmt.Sprintf("status %+v", want), func(m message) bool {
			var got wire.Status
			return m.Method == wire.StatusNote && json.Unmarshal(m.Params, &got) == nil && got == want
		})
	}
	c := e.conversation()
	status(wire.Status{Health: "ok"})
	c.publish(agent.StateChanged{State: agent.State{Phase: agent.Running, Interaction: &agent.Interaction{ID: "i"}}})
	status(wire.Status{Health: "ok", ActiveTurns: 1, PendingInteractions: 1})
	c.publish(agent.StateChanged{State: agent.State{Phase: agent.Stuck, Blocked: "disk full"}})
	status(wire.Status{Health: "error", Message: "disk full"})
	e.await("serverStatus", func(m message) bool {
		return m.Method == "experimental/serverStatus" && string(m.Params) == `{"health":"error","quiescent":true,"message":"disk full"}`
	})
	e.host.set(func(h *fakeHost) {
		h.models = func(context.Context) (agent.Catalog, error) { return agent.Catalog{Problem: "no providers"}, nil }
	})
	e.ok(wire.ConversationClose, `{"conversationId":"s1"}`)
	e.ok(wire.ModelList, `{}`)
	status(wire.Status{Health: "warning", Message: "no providers"})
}

func TestProblemWithProvidersIsToldFromTheStart(t *testing.T) {
	e := connect(t).listen()
	answer := func(context.Context) (agent.Catalog, error) {
		return agent.Catalog{Problem: "providers.json is damaged."}, nil
	}
	e.host.set(func(h *fakeHost) { h.models = answer })
	e.ok("initialize", `{"capabilities":{}}`)
	e.notify("initialized", `{}`)
	e.await("message", func(m message) bool {
		return m.Method == "window/showMessage" && strings.Contains(string(m.Params), "damaged")
	})
}

func TestConversationsOpenAndClose(t *testing.T) {
	e := serve(t, full)
	c := e.conversation()
	var opened wire.OpenResult
	into(t, e.ok(wire.ConversationOpen, `{"conversationId":"s1"}`), &opened) // again: the same one
	if opened.ConversationID != "s1" || opened.State.Epoch != "epoch-1" || opened.State.Cwd != "/ws" {
		t.Errorf("%+v", opened)
	}
	if c.mu.Lock(); c.humans != 1 {
		t.Errorf("%d humans", c.humans)
	}
	c.mu.Unlock()
	var states wire.StateGetResult
	into(t, e.ok(wire.StateGet, `{}`), &states)
	if len(states.States) != 1 || states.States[0].ConversationID != "s1" {
		t.Errorf("%+v", states)
	}
	if got := e.ok(wire.ConversationClose, `{"conversationId":"s1"}`); string(got) != "{}" {
		t.Errorf("close: %s", got)
	}
	if c.mu.Lock(); c.humans != 0 || !c.closed {
		t.Errorf("%d humans, closed %v", c.humans, c.closed)
	}
	c.mu.Unlock()
	e.fails(wire.CodeNotFound, "s1", wire.ConversationStop, `{"conversationId":"s1"}`)
	e.fails(wire.CodeNotFound, "s1", wire.StateGet, `{"conversationId":"s1"}`)
}

func TestOnlyAnEditorWithCardsCountsAsAPerson(t *testing.T) {
	for offer, want := range map[string]int{full: 1, `{"experimental":{"lakecode":{"versions":[1],"events":true}}}`: 0, `{}`: 0} {
		c := serve(t, offer).conversation()
		if c.mu.Lock(); c.humans != want {
			t.Errorf("%s: %d humans", offer, c.humans)
		}
		c.mu.Unlock()
	}
}

func TestCommandsMirrorTheRequests(t *testing.T) {
	e := serve(t, `{}`)
	run := func(command, argument string) json.RawMessage {
		t.Helper()
		return e.ok("workspace/executeCommand", fmt.Sprintf(`{"command":%q,"arguments":[%s]}`, command, argument))
	}
	var opened wire.OpenResult
	into(t, run("lakecode.conversation.create", `{"cwd":"/there"}`), &opened)
	c := e.host.conv(opened.ConversationID)
	c.do = func(context.Context, agent.Command) (agent.Receipt, error) {
		return agent.Receipt{RequestID: "t1", Seq: 4, Queued: true}, nil
	}
	got := run("lakecode.conversation.submit", `{"conversationId":"s1","text":"a","mode":"plan","model":{"provider":"p","model":"m"},"clientRequestId":"r"}`)
	if string(got) != `{"turnId":"t1","seq":4,"queued":true}` {
		t.Errorf("%s", got)
	}
	run("lakecode.interaction.resolve", quote(`{"conversationId":"s1","interactionId":"i","chosen":[1],"text":"t","skip":true}`))
	run("lakecode.queue.remove", `{"conversationId":"s1","messageId":"q"}`)
	run("lakecode.queue.resume", `{"conversationId":"s1"}`)
	run("lakecode.conversation.retrySave", `{"conversationId":"s1"}`)
	run("lakecode.conversation.stop", `{"conversationId":"s1"}`)
	e.ok("workspace/executeCommand", `{"command":"lakecode.session.list"}`)
	want := []agent.Command{
		agent.Submit{Text: "a", Mode: agent.Plan, Model: agent.Choice{Provider: "p", Model: "m"}, ClientRequestID: "r"},
		agent.Resolve{Interaction: "i", Decision: agent.Decision{Chosen: []int{1}, Text: "t", Skip: true}},
		agent.DropQueued{ID: "q"},
		agent.ResumeQueue{},
		agent.RetrySave{},
		agent.Stop{},
	}
	if d := cmp.Diff(want, c.commands()); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestListsAndPages(t *testing.T) {
	e := serve(t, full)
	e.conversation()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var asked []string
	answer := func(_ context.Context, root string) ([]agent.SessionInfo, error) {
		asked = append(asked, root)
		return []agent.SessionInfo{{ID: "s9", Root: "/ws", Title: "t", Created: at, Updated: at, Turns: 2, Queued: 1, Open: true}}, nil
	}
	e.host.set(func(h *fakeHost) { h.sessions = answer })
	catalog := func(context.Context) (agent.Catalog, error) {
		return agent.Catalog{Models: []agent.ModelInfo{{Choice: agent.Choice{Provider: "p", Model: "m"}, ProviderName: "P", Context: 8, Known: true}}}, nil
	}
	e.host.set(func(h *fakeHost) { h.models = catalog })
	for _, tt := range []struct{ method, params, want string }{
		{wire.SessionList, `{}`, `{"sessions":[{"conversationId":"s9","cwd":"/ws","title":"t","created":"2026-01-02T03:04:05Z","updated":"2026-01-02T03:04:05Z","turns":2,"queued":1,"open":true}]}`},
		{wire.ModelList, `{}`, `{"models":[{"model":{"provider":"p","model":"m"},"providerName":"P","contextTokens":8,"known":true}]}`},
	} {
		if d := cmp.Diff(tt.want, string(e.ok(tt.method, tt.params))); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.method, d)
		}
	}
	e.ok(wire.SessionList, `{"all":true}`)
	e.ok(wire.SessionList, `{"cwd":"file:///other"}`)
	if d := cmp.Diff([]string{"/ws", "", "/other"}, asked); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	var page wire.TranscriptResult
	into(t, e.ok(wire.ConversationTranscript, `{"conversationId":"s1","before":"t7","limit":20}`), &page)
	if len(page.Turns) != 1 || page.Turns[0].Text != "t7/20" || !page.More || page.State.ConversationID != "s1" || page.Turns[0].Items == nil {
		t.Errorf("%+v", page)
	}
}
