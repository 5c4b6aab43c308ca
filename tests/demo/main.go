// Command demo shows the main job for real: it starts the built binary as an
// editor does, opens the small project that the rehearsal's tour mends, sends a
// message, and prints what a person would see. It fails when the project's test
// does not pass in the end.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/lakecode/lakecode/lsp/wire"
	"github.com/lakecode/lakecode/providers/rehearsal"
	"github.com/lakecode/lakecode/tests/editor"
)

const prompt = "The test of this module fails. Find out why, fix it, and run the tests."

// turnTime bounds the turn; a first "go test" compiles the standard library.
const turnTime = 5 * time.Minute

func main() {
	bin := flag.String("bin", "bin/lakecode", "the binary to show")
	flag.Parse()
	if err := run(*bin); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(bin string) (err error) {
	bin, err = filepath.Abs(bin)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "lakecode-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	project, home := filepath.Join(scratch, "project"), filepath.Join(scratch, "home")
	if err := os.Mkdir(project, 0o755); err != nil {
		return err
	}
	for name, text := range rehearsal.DemoFiles() {
		if err := os.WriteFile(filepath.Join(project, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	fmt.Println("A Go module with a failing test. The model is a script (\"rehearsal\"); everything else is real.")
	fmt.Println()
	s := &screen{}
	e, err := editor.Start(editor.Config{
		Binary: bin, Dir: project, Env: append(os.Environ(), "LAKECODE_HOME="+home),
		Offer: map[string]any{"versions": []int{wire.Version}, "cards": true, "events": true}, Seen: s.show,
	})
	if err != nil {
		return err
	}
	defer e.Kill()
	if err := turn(e, project); err != nil {
		return err
	}
	if _, err := e.Shutdown(); err != nil {
		return err
	}
	return verify(project)
}

// turn sends the message and waits until the turn is saved.
func turn(e *editor.Editor, project string) error {
	if _, err := e.Initialize(project); err != nil {
		return err
	}
	var conv wire.OpenResult
	if err := e.Call(wire.ConversationCreate, wire.CreateParams{Cwd: project}, &conv); err != nil {
		return err
	}
	id := conv.ConversationID
	if err := e.Call(wire.ConversationSubscribe, wire.SubscribeParams{ConversationID: id, SinceSeq: conv.State.Seq, Epoch: conv.State.Epoch}, nil); err != nil {
		return err
	}
	var sent wire.SubmitResult
	err := e.Call(wire.ConversationSubmit, wire.SubmitParams{
		ConversationID: id, Text: prompt, Model: wire.Model{Provider: "rehearsal", Model: "tour"},
	}, &sent)
	if err != nil {
		return err
	}
	var how string
	_, _, err = e.Wait(0, turnTime, func(m editor.Message) bool {
		for _, ev := range events(m) {
			if ev.Kind == string(wire.KindTurnFinished) {
				how = ev.How
				return true
			}
		}
		return false
	})
	if err == nil && how != "completed" {
		err = fmt.Errorf("the turn ended as %q", how)
	}
	return err
}

// verify runs the project's tests once more, outside of Lakecode.
func verify(project string) error {
	cmd := exec.Command("go", "test", "./...")
	cmd.Dir = project
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("the project's test still fails: %w\n%s", err, out)
	}
	fmt.Printf("\nChecked from outside: go test ./...\n%s", out)
	return nil
}

// event is the union of the fields that the screen shows.
type event struct {
	Kind    string
	CallID  string
	Tool    string
	Title   string
	Text    string
	Outcome string
	How     string
	TookMs  int64
	Changed []wire.FileChange
	Error   *struct{ Message, Next string }
}

func events(m editor.Message) []event {
	if m.Method != wire.EventsNote {
		return nil
	}
	var p struct{ Events []event }
	if json.Unmarshal(m.Params, &p) != nil {
		return nil
	}
	return p.Events
}

// screen prints events as they come. Only the editor's reader uses it.
type screen struct {
	calls   map[string]string
	midLine bool
}

func (s *screen) show(m editor.Message) {
	for _, e := range events(m) {
		s.event(e)
	}
}

func (s *screen) event(e event) {
	switch wire.Kind(e.Kind) {
	case wire.KindTurnStarted:
		fmt.Printf("You       %s\n\nLakecode\n", e.Text)
	case wire.KindMessageDelta:
		if !s.midLine {
			fmt.Print("          ")
		}
		fmt.Print(strings.ReplaceAll(e.Text, "\n", "\n          "))
		s.midLine = true
	case wire.KindMessageEnded:
		s.newline()
	case wire.KindCallProposed:
		if s.calls == nil {
			s.calls = map[string]string{}
		}
		s.calls[e.CallID] = strings.TrimSpace(e.Tool + "  " + e.Title)
	case wire.KindCallEnded:
		s.newline()
		fmt.Printf("  [%s] %s  (%d ms)\n", e.Outcome, s.calls[e.CallID], e.TookMs)
		fmt.Print(indent(excerpt(e), "      | "))
	case wire.KindTurnFinished:
		s.newline()
		if e.Error != nil {
			fmt.Println("  failed:", e.Error.Message, e.Error.Next)
		}
	}
}

func (s *screen) newline() {
	if s.midLine {
		fmt.Println()
	}
	s.midLine = false
}

// excerpt is the diff of a change, else the beginning of the result.
func excerpt(e event) string {
	const lines = 14
	text := e.Text
	for _, c := range e.Changed {
		text = c.Diff
	}
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(all) > lines {
		all = append(all[:lines], fmt.Sprintf("... %d more lines", len(all)-lines))
	}
	return strings.Join(all, "\n")
}

func indent(text, with string) string {
	return with + strings.ReplaceAll(text, "\n", "\n"+with) + "\n"
}
