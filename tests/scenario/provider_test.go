package scenario

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lakecode/lakecode/lsp/wire"
	"github.com/lakecode/lakecode/tests/editor"
)

// Failures of a model's server: the turn ends with a sentence that says what to
// do, the partial answer stays, no call of a broken answer is run.
func TestProviderFailuresAreToldAndNothingIsLost(t *testing.T) {
	for _, c := range []struct {
		name, script string
		kind         string
		message      []string
	}{
		{"wrong key", `status 401 {"error":{"message":"Incorrect API key provided: ` + key + `","code":"invalid_api_key"}}`, "auth", []string{"Fake model", "401"}},
		{"server error", `
			status 500 {"error":{"message":"boom"}}
			status 500 {"error":{"message":"boom"}}
			status 500 {"error":{"message":"boom"}}
			status 500 {"error":{"message":"boom"}}`, "overloaded", []string{"500", "boom"}},
		{"redirect with a key", `status 302 location=http://127.0.0.1:9/v1`, "", []string{"302"}},
		{"an HTML page", `status 200 content-type=text/html <html><h1>Sign in</h1></html>`, "protocol", []string{"HTML"}},
		{"JSON error inside a 200", `status 200 content-type=application/json {"error":{"message":"no such model","code":"model_not_found"}}`, "", []string{"no such model"}},
		{"gzip bomb", `bomb 1GiB`, "protocol", nil},
		{"garbage", `garbage`, "protocol", nil},
		{"cut inside a tool call", `
			say Let me write.
			call write_file {"path": "x.txt", "content": "never"}
			cut`, "", nil},
		{"end without a finish", `
			say Half
			eof`, "protocol", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := partialWorld(t, c.script, nil)
			w.open()
			end := w.turn("go")
			if end.How == "completed" && c.name == "end without a finish" {
				return // a plain answer that ended cleanly is tolerated with a warning
			}
			if end.How != "failed" || end.Error == nil {
				t.Fatalf("ended as %+v", end)
			}
			if c.kind != "" && end.Error.Kind != c.kind {
				t.Errorf("kind %q, want %q (%s)", end.Error.Kind, c.kind, end.Error.Message)
			}
			wantContains(t, "the message", end.Error.Message, c.message...)
			if strings.Contains(end.Error.Message+end.Error.Next, key) {
				t.Errorf("the key is in the message: %s", end.Error.Message)
			}
			if _, err := os.Stat(w.path("x.txt")); err == nil {
				t.Error("a call of a broken answer was run")
			}
			tr := w.transcript()
			if tr.Turns[0].Text != "go" || tr.Turns[0].How != "failed" || tr.State.Phase != "idle" {
				t.Errorf("transcript %+v", tr)
			}
			w.noCanary()
		})
	}
}

func TestRateLimitIsWaitedFor(t *testing.T) {
	w := newWorld(t, `
		status 429 retry-after=1 {"error":{"message":"slow down"}}
		say Now.`, nil)
	w.open()
	began := time.Now()
	sent := w.submit("go")
	w.kind(wire.KindRetrying)
	if end := w.ended(sent.TurnID); end.How != "completed" {
		t.Errorf("ended as %+v", end)
	}
	if took := time.Since(began); took < time.Second {
		t.Errorf("retried after %s, before Retry-After", took)
	}
}

// A server that hangs is left when the person stops.
func TestStopLeavesAServerThatHangs(t *testing.T) {
	for name, script := range map[string]string{"before the headers": "stall", "in the middle": "say Half\nstall"} {
		t.Run(name, func(t *testing.T) {
			w := partialWorld(t, script, nil)
			w.open()
			sent := w.submit("go")
			w.model.Wait(1)
			w.call(wire.ConversationStop, wire.ConversationParams{ConversationID: w.conv}, nil)
			if end := w.ended(sent.TurnID); end.How != "stopped" {
				t.Errorf("ended as %+v", end)
			}
		})
	}
}

