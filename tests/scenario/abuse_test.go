package scenario

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/lakecode/lakecode/lsp/wire"
	"github.com/lakecode/lakecode/tests/editor"
)

func TestConversationOpensAgainWhileItCloses(t *testing.T) {
	w := partialWorld(t, `
		repeat 3 {
			say Working.
			stall
		}`, nil)
	w.open()
	for range 3 {
		w.submit("go")
		w.kind(wire.KindMessageDelta)
		closing, err := w.ed.Go(string(wire.ConversationClose), wire.ConversationParams{ConversationID: w.conv})
		if err != nil {
			t.Fatal(err)
		}
		var res wire.OpenResult
		w.call(wire.ConversationOpen, wire.ConversationParams{ConversationID: w.conv}, &res)
		if m := <-closing; m.Error != nil {
			t.Errorf("close: %v", m.Error)
		}
		if res.State.Phase != "idle" {
			t.Errorf("opened in the phase %s", res.State.Phase)
		}
		w.subscribe(res)
	}
	for _, turn := range w.transcript().Turns {
		if turn.How != "stopped" {
			t.Errorf("a turn ended %s", turn.How)
		}
	}
}

// What waits is in every state, so it must be bounded; what is refused is not
// lost, since the client keeps it.
func TestQueueIsBounded(t *testing.T) {
	w := partialWorld(t, "stall", nil)
	w.open()
	w.submit("go")
	w.kind(wire.KindTurnStarted)
	big := strings.Repeat("x", 1<<20)
	accepted := 0
	for ; accepted < 20; accepted++ {
		err := w.ed.Call(wire.ConversationSubmit, wire.SubmitParams{ConversationID: w.conv, Text: big}, nil)
		var e *editor.Error
		if errors.As(err, &e) {
			wantContains(t, "the refusal", e.Message+string(e.Data), "busy", "at most 4194304")
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if accepted != 4 {
		t.Errorf("%d messages of 1 MiB wait", accepted)
	}
	w.phase("all that wait", func(s wire.State) bool { return len(s.Queue) == accepted })
}

// whole is an answer of n bytes in one fragment, with more members of its delta.
func whole(n int, more string) string {
	return "raw " + strconv.Quote(`data: {"choices":[{"index":0,"delta":{"content":"`+strings.Repeat("x", n)+`"`+more+`},"finish_reason":"stop"}]}`+
		"\n\ndata: [DONE]\n\n") + "\nend\n"
}

func TestLongTurnsComeInPages(t *testing.T) {
	w := newWorld(t, strings.Repeat(whole(3<<20, ""), 4), nil)
	w.open()
	for range 4 {
		sent := w.submit("go")
		w.await("the end", func(e event) bool { return e.Kind == string(wire.KindTurnFinished) && e.TurnID == sent.TurnID })
	}
	seen, before := 0, ""
	for pages := 1; ; pages++ {
		var page wire.TranscriptResult
		w.call(wire.ConversationTranscript, wire.TranscriptParams{ConversationID: w.conv, Before: before}, &page)
		size := 0
		for _, turn := range page.Turns {
			for _, it := range turn.Items {
				size += len(it.Text)
			}
		}
		if size > 16<<20 || len(page.Turns) == 0 {
			t.Fatalf("a page of %d turns and %d bytes", len(page.Turns), size)
		}
		seen += len(page.Turns)
		if !page.More {
			if pages < 2 {
				t.Errorf("all of it came in one page")
			}
			break
		}
		before = page.Turns[0].TurnID
	}
	if seen != 4 {
		t.Errorf("%d turns in all pages", seen)
	}
}

// A home that was mended or made anew is used without a restart of the editor.
func TestHomeCanBeMendedWhileTheServerRuns(t *testing.T) {
	w := newWorld(t, "say Done.", nil)
	good := w.home + ".good"
	if err := errors.Join(os.Rename(w.home, good), os.WriteFile(w.home, []byte("in the way"), 0o600)); err != nil {
		t.Fatal(err)
	}
	w.start()
	kind, message := w.refused(wire.ConversationCreate, wire.CreateParams{})
	if kind != "damaged" {
		t.Errorf("kind %s", kind)
	}
	wantContains(t, "the refusal", message, w.home, "it is not a folder")
	if err := errors.Join(os.Remove(w.home), os.Rename(good, w.home)); err != nil {
		t.Fatal(err)
	}
	var res wire.OpenResult
	w.call(wire.ConversationCreate, wire.CreateParams{}, &res)
	w.subscribe(res)
	if e := w.turn("go"); e.How != "completed" {
		t.Errorf("turn %+v", e)
	}
	if err := os.RemoveAll(w.path("../home/sessions")); err != nil {
		t.Fatal(err)
	}
	w.call(wire.ConversationCreate, wire.CreateParams{}, nil)
}

// A removed workspace is named as that, and no command runs in what replaced it.
func TestReplacedWorkspaceIsRefused(t *testing.T) {
	w := newWorld(t, `
		call read_file {"path": "a.txt"}
		call write_file {"path": "b.txt", "content": "x"}
		call bash {"command": "touch c.txt", "description": "leave a mark"}

		expect result[1] contains "was removed, renamed or replaced"
		expect result[2] contains "was removed, renamed or replaced"
		expect result[3] contains "was removed, renamed or replaced"
		say The folder is gone.`, map[string]string{"a.txt": "mine"})
	w.open()
	other := t.TempDir()
	if err := errors.Join(os.Rename(w.root, w.root+"2"), os.Symlink(other, w.root)); err != nil {
		t.Fatal(err)
	}
	if e := w.turn("go"); e.How != "completed" {
		t.Errorf("turn %+v", e)
	}
	if entries, err := os.ReadDir(other); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

// What a model says must not steer the terminal, and what cannot be printed must
// not be a success.
func TestRunPrintsPlainTextOrFails(t *testing.T) {
	w := newWorld(t, `
		call read_file {"path": "\u001b[31mx"}
		end
		say "evil \x1b]52;c;aGk=\x07 text"`, nil)
	h := w.headless("", with("-p", "x")...).end(0)
	wantContains(t, "the output", h.stdout.String(), "evil ", " text")
	if s := h.stdout.String() + h.stderr.String(); strings.ContainsAny(s, "\x1b\x07") {
		t.Errorf("control characters were printed: %q", s)
	}
	w = newWorld(t, `say "Lost."`, nil)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	h = &headless{w: w, cmd: exec.Command(binary, append([]string{"run"}, with("-p", "x")...)...)}
	h.cmd.Dir, h.cmd.Env, h.cmd.Stdout, h.cmd.Stderr = w.root, w.env, full, &h.stderr
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	h.end(1)
	wantContains(t, "standard error", h.stderr.String(), "could not be printed", "no space left")
}

// A reader that is held for a while gets all of it.
func TestHeldReaderOfRunLosesNothing(t *testing.T) {
	script := ""
	for _, id := range []string{"a", "b", "c"} {
		script += whole(3<<20, `,"tool_calls":[{"index":0,"id":"`+id+`","type":"function","function":{"name":"list_directory","arguments":"{}"}}]`)
	}
	w := newWorld(t, script+"say The end.", nil)
	r, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	h := &headless{w: w, cmd: exec.Command(binary, append([]string{"run", "--json"}, with("-p", "x")...)...)}
	h.cmd.Dir, h.cmd.Env, h.cmd.Stdout, h.cmd.Stderr = w.root, w.env, out, &h.stderr
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.cmd.Process.Kill() }()
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	w.model.Wait(4) // nothing is read until the last answer is asked for
	all, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	h.end(0)
	if s := string(all); strings.Contains(s, `"kind":"lagged"`) || !strings.Contains(s, `"kind":"turnFinished"`) || len(s) < 9<<20 {
		t.Errorf("%d bytes were printed", len(s))
	}
}

// What went wrong before anybody could read along is told to whoever opens the
// conversation in the documented three steps.
func TestNoticesOfTheBeginningReachTheEditor(t *testing.T) {
	w := partialWorld(t, `call bash {"command": "sleep 600", "description": "wait"}`, map[string]string{"AGENTS.md": strings.Repeat("x", 100<<10)})
	w.start()
	var res wire.OpenResult
	w.call(wire.ConversationCreate, wire.CreateParams{}, &res)
	readAlong := func(part string) {
		w.conv = res.ConversationID
		var page wire.TranscriptResult
		w.call(wire.ConversationTranscript, wire.TranscriptParams{ConversationID: w.conv}, &page)
		w.call(wire.ConversationSubscribe, wire.SubscribeParams{ConversationID: w.conv, SinceSeq: page.State.Seq, Epoch: page.State.Epoch}, nil)
		w.await("the notice", func(e event) bool {
			return e.Kind == string(wire.KindNotice) && strings.Contains(e.Text, part)
		})
	}
	readAlong("AGENTS.md")
	w.submit("go")
	w.kind(wire.KindCallStarted)
	w.ed.Kill()
	w.start()
	w.call(wire.ConversationOpen, wire.ConversationParams{ConversationID: w.conv}, &res)
	readAlong("The last turn was cut off")
}
