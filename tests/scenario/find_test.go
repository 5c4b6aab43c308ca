package scenario

import (
	"os"
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lakecode/lakecode/tests/editor"
)

// What a work tree ignores is neither found nor listed nor searched, what is
// only in the editor is, and looking runs nothing that the repository names.
//
// covers TOOL-4 partly
// covers TOOL-14 partly
func TestFindListAndSearchInAHostileRepository(t *testing.T) {
	w := newWorld(t, `
		call find_files {"query": "usrctl"}
		call find_files {"glob": "*.log"}
		call find_files {"query": "draft"}
		call list_directory {"depth": 2}
		call search_text {"pattern": "class"}
		end
		expect result[1] contains "1 of 3 files match"
		expect result[1] contains "src/user_controller.ts"
		expect result[2] contains "No path fits glob"
		expect result[3] contains "src/draft.ts  (only in the editor, not saved)"
		expect result[4] contains "2 ignored entries not shown"
		expect result[4] lacks "debug.log"
		expect result[5] contains "1 matching line in 1 file"
		say Seen.`, map[string]string{
		".gitignore": "*.log\n/gen/\n", "src/user_controller.ts": "class A {}\n", "src/debug.log": "class\n", "gen/user_controller.ts": "class\n",
	})
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = w.root
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "-q")
	git("add", "src/user_controller.ts")
	marker := w.home + "-ran"
	script := w.home + "-evil.sh"
	if err := os.WriteFile(script, []byte("#!/bin/sh\ntouch '"+marker+"'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"diff.external", "core.pager", "core.hooksPath", "core.fsmonitor"} {
		git("config", key, script)
	}
	w.open()
	w.notify("textDocument/didOpen", map[string]any{"textDocument": map[string]any{"uri": editor.FileURI(w.path("src/draft.ts")), "languageId": "ts", "version": 1, "text": "x"}})
	if end := w.turn("what is there?"); end.How != "completed" {
		t.Errorf("ended as %+v", end)
	}
	if d := cmp.Diff([]string{"find_files ok", "find_files ok", "find_files ok", "list_directory ok", "search_text ok"}, calls(w.transcript())); d != "" {
		t.Errorf("calls (-want +got):\n%s", d)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("the repository ran something")
	}
	git("status") // the trap works
	if _, err := os.Stat(marker); err != nil {
		t.Error("the fixture runs nothing even when git is asked without care")
	}
}