// covers CONV-9 partly
func TestFailedTurnLeavesTheQueuePaused(t *testing.T) {
	w := newWorld(t, `
		gate hold
		status 401 {"error":{"message":"no"}}
		say Second.`, nil)
	w.open()
	first := w.submit("first")
	w.model.Reached("hold")
	second := w.submit("second")
	w.model.Release("hold")
	w.ended(first.TurnID)
	w.phase("paused", func(s wire.State) bool { return s.QueuePaused && s.Phase == "idle" && len(s.Queue) == 1 })
	w.call(wire.QueueResume, wire.ConversationParams{ConversationID: w.conv}, nil)
	if end := w.ended(second.TurnID); end.How != "completed" {
		t.Errorf("ended as %+v", end)
	}
}

// covers PROV-7
func TestNoProvidersFileMeansNoConnection(t *testing.T) {
	w := bare(t, nil)
	w.env = append(w.env, "OPENAI_API_KEY="+key, "ANTHROPIC_API_KEY="+key)
	w.open()
	var models wire.ModelListResult
	w.call(wire.ModelList, wire.Empty{}, &models)
	for _, m := range models.Models {
		if m.Model.Provider != "rehearsal" {
			t.Errorf("a connection out of nothing: %+v", m)
		}
	}
	kind, message := w.refused(wire.ConversationSubmit, wire.SubmitParams{ConversationID: w.conv, Text: "hello"})
	if kind != "badModel" {
		t.Errorf("refused as %q: %s", kind, message)
	}
	wantContains(t, "the refusal", message, "providers.json")
	if _, err := os.Stat(filepath.Join(w.home, "providers.json")); err == nil {
		t.Error("providers.json was made")
	}
	// The draft is the editor's; nothing was queued.
	if tr := w.transcript(); len(tr.Turns) != 0 || len(tr.State.Queue) != 0 {
		t.Errorf("transcript %+v", tr)
	}
}

// covers PROV-7
func TestConnectionAppearsAfterEditingTheFile(t *testing.T) {
	other := newWorld(t, "say Hello.", nil)
	w := bare(t, nil)
	w.open()
	w.refused(wire.ConversationSubmit, wire.SubmitParams{ConversationID: w.conv, Text: "hello"})
	other.model.Install(w.home)
	if end := w.turn("hello"); end.How != "completed" {
		t.Errorf("ended as %+v", end)
	}
}

func TestUnusableProvidersFileIsNamedAndLeftAlone(t *testing.T) {
	newer := `{"SchemaVersion": 99, "Providers": []}`
	damaged := `{"SchemaVersion": 3, "Providers": [{"Id": "x", "ApiKey": "` + key + `" "Name"`
	for _, c := range []struct {
		name, text string
		prepare    func(t *testing.T, path string)
		want       []string
	}{
		{"damaged", damaged, nil, []string{"providers.json"}},
		{"newer", newer, nil, []string{"providers.json", "99"}},
		{"empty", "", nil, []string{"providers.json"}},
		{"a folder", "", func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, []string{"providers.json"}},
		{"a link", newer, func(t *testing.T, path string) {
			if err := os.Rename(path, path+".real"); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(path+".real", path); err != nil {
				t.Fatal(err)
			}
		}, []string{"providers.json", "link"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := bare(t, nil)
			if err := os.MkdirAll(w.home, 0o700); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(w.home, "providers.json")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if c.prepare != nil {
				c.prepare(t, path)
			}
			w.open()
			_, message := w.refused(wire.ConversationSubmit, wire.SubmitParams{ConversationID: w.conv, Text: "hello", Model: wire.Model{Provider: "x", Model: "m"}})
			wantContains(t, "the refusal", message, c.want...)
			var models wire.ModelListResult
			w.call(wire.ModelList, wire.Empty{}, &models)
			wantContains(t, "the problem", models.Problem, c.want...)
			if st, err := os.Stat(path); err != nil {
				t.Error(err)
			} else if !st.IsDir() {
				if b, _ := os.ReadFile(path); string(b) != c.text {
					t.Errorf("the file was changed to %q", b)
				}
			}
			w.noCanary()
		})
	}
}

