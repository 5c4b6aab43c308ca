// Package scenario drives the built binary over standard input and output, as
// an editor does, against the scripted model over real HTTP.
package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lakecode/lakecode/lsp/wire"
	"github.com/lakecode/lakecode/tests/editor"
	"github.com/lakecode/lakecode/tests/fakemodel"
)

// binary is built once, with the race detector when the tests have it.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "lakecode-scenario-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binary = filepath.Join(dir, "lakecode")
	args := append([]string{"build", "-o", binary}, raceFlags...)
	build := exec.Command("go", append(args, "../../cmd/lakecode")...)
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// patience bounds waits for things that happen at once on an idle machine.
const patience = 60 * time.Second

const key = "sk-canary-5f1c0d2b9a"

// world is one test's home, workspace, model and editor.
type world struct {
	t          *testing.T
	home, root string
	env        []string
	model      *fakemodel.Server
	ed         *editor.Editor
	conv       string
	state      wire.State
	at         int // index of the next message to look at
}

// newWorld makes a home and a workspace, and serves the script.
func newWorld(t *testing.T, script string, files map[string]string) *world {
	t.Helper()
	return worldOf(t, fakemodel.Config{Script: script}, files)
}

// partialWorld is newWorld with a script that need not be played to its end.
func partialWorld(t *testing.T, script string, files map[string]string) *world {
	t.Helper()
	return worldOf(t, fakemodel.Config{Script: script, Partial: true}, files)
}

func worldOf(t *testing.T, c fakemodel.Config, files map[string]string) *world {
	t.Helper()
	w := bare(t, files)
	c.Key, c.Canary = key, []string{key}
	w.model = fakemodel.New(t, c)
	w.model.Install(w.home)
	return w
}

// bare makes a home and a workspace without a model.
func bare(t *testing.T, files map[string]string) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{t: t, home: filepath.Join(dir, "home"), root: filepath.Join(dir, "w")}
	w.env = []string{"LAKECODE_HOME=" + w.home, "HOME=" + dir, "PATH=" + os.Getenv("PATH"), "GOCACHE=" + goCache(t), "GOFLAGS=-mod=mod"}
	if err := os.MkdirAll(w.root, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		w.file(name, text)
	}
	return w
}

