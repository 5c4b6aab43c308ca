package search

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/lakecode/lakecode/lsp/overlay"
	"github.com/lakecode/lakecode/tools"
	"github.com/lakecode/lakecode/tools/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a workspace in a temporary folder.
type fixture struct {
	t      testing.TB
	root   string
	docs   *overlay.Store
	limits Limits
	git    string
}

func newFixture(t *testing.T, files map[string]string) *fixture {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, root: root, docs: overlay.NewStore(), git: program(t, "git")}
	for name, text := range files {
		f.write(name, text)
	}
	return f
}

func program(tb testing.TB, name string) string {
	tb.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		tb.Fatalf("%s is needed by the tests: %v", name, err)
	}
	return path
}

func (f *fixture) path(name string) string { return filepath.Join(f.root, filepath.FromSlash(name)) }

func (f *fixture) write(name, text string) {
	f.t.Helper()
	if err := os.MkdirAll(filepath.Dir(f.path(name)), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(f.path(name), []byte(text), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) link(target, name string) {
	f.t.Helper()
	if err := os.Symlink(target, f.path(name)); err != nil {
		f.t.Fatal(err)
	}
}

// open shows a text in the editor.
func (f *fixture) open(name, text string) {
	f.docs.Open(overlay.Doc{URI: overlay.FileURI(f.path(name)), Version: 1, Text: text})
}

// runGit prepares a repository; nothing of the person's configuration counts.
func (f *fixture) runGit(dir string, args ...string) {
	f.t.Helper()
	cmd := exec.Command(f.git, append([]string{"-c", "protocol.file.allow=always"}, args...)...)
	cmd.Dir = f.path(dir)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	if out, err := cmd.CombinedOutput(); err != nil {
		f.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// run is Config.Run for tests.
func run(ctx context.Context, argv []string, dir string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = dir
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		first, _, _ := strings.Cut(errs.String(), "\n")
		err = fmt.Errorf("%w: %s", err, first)
	}
	return out, err
}

func (f *fixture) searcher() *searcher {
	f.t.Helper()
	w, err := workspace.Open(workspace.Config{Root: f.root, Docs: f.docs})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = w.Close() })
	cfg := Config{Workspace: w, Git: f.git, Run: run, Limits: f.limits}
	s, err := newSearcher(cfg)
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

// search returns what the model reads, and the code of the error if it is one.
func (f *fixture) search(args textArgs) (string, tools.Code) {
	f.t.Helper()
	out, err := f.searcher().text(f.t.Context(), args, nil)
	if err == nil {
		return out.Text, ""
	}
	var te *tools.Error
	if !errors.As(err, &te) {
		f.t.Fatalf("error %T is not for the model: %v", err, err)
	}
	return te.Text + "\n" + te.Next, te.Code
}

// check compares the whole text of a successful search.
func (f *fixture) check(args textArgs, want string) {
	f.t.Helper()
	got, code := f.search(args)
	if got != want || code != "" {
		f.t.Errorf("search %+v: %s\n--- got\n%s--- want\n%s", args, code, got, want)
	}
}

// refused checks for an error of a code whose text has all the parts.
func (f *fixture) refused(args textArgs, want tools.Code, parts ...string) {
	f.t.Helper()
	got, code := f.search(args)
	if code != want {
		f.t.Errorf("search %+v: code %q, want %q: %s", args, code, want, got)
	}
	for _, p := range parts {
		if !strings.Contains(got, p) {
			f.t.Errorf("search %+v: %q lacks %q", args, got, p)
		}
	}
}

// names returns the files with a match, in order.
func (f *fixture) names(args textArgs) []string {
	f.t.Helper()
	s := f.searcher()
	at, err := s.place(args.Path)
	if err != nil {
		f.t.Fatal(err)
	}
	j, err := args.job(s.limits, at.base())
	if err != nil {
		f.t.Fatal(err)
	}
	found, err := s.run(f.t.Context(), j, at)
	if err != nil {
		f.t.Fatal(err)
	}
	var out []string
	for _, h := range found.files {
		out = append(out, h.rel)
	}
	return out
}
