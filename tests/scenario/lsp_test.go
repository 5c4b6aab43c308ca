package scenario

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/lakecode/lakecode/lsp/wire"
	"github.com/lakecode/lakecode/tests/editor"
)

// The error codes of LSP 3.18 (Base Protocol, Response Message).
const (
	serverNotInitialized = -32002
	invalidRequest       = -32600
	methodNotFound       = -32601
	invalidParams        = -32602
)

func wantCode(t *testing.T, what string, err error, code int) {
	t.Helper()
	var e *editor.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Errorf("%s: got %v, want code %d", what, err, code)
	}
}

// covers ED-8
func TestNoBadInputEndsTheServer(t *testing.T) {
	w := newWorld(t, "say Still here.", map[string]string{"a.txt": "x\n"})
	ed, err := editor.Start(editor.Config{Binary: binary, Dir: w.root, Env: w.env, Offer: map[string]any{"versions": []int{1}, "cards": true, "events": true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ed.Kill)
	w.ed = ed
	wantCode(t, "a request before initialize", ed.Call(wire.ConversationCreate, wire.CreateParams{}, nil), serverNotInitialized)
	w.notify("textDocument/didOpen", map[string]any{"textDocument": 7})
	if _, err := ed.Initialize(w.root); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "a second initialize", ed.Call("initialize", map[string]any{"capabilities": map[string]any{}}, nil), invalidRequest)
	wantCode(t, "an unknown request", ed.Call("foo/bar", nil, nil), methodNotFound)
	wantCode(t, "an unknown $ request", ed.Call("$/foo", nil, nil), methodNotFound)
	wantCode(t, "params of the wrong type", ed.Call(wire.ConversationSubmit, map[string]any{"conversationId": 7}, nil), invalidParams)
	w.notify("foo/note", nil)
	w.notify("$/cancelRequest", map[string]any{"id": nil})
	w.notify("textDocument/didChange", nil)
	w.notify("textDocument/didChange", map[string]any{"textDocument": map[string]any{"uri": "file:///nowhere", "version": 3}, "contentChanges": []any{}})
	body := `{"jsonrpc":"2.0","id":1,`
	for _, raw := range []string{
		fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body),
		"garbage on the wire\r\n",
		"Content-Length: 2\r\n\r\n[]",
		"Content-Length: 4\r\n\r\nnull",
	} {
		if err := ed.Raw([]byte(raw)); err != nil {
			t.Fatal(err)
		}
	}
	uri := editor.FileURI(w.path("a.txt"))
	w.notify("textDocument/didOpen", map[string]any{"textDocument": map[string]any{"uri": uri, "languageId": "text", "version": 5, "text": strings.Repeat("ten megabytes\n", 10<<20/14)}})
	for _, c := range []map[string]any{
		{"version": 4, "line": 0},       // old
		{"version": 6, "line": 1 << 30}, // out of range
	} {
		at := map[string]any{"line": c["line"], "character": 1 << 30}
		w.notify("textDocument/didChange", map[string]any{
			"textDocument":   map[string]any{"uri": uri, "version": c["version"]},
			"contentChanges": []any{map[string]any{"range": map[string]any{"start": at, "end": at}, "text": "x"}},
		})
	}
	if err := os.Remove(w.path("a.txt")); err != nil {
		t.Fatal(err)
	}
	w.notify("textDocument/didClose", map[string]any{"textDocument": map[string]any{"uri": uri}})
	w.manyRequests()
	var res wire.OpenResult
	w.call(wire.ConversationCreate, wire.CreateParams{}, &res)
	w.subscribe(res)
	if end := w.turn("are you there?"); end.How != "completed" {
		t.Errorf("ended as %+v", end)
	}
	w.call("shutdown", nil, nil)
	wantCode(t, "a request after shutdown", ed.Call(wire.SessionList, wire.SessionListParams{}, nil), invalidRequest)
	w.notify("exit", nil)
	<-ed.Exited()
	if code := ed.ExitCode(); code != 0 {
		t.Errorf("exit code %d\n%s", code, ed.Stderr())
	}
}

// manyRequests has 1 000 requests in flight at once.
func (w *world) manyRequests() {
	w.t.Helper()
	var waiting []<-chan editor.Message
	for range 1000 {
		ch, err := w.ed.Go(wire.StateGet, wire.StateGetParams{})
		if err != nil {
			w.t.Fatal(err)
		}
		waiting = append(waiting, ch)
	}
	for _, ch := range waiting {
		if m, ok := <-ch; !ok || m.Error != nil {
			w.t.Fatalf("a request of many: %v %v", ok, m.Error)
		}
	}
}

