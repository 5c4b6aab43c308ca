package rehearsal

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The tour tells of a test that fails and an edit that mends it; both must be
// so, or the first thing that a newcomer sees is a lie.
func TestTourMendsTheDemoProject(t *testing.T) {
	dir := t.TempDir()
	for name, text := range DemoFiles() {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := func() (string, error) {
		cmd := exec.Command("go", "test", "./...")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run(); err == nil || !strings.Contains(out, "FAIL") {
		t.Fatalf("the demo's tests do not fail at first: %v\n%s", err, out)
	}
	var edits int
	for _, a := range Tour().answers {
		for _, p := range a.steps {
			c, ok := p.step.(callStep)
			if !ok || c.name != "edit_file" {
				continue
			}
			edits++
			apply(t, dir, c.args)
		}
	}
	if out, err := run(); err != nil || !strings.Contains(out, "ok") || edits != 1 {
		t.Errorf("after the tour's %d edits the tests do not pass: %v\n%s", edits, err, out)
	}
}

func apply(t *testing.T, dir, args string) {
	t.Helper()
	var in struct {
		Path  string
		Edits []struct{ Old, New string }
	}
	if err := json.Unmarshal([]byte(args), &in); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, in.Path)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range in.Edits {
		if strings.Count(string(text), e.Old) != 1 {
			t.Fatalf("the text to replace does not stand exactly once in %s: %q", in.Path, e.Old)
		}
		text = []byte(strings.Replace(string(text), e.Old, e.New, 1))
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
}
