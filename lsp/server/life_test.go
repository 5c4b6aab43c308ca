package server

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lakecode/lakecode/agent"
	"github.com/lakecode/lakecode/lsp/wire"
)

type initialized struct {
	ServerInfo   struct{ Name, Version string }
	Capabilities struct {
		PositionEncoding       string
		TextDocumentSync       json.RawMessage
		ExecuteCommandProvider struct{ Commands []string }
		Experimental           struct{ Lakecode *wire.Answer }
	}
}

// covers ED-8 partly
func TestRealEditorsAreGreeted(t *testing.T) {
	encodings := map[string]string{
		"emacs-30.1-eglot.json": "utf-8", "helix-25.01.1.json": "utf-8", "helix-25.07.1.json": "utf-8",
		"nvim-0.7.2.json": "utf-16", "nvim-0.10.4.json": "utf-16", "nvim-0.12.4.json": "utf-8",
		"vscode-1.139.1-languageclient-11.0.0.json": "utf-16",
	}
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) != len(encodings) {
		t.Fatalf("%d recordings, want %d (%v)", len(files), len(encodings), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var params map[string]any
			into(t, data, &params)
			params["processId"] = os.Getpid() // that of the recording may be anybody's here
			if data, err = json.Marshal(params); err != nil {
				t.Fatal(err)
			}
			e := connect(t).listen()
			var got initialized
			into(t, e.ok("initialize", string(data)), &got)
			if got.Capabilities.PositionEncoding != encodings[filepath.Base(file)] {
				t.Errorf("position encoding %s", got.Capabilities.PositionEncoding)
			}
			if got.ServerInfo.Name != "lakecode" || got.ServerInfo.Version != "1.2.3" {
				t.Errorf("server info %+v", got.ServerInfo)
			}
			if d := cmp.Diff(`{"openClose":true,"change":2,"save":{}}`, string(got.Capabilities.TextDocumentSync)); d != "" {
				t.Errorf("sync (-want +got):\n%s", d)
			}
			if got.Capabilities.Experimental.Lakecode != nil {
				t.Error("an editor that offered nothing got an answer to an offer")
			}
			e.notify("initialized", `{}`)
			e.conversation()
			if d := cmp.Diff([]string{"/ws"}, e.host.roots); d != "" {
				t.Errorf("root (-want +got):\n%s", d)
			}
		})
	}
}

func TestOfferIsTakenFromBothPlaces(t *testing.T) {
	want := &wire.Answer{Version: 1, Features: wire.Features()}
	for _, params := range []string{
		`{"capabilities":{"experimental":{"lakecode":{"versions":[2,1]}}}}`,
		`{"capabilities":{},"initializationOptions":{"lakecode":{"versions":[1],"cards":true}}}`,
		`{"capabilities":{"experimental":[]},"initializationOptions":{"lakecode":{"versions":[1],"new":{}}}}`,
	} {
		e := connect(t).listen()
		var got initialized
		into(t, e.ok("initialize", params), &got)
		if d := cmp.Diff(want, got.Capabilities.Experimental.Lakecode); d != "" {
			t.Errorf("%s (-want +got):\n%s", params, d)
		}
	}
}

func TestEditorWithoutCommonVersionIsToldOnce(t *testing.T) {
	for _, offer := range []string{`{"versions":[7]}`, `{}`, `{"versions":"1"}`, `[]`} {
		e := connect(t).listen()
		var got initialized
		into(t, e.ok("initialize", `{"rootPath":"/ws","capabilities":{"experimental":{"lakecode":`+offer+`}}}`), &got)
		if got.Capabilities.Experimental.Lakecode != nil {
			t.Errorf("%s was answered", offer)
		}
		e.await("showMessage", func(m message) bool { return m.Method == "window/showMessage" })
		e.notify("initialized", `{}`)
		c := e.conversation()
		c.publish(agent.StateChanged{State: agent.State{Phase: agent.Running}})
		e.alive()
		told := 0
		for _, m := range e.messages() {
			if m.Method == "window/showMessage" {
				told++
			} else if strings.HasPrefix(m.Method, "lakecode/") {
				t.Errorf("%s: %s went to an editor that does not know it", offer, m.Method)
			}
		}
		if told != 1 {
			t.Errorf("%s: told %d times", offer, told)
		}
	}
}