// noCanary looks for the key in everything that was written or sent, after the
// end of the server. providers.json is where it belongs.
func (w *world) noCanary() {
	w.t.Helper()
	_, _, _ = w.ed.Wait(0, 0, func(m editor.Message) bool {
		if b, err := json.Marshal(m); err != nil || strings.Contains(string(b), key) {
			w.t.Errorf("the key is in a message to the editor (%s), %v", m.Method, err)
		}
		return false
	})
	w.ed.Kill()
	if strings.Contains(w.ed.Stderr(), key) {
		w.t.Error("the key is in standard error")
	}
	for _, dir := range []string{w.home, w.root} {
		err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() || strings.HasPrefix(d.Name(), "providers.json") {
				return err
			}
			b, err := os.ReadFile(path)
			if strings.Contains(string(b), key) {
				w.t.Errorf("the key is in %s", path)
			}
			return err
		})
		if err != nil {
			w.t.Error(err)
		}
	}
}

// A canary key appears nowhere: no log, event, session file or child.
func TestKeyStaysWhereItBelongs(t *testing.T) {
	w := newWorld(t, `
		call bash {"command": "printenv", "description": "show the environment"}
		call bash {"command": "true $(cat ~/.lakecode/providers.json)", "description": "try to read the key"}
		call read_file {"path": "../home/providers.json"}
		call search_text {"pattern": "sk-canary", "path": "../home"}
		end
		status 401 {"error":{"message":"Incorrect API key provided: `+key+`"}}`, nil)
	w.env = append(w.env, "LAKECODE_LOG=debug")
	w.open()
	if end := w.turn("go"); end.How != "failed" {
		t.Errorf("ended as %+v", end)
	}
	if tr := w.transcript(); strings.Contains(tr.Turns[0].Items[0].Text, "LAKECODE_HOME") {
		t.Error("a child inherits LAKECODE_HOME")
	}
	w.noCanary()
}

// A model that gets at a copy of the file with the keys does not get the keys.
func TestKeyIsHiddenInWhatToolsSay(t *testing.T) {
	w := newWorld(t, `
		call bash {"command": "cp ../home/providers.json copy.json", "description": "copy the file with the keys"}
		call read_file {"path": "copy.json"}
		call search_text {"pattern": "ApiKey"}
		call edit_file {"path": "copy.json", "edits": [{"old": "Fake model", "new": "Other"}]}
		call bash {"command": "diff copy.json ../home/providers.json", "description": "show the difference"}
		end
		expect result[2] contains "[secret]"
		expect body lacks "sk-canary"
		say Nothing to see.`, nil)
	w.open()
	if end := w.turn("go"); end.How != "completed" {
		t.Errorf("ended as %+v", end)
	}
	if tr := w.transcript(); strings.Contains(fmt.Sprint(tr), key) {
		t.Error("the key is in the transcript")
	}
	if err := os.Remove(w.path("copy.json")); err != nil { // the model's own copy
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(w.home, "sessions", w.conv, "journal")); err != nil { // its former content
		t.Fatal(err)
	}
	w.noCanary()
}

func TestUnusableHomeIsNamed(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(t *testing.T, home string)
	}{
		{"a link", func(t *testing.T, home string) {
			if err := os.MkdirAll(home+".real", 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(home+".real", home); err != nil {
				t.Fatal(err)
			}
		}},
		{"a file", func(t *testing.T, home string) {
			if err := os.WriteFile(home, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		{"read-only", func(t *testing.T, home string) {
			if err := os.MkdirAll(home, 0o700); err != nil {
				t.Fatal(err)
			}
			readOnly(t, home)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := bare(t, nil)
			c.prepare(t, w.home)
			w.start() // the server lives and says what is wrong
			_, message := w.refused(wire.ConversationCreate, wire.CreateParams{})
			wantContains(t, "the refusal", message, w.home)
			if code, err := w.ed.Shutdown(); err != nil || code != 0 {
				t.Errorf("exit %d, %v", code, err)
			}
		})
	}
}