func goCache(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func (w *world) path(name string) string { return filepath.Join(w.root, name) }

func (w *world) file(name, text string) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(w.path(name)), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(w.path(name), []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) read(name string) string {
	w.t.Helper()
	b, err := os.ReadFile(w.path(name))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(b)
}

// start starts the binary and does the handshake.
func (w *world) start() {
	w.t.Helper()
	ed, err := editor.Start(editor.Config{
		Binary: binary, Dir: w.root, Env: w.env,
		Offer: map[string]any{"versions": []int{wire.Version}, "cards": true, "events": true},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.ed, w.at = ed, 0
	w.t.Cleanup(ed.Kill)
	if _, err := ed.Initialize(w.root); err != nil {
		w.t.Fatal(err)
	}
}

// open starts the binary with a new conversation and subscribes.
func (w *world) open() {
	w.t.Helper()
	w.start()
	var res wire.OpenResult
	w.call(wire.ConversationCreate, wire.CreateParams{}, &res)
	w.subscribe(res)
}

// reopen starts the binary again and opens the conversation.
func (w *world) reopen() {
	w.t.Helper()
	w.start()
	var res wire.OpenResult
	w.call(wire.ConversationOpen, wire.ConversationParams{ConversationID: w.conv}, &res)
	w.subscribe(res)
}

func (w *world) subscribe(res wire.OpenResult) {
	w.t.Helper()
	w.conv, w.state = res.ConversationID, res.State
	w.call(wire.ConversationSubscribe, wire.SubscribeParams{ConversationID: w.conv, SinceSeq: res.State.Seq, Epoch: res.State.Epoch}, nil)
}

func (w *world) call(method string, params, result any) {
	w.t.Helper()
	if err := w.ed.Call(method, params, result); err != nil {
		w.t.Fatalf("%s: %v", method, err)
	}
}

// refused calls and returns the protocol's kind of the refusal.
func (w *world) refused(method string, params any) (kind, message string) {
	w.t.Helper()
	err := w.ed.Call(method, params, nil)
	var e *editor.Error
	if !errors.As(err, &e) {
		w.t.Fatalf("%s: got %v, want a refusal", method, err)
	}
	var data struct{ Kind, Next string }
	if err := json.Unmarshal(e.Data, &data); err != nil {
		w.t.Fatalf("%s: error without data: %v", method, e)
	}
	return data.Kind, strings.TrimSpace(e.Message + " " + data.Next)
}

// submit sends a message and returns its turn.
func (w *world) submit(text string) wire.SubmitResult {
	w.t.Helper()
	var res wire.SubmitResult
	w.call(wire.ConversationSubmit, wire.SubmitParams{ConversationID: w.conv, Text: text, Model: wire.Model{Provider: "fake", Model: "m"}}, &res)
	return res
}

// event is the union of the fields that tests look at.
type event struct {
	Kind, TurnID, ItemID, CallID, Tool, Title, Args, Text, Outcome, How string
	Seq                                                                 uint64
	Interrupted                                                         bool
	Changed                                                             []wire.FileChange
	Interaction                                                         wire.Interaction
	InteractionID                                                       string
	Error                                                               *struct{ Kind, Message, Next string }
}

func eventsOf(m editor.Message) []event {
	if m.Method != wire.EventsNote {
		return nil
	}
	var p struct{ Events []event }
	if json.Unmarshal(m.Params, &p) != nil {
		return nil
	}
	return p.Events
}

// await waits for the next event that ok takes.
func (w *world) await(what string, ok func(event) bool) event {
	w.t.Helper()
	var found event
	_, at, err := w.ed.Wait(w.at, patience, func(m editor.Message) bool {
		for _, e := range eventsOf(m) {
			if ok(e) {
				found = e
				return true
			}
		}
		return false
	})
	if err != nil {
		w.t.Fatalf("waiting for %s: %v", what, err)
	}
	w.at = at - 1 // the batch may hold the next event too
	return found
}

func (w *world) kind(k wire.Kind) event {
	w.t.Helper()
	return w.await(string(k), func(e event) bool { return e.Kind == string(k) })
}

// phase waits for a state that ok takes.
func (w *world) phase(what string, ok func(wire.State) bool) wire.State {
	w.t.Helper()
	var found wire.State
	_, _, err := w.ed.Wait(0, patience, func(m editor.Message) bool {
		if m.Method != wire.StateNote {
			return false
		}
		var s wire.State
		if json.Unmarshal(m.Params, &s) == nil && ok(s) {
			found = s
			return true
		}
		return false
	})
	if err != nil {
		w.t.Fatalf("waiting for the state %s: %v", what, err)
	}
	return found
}

// turn sends a message and waits until its turn has ended and is saved.
func (w *world) turn(text string) event {
	w.t.Helper()
	sent := w.submit(text)
	return w.ended(sent.TurnID)
}

func (w *world) ended(turn string) event {
	w.t.Helper()
	e := w.await("the end of "+turn, func(e event) bool { return e.Kind == string(wire.KindTurnFinished) && e.TurnID == turn })
	w.phase("idle after the turn", func(s wire.State) bool { return s.Phase == "idle" && s.Seq > e.Seq })
	return e
}

// transcript fetches the history.
func (w *world) transcript() wire.TranscriptResult {
	w.t.Helper()
	var res wire.TranscriptResult
	w.call(wire.ConversationTranscript, wire.TranscriptParams{ConversationID: w.conv}, &res)
	return res
}

// calls lists the call items of all turns, for comparison.
func calls(tr wire.TranscriptResult) []string {
	var out []string
	for _, t := range tr.Turns {
		for _, it := range t.Items {
			if it.Kind == "call" {
				out = append(out, it.Tool+" "+it.Outcome)
			}
		}
	}
	return out
}

func wantContains(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%s lacks %q:\n%s", what, p, text)
		}
	}
}
