package scenario

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/lakecode/lakecode/tests/editor"
)

// covers TOOL-4 partly
func TestToolsSeeUnsavedText(t *testing.T) {
	w := newWorld(t, `
		call read_file {"path": "a.go"}
		call search_text {"pattern": "typedNow"}
		call search_text {"pattern": "onDisk"}
		end
		expect result[1] contains "typedNow"
		expect result[1] contains "unsaved"
		expect result[2] contains "a.go"
		expect result[3] lacks "var onDisk"
		say Seen.`, map[string]string{"a.go": "package a\n\nvar onDisk = 1\n"})
	w.open()
	uri := editor.FileURI(w.path("a.go"))
	w.notify("textDocument/didOpen", map[string]any{"textDocument": map[string]any{"uri": uri, "languageId": "go", "version": 1, "text": w.read("a.go")}})
	w.notify("textDocument/didChange", map[string]any{
		"textDocument": map[string]any{"uri": uri, "version": 2},
		"contentChanges": []any{map[string]any{
			"range": map[string]any{"start": map[string]any{"line": 2, "character": 4}, "end": map[string]any{"line": 2, "character": 10}}, "text": "typedNow",
		}},
	})
	if end := w.turn("what is there?"); end.How != "completed" {
		t.Errorf("ended as %+v", end)
	}
	if !strings.Contains(w.read("a.go"), "onDisk") {
		t.Error("the file was written")
	}
}

func (w *world) notify(method string, params any) {
	w.t.Helper()
	if err := w.ed.Notify(method, params); err != nil {
		w.t.Fatal(err)
	}
}

// covers PLAN-1 partly
func TestBashNeedsADescriptionAndNoPermission(t *testing.T) {
	w := newWorld(t, `
		call bash {"command": "touch a", "description": "  "}
		end
		expect result contains "needs a description"
		call bash {"command": "touch b", "description": "make b"}
		end
		expect result contains "exit code 0"
		say Done.`, nil)
	w.open()
	if end := w.turn("touch"); end.How != "completed" {
		t.Errorf("ended as %+v", end)
	}
	if d := cmp.Diff([]string{"bash refused", "bash ok"}, calls(w.transcript())); d != "" {
		t.Errorf("calls (-want +got):\n%s", d)
	}
	if _, err := os.Stat(w.path("a")); err == nil {
		t.Error("a call without a description ran")
	}
	if _, err := os.Stat(w.path("b")); err != nil {
		t.Error(err)
	}
	p := w.transcript().Turns[0].Items[1]
	wantContains(t, "the card's arguments", p.Args, "make b")
}

func TestWritesKeepTheOrderOfCalls(t *testing.T) {
	w := newWorld(t, `
		call write_file {"path": "n.txt", "content": "one\n"}
		call read_file {"path": "n.txt"}
		call edit_file {"path": "n.txt", "edits": [{"old": "one", "new": "two"}]}
		call bash {"command": "cp n.txt m.txt", "description": "copy it"}
		call read_file {"path": "m.txt"}
		end
		expect result[2] contains "one"
		expect result[5] contains "two"
		say Done.`, nil)
	w.open()
	w.turn("write")
	tr := w.transcript()
	if d := cmp.Diff([]string{"write_file ok", "read_file ok", "edit_file ok", "bash ok", "read_file ok"}, calls(tr)); d != "" {
		t.Errorf("calls (-want +got):\n%s", d)
	}
	if c := tr.Turns[0].Items[2].Changed; len(c) != 1 || c[0].Path != "n.txt" || c[0].Added != 1 || c[0].Removed != 1 || !strings.Contains(c[0].Diff, "+two") {
		t.Errorf("the edit's change is %+v", c)
	}
}

// covers TOOL-13 partly
func TestPatchOverSeveralFilesIsAllOrNothing(t *testing.T) {
	files := map[string]string{"a.txt": "one\ntwo\n", "b.txt": "three\n", "old.txt": "four\n"}
	const patch = `{"patch": "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+ONE\n*** Update File: old.txt\n*** Move to: dir/new.txt\n*** Update File: b.txt\n@@\n-three\n+THREE\n*** End Patch"}`
	w := newWorld(t, `
		call apply_patch `+patch+`
		end
		expect result contains "b.txt has unsaved changes in the editor. Nothing was written."
		say Waiting.
		end
		call apply_patch `+patch+`
		end
		expect result contains "Patched 3 files: +2 -2 lines."
		expect result contains "Moved old.txt to dir/new.txt: +0 -0 lines."
		say Done.`, files)
	w.open()
	doc := map[string]any{"uri": editor.FileURI(w.path("b.txt")), "languageId": "text", "version": 1, "text": "three, typed\n"}
	w.notify("textDocument/didOpen", map[string]any{"textDocument": doc})
	w.turn("patch")
	for name, text := range files {
		if got := w.read(name); got != text {
			t.Errorf("%s has become %q", name, got)
		}
	}
	if _, err := os.Stat(w.path("dir")); err == nil {
		t.Error("a folder was made")
	}
	w.notify("textDocument/didClose", map[string]any{"textDocument": map[string]any{"uri": doc["uri"]}})
	w.turn("again")
	for name, text := range map[string]string{"a.txt": "ONE\ntwo\n", "b.txt": "THREE\n", "dir/new.txt": "four\n"} {
		if got := w.read(name); got != text {
			t.Errorf("%s is %q, want %q", name, got, text)
		}
	}
	if _, err := os.Stat(w.path("old.txt")); err == nil {
		t.Error("the moved file is at its old place, too")
	}
	tr := w.transcript()
	if d := cmp.Diff([]string{"apply_patch failed", "apply_patch ok"}, calls(tr)); d != "" {
		t.Errorf("calls (-want +got):\n%s", d)
	}
	call := tr.Turns[1].Items[0]
	if call.Title != "a.txt, old.txt, b.txt" || len(call.Changed) != 4 {
		t.Errorf("title %q, changes %+v", call.Title, call.Changed)
	}
}