func TestUnknownModelAndConversationAreNamed(t *testing.T) {
	w := partialWorld(t, "say unused", nil)
	w.open()
	kind, message := w.refused(wire.ConversationSubmit, wire.SubmitParams{ConversationID: w.conv, Text: "hello", Model: wire.Model{Provider: "nobody", Model: "m"}})
	if kind != "badModel" || !strings.Contains(message, "nobody") || !strings.Contains(message, "fake") {
		t.Errorf("unknown connection: %s: %s", kind, message)
	}
	if kind, message := w.refused(wire.ConversationOpen, wire.ConversationParams{ConversationID: "0190b6f0-0000-7000-8000-000000000000"}); kind != "notFound" {
		t.Errorf("unknown session: %s: %s", kind, message)
	}
	if kind, message := w.refused(wire.ConversationOpen, wire.ConversationParams{ConversationID: "../../etc"}); kind != "notFound" {
		t.Errorf("a path as a session: %s: %s", kind, message)
	}
	if kind, message := w.refused(wire.ConversationSubmit, wire.SubmitParams{ConversationID: w.conv, Text: ""}); kind != "badRequest" {
		t.Errorf("empty message: %s: %s", kind, message)
	}
	if kind, message := w.refused(wire.ConversationSubmit, wire.SubmitParams{ConversationID: w.conv, Text: "x", Mode: "plan"}); kind != "unsupported" {
		t.Errorf("mode: %s: %s", kind, message)
	}
}

func TestSessionOpenElsewhereNamesItsOwner(t *testing.T) {
	w := partialWorld(t, "say unused", nil)
	w.open()
	first := w.ed
	w.start()
	kind, message := w.refused(wire.ConversationOpen, wire.ConversationParams{ConversationID: w.conv})
	if kind != "locked" || !strings.Contains(message, fmt.Sprint(first.Pid())) {
		t.Errorf("%s: %s (owner %d)", kind, message, first.Pid())
	}
	first.Kill()
	w.reopen()
}

func TestDamagedSessionIsNamedAndLeftAlone(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(b []byte) []byte
	}{
		{"a flipped byte", func(b []byte) []byte { b[len(b)/2] ^= 1; return b }},
		{"a newer version", func(b []byte) []byte { return []byte(strings.Replace(string(b), " 1\n", " 99\n", 1)) }},
		{"no header", func(b []byte) []byte { return []byte("hello\n") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, "say Hello, long enough to be damaged in the middle.\nend\nsay And again.", nil)
			w.open()
			w.turn("one")
			w.turn("two")
			w.ed.Kill()
			path := w.home + "/sessions/" + w.conv + "/log"
			before := c.damage([]byte(w.log()))
			if string(before) == w.log() {
				t.Fatal("nothing was damaged")
			}
			if err := os.WriteFile(path, before, 0o600); err != nil {
				t.Fatal(err)
			}
			w.start()
			kind, message := w.refused(wire.ConversationOpen, wire.ConversationParams{ConversationID: w.conv})
			if kind != "damaged" || !strings.Contains(message, path) {
				t.Errorf("%s: %s", kind, message)
			}
			if w.log() != string(before) {
				t.Error("the log was changed")
			}
		})
	}
}

// A full disk: the message is refused and stays with the person, or the turn is
// blocked until its save succeeds; what was acknowledged is there afterwards.
func TestFullDiskLosesNothing(t *testing.T) {
	w := newWorld(t, `
		call read_file {"path": "a.txt"}
		end
		say `+strings.Repeat("word ", 30)+`
		end
		say After.`, map[string]string{"a.txt": "hello\n"})
	config, err := os.ReadFile(w.home + "/providers.json")
	if err != nil {
		t.Fatal(err)
	}
	tiny(t, w.home, "512k")
	if err := os.WriteFile(w.home+"/providers.json", config, 0o600); err != nil {
		t.Fatal(err)
	}
	w.open()
	if end := w.turn("one"); end.How != "completed" {
		t.Fatalf("ended as %+v", end)
	}
	filler := w.home + "/filler"
	f, err := os.Create(filler)
	if err != nil {
		t.Fatal(err)
	}
	for { // to the last byte
		if _, err := f.Write(make([]byte, 512)); err != nil {
			break
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	kind, message := w.refused(wire.ConversationSubmit, wire.SubmitParams{ConversationID: w.conv, Text: strings.Repeat("long ", 2000)})
	if kind != "notSaved" {
		t.Errorf("on a full disk: %s: %s", kind, message)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if end := w.turn("two"); end.How != "completed" {
		t.Errorf("after making room: %+v", end)
	}
	w.ed.Kill()
	w.reopen()
	if n := len(w.transcript().Turns); n != 2 {
		t.Errorf("%d turns after all", n)
	}
}