// covers ED-8 partly
func TestRequestsOutsideOfTheLifeCycleAreRefused(t *testing.T) {
	e := connect(t).listen()
	e.notify("textDocument/didOpen", `{"textDocument":{"uri":"file:///ws/a","version":1,"text":"a"}}`)
	e.notify("initialized", `{}`)
	e.fails(wire.ServerNotInitialized, "initialize", wire.SessionList, `{}`)
	e.fails(wire.ServerNotInitialized, "initialize", "shutdown", `null`)
	e.fails(wire.InvalidParams, "capabilities.window.workDoneProgress", "initialize", `{"capabilities":{"window":{"workDoneProgress":"yes"}}}`)
	e.ok("initialize", `{"capabilities":{},"rootUri":null,"workspaceFolders":null}`)
	e.fails(wire.InvalidRequest, "second time", "initialize", `{"capabilities":{}}`)
	if docs := e.docs.Docs(); len(docs) != 0 {
		t.Errorf("a document from before initialize: %v", docs)
	}
	if got := e.ok("shutdown", `null`); string(got) != "null" {
		t.Errorf("shutdown: %s", got)
	}
	e.fails(wire.InvalidRequest, "shutdown", wire.SessionList, `{}`)
	e.notify("textDocument/didOpen", `{"textDocument":{"uri":"file:///ws/a","version":1,"text":"a"}}`)
	e.notify("exit", `null`)
	e.wait()
	if !e.clean || e.err != nil {
		t.Errorf("clean %v, error %v", e.clean, e.err)
	}
	if docs := e.docs.Docs(); len(docs) != 0 {
		t.Errorf("a document from after shutdown: %v", docs)
	}
}

func TestEndWithoutShutdownIsNotClean(t *testing.T) {
	ends := map[string]func(*editor){
		"exit":                func(e *editor) { e.notify("exit", `null`) },
		"end of input":        func(e *editor) { e.to.Close() },
		"end inside a header": func(e *editor) { e.raw("Content-Le"); e.to.Close() },
		"end inside a body":   func(e *editor) { e.raw("Content-Length: 10\r\n\r\n{"); e.to.Close() },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			e := serve(t, full)
			c := e.conversation()
			end(e)
			e.wait()
			if e.clean || e.err != nil {
				t.Errorf("clean %v, error %v", e.clean, e.err)
			}
			if c.mu.Lock(); c.humans != 0 || c.closed {
				t.Errorf("%d humans left, closed %v", c.humans, c.closed)
			}
			c.mu.Unlock()
		})
	}
}

func TestContextEndsTheConnection(t *testing.T) {
	e := serve(t, full)
	e.conversation()
	stop := errors.New("told to stop")
	e.stop(stop)
	e.wait()
	if !errors.Is(e.err, stop) || e.clean {
		t.Errorf("error %v, clean %v", e.err, e.clean)
	}
}

func TestEditorThatCannotBeWrittenToEndsTheConnection(t *testing.T) {
	e := serve(t, full)
	e.from.CloseWithError(errors.New("broken pipe"))
	e.request(wire.StateGet, `{}`)
	e.wait()
	if e.err == nil || !strings.Contains(e.err.Error(), "broken pipe") {
		t.Errorf("error %v", e.err)
	}
}

// covers ED-7 partly
func TestDeathOfTheEditorsProcessEndsTheConnection(t *testing.T) {
	parent := exec.Command("cat")
	hold, err := parent.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	e := connect(t).listen()
	pid, err := json.Marshal(parent.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	e.ok("initialize", `{"processId":`+string(pid)+`,"capabilities":{}}`)
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	died := time.Now()
	_ = parent.Wait() // it was killed
	e.wait()
	if d := time.Since(died); d > 3*2*time.Second {
		t.Errorf("it took %v", d)
	}
	if n := e.logs.FilterMessage("connection ends").FilterField(errorField(errParentGone)).Len(); n != 1 {
		t.Errorf("the cause was not logged: %v", e.logs.All())
	}
}

func TestProcessThatCannotBeSeenIsNotWatched(t *testing.T) {
	e := connect(t).listen()
	e.ok("initialize", `{"processId":2147483646,"capabilities":{}}`)
	e.alive()
	if e.logs.FilterMessage("the editor's process is not visible").Len() != 1 {
		t.Error("it was not logged")
	}
}

func TestWorkspaceFoldersFollowTheEditor(t *testing.T) {
	e := connect(t).listen()
	e.ok("initialize", `{"capabilities":{},"workspaceFolders":[{"uri":"untitled:x"},{"uri":"file:///a%20b"},{"uri":"file:///c"}]}`)
	e.ok(wire.ConversationCreate, `{}`)
	e.notify("workspace/didChangeWorkspaceFolders", `{"event":{"added":[{"uri":"file:///d"}],"removed":[{"uri":"file:///a b"}]}}`)
	e.ok(wire.ConversationCreate, `null`)
	e.ok(wire.ConversationCreate, `{"cwd":"/e/../f"}`)
	e.ok(wire.ConversationCreate, `{"cwd":"file:///g%25"}`)
	e.fails(wire.InvalidParams, "cwd", wire.ConversationCreate, `{"cwd":"relative"}`)
	e.notify("workspace/didChangeWorkspaceFolders", `{"event":{"removed":[{"uri":"file:///c"},{"uri":"file:///d"}]}}`)
	e.fails(wire.InvalidParams, "cwd", wire.ConversationCreate, `{}`)
	if d := cmp.Diff([]string{"/a b", "/c", "/f", "/g%"}, e.host.roots); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}
