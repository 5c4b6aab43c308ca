package loop

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lakecode/lakecode/session"
	"github.com/lakecode/lakecode/tools"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestNearestInstructionsUpToTheRepository(t *testing.T) {
	dir := t.TempDir()
	home, repo := filepath.Join(dir, "home"), filepath.Join(dir, "repo")
	write(t, filepath.Join(home, ".agents/AGENTS.md"), "mine\n")
	write(t, filepath.Join(dir, "AGENTS.md"), "beyond the repository\n")
	write(t, filepath.Join(repo, ".git/HEAD"), "")
	write(t, filepath.Join(repo, "AGENTS.md"), "the project's\n")
	sub := filepath.Join(repo, "a/b")
	write(t, filepath.Join(sub, "x"), "")
	in, problems := Instructions(t.Context(), home, sub)
	want := []session.Instruction{{Path: "~/.agents/AGENTS.md", Text: "mine\n"}, {Path: "AGENTS.md", Text: "the project's\n"}}
	if d := cmp.Diff(want, in); d != "" || len(problems) > 0 {
		t.Errorf("instructions (-want +got):\n%s%v", d, problems)
	}
	if err := os.Remove(filepath.Join(repo, "AGENTS.md")); err != nil {
		t.Fatal(err)
	}
	if in, _ := Instructions(t.Context(), "", sub); len(in) > 0 {
		t.Errorf("read beyond the repository: %v", in)
	}
}

func TestOddInstructionsAreReported(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "AGENTS.md"), 0o755); err != nil {
		t.Fatal(err)
	}
	if in, problems := Instructions(t.Context(), "", dir); len(in) != 0 || len(problems) != 1 {
		t.Errorf("a folder: %v %v", in, problems)
	}
	other := t.TempDir()
	write(t, filepath.Join(other, "AGENTS.md"), strings.Repeat("x", maxInstructions)+"THE END")
	in, problems := Instructions(t.Context(), "", other)
	if len(in) != 1 || strings.Contains(in[0].Text, "THE END") || len(problems) != 1 {
		t.Errorf("a long file: %d texts, %v", len(in), problems)
	}
}

// A repository must not be able to send a person's files to a model.
func TestInstructionsDoNotFollowLinksOutOfTheProject(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "secret"), "the key\n")
	repo := filepath.Join(dir, "repo")
	write(t, filepath.Join(repo, "docs/agents.md"), "the project's\n")
	for target, want := range map[string]int{"../secret": 0, filepath.Join(dir, "secret"): 0, "docs/agents.md": 1} {
		if err := os.Symlink(target, filepath.Join(repo, "AGENTS.md")); err != nil {
			t.Fatal(err)
		}
		in, problems := Instructions(t.Context(), "", repo)
		if len(in) != want || len(problems) != 1-want {
			t.Errorf("link to %s: %v, %v", target, in, problems)
		}
		if err := os.Remove(filepath.Join(repo, "AGENTS.md")); err != nil {
			t.Fatal(err)
		}
	}
	home := filepath.Join(dir, "home") // the person's own may be a link to anywhere
	write(t, filepath.Join(home, ".agents/x"), "")
	if err := os.Symlink(filepath.Join(dir, "secret"), filepath.Join(home, ".agents/AGENTS.md")); err != nil {
		t.Fatal(err)
	}
	if in, problems := Instructions(t.Context(), home, repo); len(in) != 1 || len(problems) > 0 {
		t.Errorf("the person's link: %v, %v", in, problems)
	}
}

func TestTitlesSteerNoTerminal(t *testing.T) {
	if got := Title(`{"command":"echo \u001b[2J\u0007 x"}`); got != "echo \uFFFD[2J\uFFFD x" {
		t.Errorf("%q", got)
	}
}

func TestPromptEndsWithTheEnvironment(t *testing.T) {
	in := []session.Instruction{{Path: "AGENTS.md", Text: "use tabs"}}
	p := BuildPrompt(in, Environment{Root: "/w", OS: "linux/amd64", Date: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC), Git: true})
	order := []string{"You are Lakecode", "use tabs", "# Mode: Build", "# Environment", "workspace: /w", "date: 2026-01-02", "git"}
	at := 0
	for _, s := range order {
		i := strings.Index(p[at:], s)
		if i < 0 {
			t.Fatalf("%q is missing or out of order in:\n%s", s, p)
		}
		at += i
	}
}

func TestTitles(t *testing.T) {
	for args, want := range map[string]string{
		`{"path":"a.go"}`: "a.go",
		`{"command":"go  test\n./...","description":"d"}`: "go test ./...",
		`{"pattern":"x","path":"lib"}`:                    "x in lib",
		`{"pattern":"x"}`:                                 "x",
		`{"path":`:                                        "",
		`{"patch":"*** Begin Patch\n*** Update File: a b.go\n*** Move to: c\n-x\n+*** Add File: n\n*** Delete File: d\n"}`: "a b.go, d",
		`[]`:         "",
		`{"path":7}`: "",
	} {
		if got := Title(args); got != want {
			t.Errorf("Title(%s) = %q, want %q", args, got, want)
		}
	}
	if got := []rune(Title(`{"command":"` + strings.Repeat("ü", 500) + `"}`)); len(got) != titleRunes {
		t.Errorf("a long title has %d runes", len(got))
	}
}

func TestChangesAreCountedAndShown(t *testing.T) {
	many := strings.Repeat("line\n", 1000)
	got := describe([]tools.Change{
		{Rel: "new", After: []byte("a\nb\n")},
		{Rel: "gone", Before: []byte("a\n")},
		{Rel: "edit", Before: []byte("a\nb\nc\n"), After: []byte("a\nB\nc\n")},
		{Rel: "many", After: []byte(many)},
		{Rel: "binary", Before: []byte("\x00"), After: []byte("\x00\n")},
	})
	type row struct {
		Path, Kind     string
		Added, Removed int
	}
	var rows []row
	for _, c := range got {
		rows = append(rows, row{c.Path, c.Kind, c.Added, c.Removed})
	}
	want := []row{{"new", "create", 2, 0}, {"gone", "delete", 0, 1}, {"edit", "update", 1, 1}, {"many", "create", 1000, 0}, {"binary", "update", 1, 0}}
	if d := cmp.Diff(want, rows); d != "" {
		t.Errorf("changes (-want +got):\n%s", d)
	}
	if n := strings.Count(got[3].Diff, "\n"); n != diffLines+1 {
		t.Errorf("a long diff has %d lines", n)
	}
	if got[4].Diff != "" {
		t.Error("a binary file has a diff")
	}
}

func TestClipCutsAtALineEnd(t *testing.T) {
	if s, cut := Clip("short"); s != "short" || cut {
		t.Error(s, cut)
	}
	s, cut := Clip(strings.Repeat("0123456789\n", 10000))
	if !cut || len(s) > displayText || !strings.HasSuffix(s, "9") {
		t.Errorf("%d bytes, %v", len(s), cut)
	}
	if s, _ := Clip("x" + strings.Repeat("ü", displayText)); !strings.HasSuffix(s, "ü") {
		t.Error("cut inside a rune")
	}
}