// Odd answers of a model: each call gets exactly one result, nothing is run that
// should not be, and the turn goes on.
func TestOddCallsOfAModel(t *testing.T) {
	var thousand strings.Builder
	for range 1000 {
		thousand.WriteString("call read_file {\"path\": \"a.txt\"}\n")
	}
	for _, c := range []struct {
		name, script string
		want         []string
	}{
		{"arguments that do not parse", `
			rawcall write_file {"path": "x.txt", "content": "y
			end
			expect result contains "not valid JSON"
			say ok`, []string{"write_file refused"}},
		{"unknown tool", `
			call launch_rocket {}
			end
			expect result contains "no tool"
			say ok`, []string{"launch_rocket refused"}},
		{"unknown argument", `
			call read_file {"pth": "a.txt"}
			end
			expect result contains "no argument"
			say ok`, []string{"read_file refused"}},
		{"a call id used twice in one answer", `
			call read_file id=same {"path": "a.txt"}
			call read_file id=same {"path": "b.txt"}
			end
			expect results is 2
			expect result[1] contains "text of a"
			expect result[2] contains "text of b"
			say ok`, []string{"read_file ok", "read_file ok"}},
		{"a call id used again in a later answer", `
			call read_file id=same {"path": "a.txt"}
			end
			call read_file id=same {"path": "b.txt"}
			end
			expect result[1] contains "text of b"
			say ok`, []string{"read_file ok", "read_file ok"}},
		{"an answer cut at the length limit", `
			call write_file {"path": "x.txt", "content": "half"}
			length
			expect result contains "cut at the output limit"
			say ok`, []string{"write_file notRun"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.script, map[string]string{"a.txt": "text of a\n", "b.txt": "text of b\n"})
			w.open()
			if end := w.turn("go"); end.How != "completed" {
				t.Errorf("ended as %+v", end)
			}
			if d := cmp.Diff(c.want, calls(w.transcript())); d != "" {
				t.Errorf("calls (-want +got):\n%s", d)
			}
			if _, err := os.Stat(w.path("x.txt")); err == nil {
				t.Error("x.txt was written")
			}
		})
	}
	t.Run("a thousand calls in one answer", func(t *testing.T) {
		w := newWorld(t, thousand.String()+"end\nexpect results is 1000\nexpect result[129] contains \"at most 128\"\nsay ok", map[string]string{"a.txt": "text\n"})
		w.open()
		if end := w.turn("go"); end.How != "completed" {
			t.Errorf("ended as %+v", end)
		}
		if n := len(calls(w.transcript())); n != 1000 {
			t.Errorf("%d calls with a result", n)
		}
	})
}

// Paths that lead out of the workspace, and things that are no files.
func TestPathsOutsideAndOddFiles(t *testing.T) {
	w := newWorld(t, `
		call read_file {"path": "../secret.txt"}
		call read_file {"path": "/etc/hostname"}
		call read_file {"path": "out"}
		call write_file {"path": "out", "content": "x"}
		call write_file {"path": "../new.txt", "content": "x"}
		call read_file {"path": "fifo"}
		call read_file {"path": "zero"}
		call read_file {"path": "big"}
		call read_file {"path": "bin"}
		call read_file {"path": "missing.txt"}
		end
		expect body lacks "TOP-SECRET"
		say ok`, map[string]string{"bin": "a\x00\x01\x02b"})
	if err := os.WriteFile(w.root+"/../secret.txt", []byte("TOP-SECRET"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"out": "../secret.txt", "zero": "/dev/zero"} {
		if err := os.Symlink(target, w.path(name)); err != nil {
			t.Fatal(err)
		}
	}
	mkfifo(t, w.path("fifo"))
	if err := os.WriteFile(w.path("big"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(w.path("big"), 1<<30); err != nil {
		t.Fatal(err)
	}
	w.open()
	if end := w.turn("go"); end.How != "completed" {
		t.Errorf("ended as %+v", end)
	}
	for i, it := range w.transcript().Turns[0].Items {
		if it.Kind == "call" && it.Outcome != "failed" {
			t.Errorf("call %d (%s %s) ended as %s: %s", i, it.Tool, it.Title, it.Outcome, it.Text)
		}
	}
	if b, _ := os.ReadFile(w.root + "/../secret.txt"); string(b) != "TOP-SECRET" {
		t.Errorf("a file outside was changed to %q", b)
	}
	if _, err := os.Stat(w.root + "/../new.txt"); err == nil {
		t.Error("a file outside was made")
	}
}

// What goes to the model for one request stays small.
func TestPromptAndSchemasAreSmall(t *testing.T) {
	w := newWorld(t, "say ok", nil)
	w.open()
	w.turn("go")
	chat, err := w.model.Requests()[0].Chat()
	if err != nil {
		t.Fatal(err)
	}
	system, tools := len(chat.System()), len(chat.Tools)
	n := len(chat.Offered)
	t.Logf("system prompt %d bytes, %d tools %d bytes", system, n, tools)
	if system+tools > 16<<10 {
		t.Errorf("system prompt and tools have %d bytes, more than 16 KiB", system+tools)
	}
	if tools > n*1229 {
		t.Errorf("the schemas have %d bytes for %d tools, more than 1.2 KiB each", tools, n)
	}
}

func mkfifo(t *testing.T, path string) {
	t.Helper()
	if err := unix.Mkfifo(path, 0o644); err != nil {
		t.Fatal(err)
	}
}
