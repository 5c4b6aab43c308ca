package shell

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lakecode/lakecode/tools"
	"github.com/lakecode/lakecode/tools/proc"
)

var took = regexp.MustCompile(`\d+(\.\d)? m?s`)

// want compares outcome and text; times are written as T.
func want(t *testing.T, r tools.Result, outcome tools.Outcome, text string) {
	t.Helper()
	if r.Outcome != outcome {
		t.Errorf("outcome %s, wanted %s: %s", r.Outcome, outcome, r.Text())
	}
	if d := cmp.Diff(text, took.ReplaceAllString(r.Text(), "T")); d != "" {
		t.Errorf("text (-want +got):\n%s", d)
	}
}

func TestAResultTellsExitCodeTimeAndOutput(t *testing.T) {
	s := open(t, nil)
	s.script("both", "echo out; echo err >&2; exit 3")
	s.script("crash", "kill -SEGV $$")
	want(t, s.run(t.Context(), "echo a && echo b; true"), tools.OK, "exit code 0 in T\na\nb")
	want(t, s.run(t.Context(), "./both"), tools.OK, "exit code 3 in T\nout\nerr")
	want(t, s.run(t.Context(), "true"), tools.OK, "exit code 0 in T\nno output")
	want(t, s.run(t.Context(), "no-such-command"), tools.OK, "exit code 127 in T\nbash: line 1: no-such-command: command not found")
	want(t, s.run(t.Context(), "A='1 2' printenv A"), tools.OK, "exit code 0 in T\n1 2")
	want(t, s.run(t.Context(), "./crash"), tools.OK, "ended by signal SIGSEGV in T\nno output")
	if r := s.run(t.Context(), "./crash; exit 139"); !strings.HasPrefix(r.Text(), "exit code 139 (128 + SIGSEGV) in ") {
		t.Errorf("got %s", r.Text())
	}
}

func TestACommandRunsInItsFolder(t *testing.T) {
	s := open(t, nil)
	must(t, os.Mkdir(filepath.Join(s.dir, "sub"), 0o755))
	must(t, os.WriteFile(filepath.Join(s.dir, "file"), nil, 0o644))
	must(t, os.Symlink("/", filepath.Join(s.dir, "link")))
	want(t, s.run(t.Context(), "pwd"), tools.OK, "exit code 0 in T\n"+s.dir)
	want(t, s.run(t.Context(), "pwd; printenv PWD", "cwd", "sub"), tools.OK, "exit code 0 in T\n"+s.dir+"/sub\n"+s.dir+"/sub")
	want(t, s.run(t.Context(), "pwd", "cwd", s.dir+"/sub/.."), tools.OK, "exit code 0 in T\n"+s.dir)
	for cwd, code := range map[string]tools.Code{
		"..": tools.OutsideRoot, "/": tools.OutsideRoot, "sub/../..": tools.OutsideRoot, "link": tools.OutsideRoot, "link/etc": tools.OutsideRoot,
		"none": tools.NotFound, "file": tools.BadArguments,
	} {
		if r := s.run(t.Context(), "touch ran", "cwd", cwd); r.Err == nil || r.Err.Code != code {
			t.Errorf("cwd %s: %s %s", cwd, r.Outcome, r.Text())
		}
	}
	if _, err := os.Stat(filepath.Join(s.dir, "ran")); err == nil {
		t.Error("a command ran although its folder was refused")
	}
}

// covers PLAN-1 partly
func TestNothingRunsThatIsRefused(t *testing.T) {
	s := open(t, nil)
	for name, r := range map[string]tools.Result{
		"blank description": s.run(t.Context(), "touch ran", "description", "  \n"),
		"no description":    s.runner.Invoke(t.Context(), tools.Call{ID: "1", Name: "bash", Args: `{"command":"touch ran"}`}),
		"policy":            s.run(t.Context(), "touch ran; cat ran"),
		"unknown argument":  s.run(t.Context(), "touch ran", "shell", "zsh"),
		"no command":        s.run(t.Context(), " "),
	} {
		if r.Outcome != tools.Refused {
			t.Errorf("%s: %s %s", name, r.Outcome, r.Text())
		}
	}
	for _, seconds := range []int{-1, 601, 1 << 40} {
		if r := s.run(t.Context(), "touch ran", "timeout_seconds", seconds); r.Err == nil || r.Err.Code != tools.BadArguments {
			t.Errorf("%d seconds: %s %s", seconds, r.Outcome, r.Text())
		}
	}
	if _, err := os.Stat(filepath.Join(s.dir, "ran")); err == nil {
		t.Error("a refused command ran")
	}
}

// The check in the tool itself holds without the runner's.
func TestThePolicyIsAskedAgainBeforeTheStart(t *testing.T) {
	s := open(t, nil)
	b := &bash{cfg: Config{Workspace: folder(s.dir), Proc: s.sup}, path: "/bin/bash"}
	_, err := b.run(t.Context(), Args{Command: "touch ran; cat ran"}, &tools.IO{})
	var te *tools.Error
	if !errors.As(err, &te) || te.Code != tools.NotAllowed {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(s.dir, "ran")); err == nil {
		t.Error("it ran")
	}
}

func TestUnsavedFilesAreNamedFirst(t *testing.T) {
	docs := []string{"a.go", "b/c.go"}
	s := open(t, func(c *Config) { c.Docs = func() []string { return docs } })
	want(t, s.run(t.Context(), "echo x"), tools.OK, "Unsaved editor text was not seen by the command, which read the disk: a.go, b/c.go\nexit code 0 in T\nx")
	docs = strings.Split(strings.Repeat("f ", 12), " ")[:12]
	if r := s.run(t.Context(), "true"); !strings.Contains(r.Text(), "f, f and 2 more\n") {
		t.Errorf("got %s", r.Text())
	}
	docs = nil
	want(t, s.run(t.Context(), "true"), tools.OK, "exit code 0 in T\nno output")
}

// A shell that is started by hand in the test shows that the files would be
// read by one that reads them.
//
// covers TOOL-12
func TestNoStartUpFileIsRead(t *testing.T) {
	home := t.TempDir()
	mark := filepath.Join(home, "mark")
	for _, f := range []string{".bashrc", ".bash_profile", ".profile", ".bash_login", "env"} {
		must(t, os.WriteFile(filepath.Join(home, f), []byte("echo "+f+" >> "+mark+"\n"), 0o644))
	}
	s := open(t, nil, "HOME="+home, "BASH_ENV="+home+"/env", "ENV="+home+"/env", "BASH_FUNC_make%%=() { echo imported; }", "BASH_FUNC_mine%%=() { echo imported; }",
		"PROMPT_COMMAND=echo prompt", "SHELLOPTS=xtrace", "CDPATH=/", "LAKECODE_KEY=canary")
	s.script("mine", "echo file")
	r := s.run(t.Context(), "mine; ./mine; cd tmp; printenv LAKECODE_KEY BASH_ENV ENV")
	if strings.Contains(r.Text(), "imported") || strings.Contains(r.Text(), "canary") || strings.Contains(r.Text(), "+ ") || !strings.Contains(r.Text(), "file\n") || strings.Contains(r.Text(), home) || !strings.Contains(r.Text(), "tmp: No such file") {
		t.Errorf("got %s", r.Text())
	}
	if b, err := os.ReadFile(mark); err == nil {
		t.Errorf("start-up files were read: %s", b)
	}
}

func TestThereIsNoInputAndNoTerminal(t *testing.T) {
	s := open(t, nil)
	s.script("ask", "read -r x; echo \"read $?\"; (: < /dev/tty) 2>&1")
	r := s.run(t.Context(), "./ask; printenv TERM PAGER GIT_TERMINAL_PROMPT")
	if !strings.Contains(r.Text(), "read 1\n") || !strings.Contains(r.Text(), "/dev/tty: No such device") || !strings.HasSuffix(r.Text(), "dumb\ncat\n0") {
		t.Errorf("got %s", r.Text())
	}
}

// deaf ignores SIGTERM, and leaves a process in another session that does too.
const deaf = `trap '' TERM
echo begun
setsid bash -c 'trap "" TERM; echo $$ > away.new; mv away.new away; while :; do sleep 0.1; done' &
echo $$ > here.new; mv here.new here
while :; do sleep 0.1; done`

// covers TOOL-12
func TestCancelEndsTheWholeTree(t *testing.T) {
	s := open(t, nil)
	s.script("deaf", deaf)
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan tools.Result)
	go func() { done <- s.run(ctx, "./deaf; touch after") }()
	here, away := s.pidIn("here"), s.pidIn("away")
	cancel(errors.New("the person stopped it"))
	began := time.Now()
	r := <-done
	if d := time.Since(began); d > 6*time.Second {
		t.Errorf("it took %v to return", d)
	}
	if alive(here) || alive(away) {
		t.Errorf("alive after the result: child %t, setsid grandchild %t", alive(here), alive(away))
	}
	want(t, r, tools.Interrupted, "stopped after T (the person stopped it): the command and everything it had started were ended\nbegun")
	if _, err := os.Stat(filepath.Join(s.dir, "after")); err == nil {
		t.Error("the chain went on")
	}
}

func TestATimeOutEndsTheWholeTreeAndShowsTheOutput(t *testing.T) {
	s := open(t, nil)
	s.script("deaf", deaf)
	r := s.run(t.Context(), "./deaf; touch after", "timeout_seconds", 1)
	if alive(s.pidIn("here")) || alive(s.pidIn("away")) {
		t.Error("something is alive after the result")
	}
	want(t, r, tools.Failed, "timed out after T: the command and everything it had started were ended\nbegun\nRun a smaller part, or raise timeout_seconds (at most 600).")
	if r.Err.Code != tools.TimedOut {
		t.Errorf("code %s", r.Err.Code)
	}
}

// covers TOOL-12
func TestANormalEndLeavesNothingBehind(t *testing.T) {
	s := open(t, nil)
	s.script("leave", `setsid bash -c 'trap "" TERM HUP; echo $$ > away.new; mv away.new away; while :; do sleep 0.1; done' &
while [ ! -f away ]; do sleep 0.01; done
echo done`)
	r := s.run(t.Context(), "./leave")
	if pid := s.pidIn("away"); alive(pid) {
		t.Errorf("process %d is alive after the result", pid)
	}
	if !regexp.MustCompile(`^exit code 0 in \S+ m?s\nIt left processes running, which were ended: .*bash.*\ndone$`).MatchString(r.Text()) {
		t.Errorf("got %s", r.Text())
	}
}

func TestACallThatIsCancelledBeforeDoesNotRun(t *testing.T) {
	s := open(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := s.run(ctx, "touch ran"); r.Outcome != tools.NotRun {
		t.Errorf("%s %s", r.Outcome, r.Text())
	}
	must(t, s.sup.Close(t.Context()))
	if r := s.run(t.Context(), "touch ran"); r.Outcome != tools.Failed || r.Err.Code != tools.Cancelled {
		t.Errorf("%s %s", r.Outcome, r.Text())
	}
	if _, err := os.Stat(filepath.Join(s.dir, "ran")); err == nil {
		t.Error("it ran")
	}
}

// covers TOOL-12
func TestAFloodIsBoundedInTextAndMemory(t *testing.T) {
	s := open(t, nil)
	s.script("flood", "echo first\nyes 'a line of the flood, again and again' 2>/dev/null | head -c 100000000\necho\necho last")
	r := s.run(t.Context(), "./flood")
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	text := r.Text()
	if r.Outcome != tools.OK || len(text) > 31<<10 || len(text) < 28<<10 || m.HeapAlloc > 32<<20 {
		t.Errorf("%s with %d bytes of text and %d of heap", r.Outcome, len(text), m.HeapAlloc)
	}
	if !strings.Contains(text, "\nfirst\n") || !strings.HasSuffix(text, "\nlast") || !regexp.MustCompile(`\n\[\.\.\. 9\d{7} bytes, \d{7} lines left out \.\.\.\]\n`).MatchString(text) {
		t.Errorf("got %s ... %s", text[:100], text[len(text)-100:])
	}
	shown := 0
	for _, p := range s.shown {
		shown += len(p)
		if len(p) > progressPart+10 {
			t.Errorf("a progress text of %d bytes", len(p))
		}
	}
	for i := 1; i < len(s.at); i++ {
		if d := s.at[i].Sub(s.at[i-1]); d < progressEvery-5*time.Millisecond && i < len(s.at)-1 {
			t.Errorf("progress %d came %v after the one before", i, d)
		}
	}
	if len(s.shown) == 0 || !strings.HasSuffix(s.shown[len(s.shown)-1], "last\n") {
		t.Errorf("%d progress texts, the last %q", len(s.shown), s.shown[max(len(s.shown)-1, 0):])
	}
}

func TestProgressComesWhileTheCommandRuns(t *testing.T) {
	s := open(t, nil)
	s.script("wait", "echo begun; printf 'no line end'; while [ ! -f go ]; do sleep 0.01; done; echo; echo done")
	done := make(chan tools.Result)
	go func() { done <- s.run(t.Context(), "./wait") }()
	eventually(t, "progress", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return strings.Join(s.shown, "") == "begun\nno line end"
	})
	must(t, os.WriteFile(filepath.Join(s.dir, "go"), nil, 0o644))
	want(t, <-done, tools.OK, "exit code 0 in T\nbegun\nno line end\ndone")
	if got := strings.Join(s.shown, ""); got != "begun\nno line end\ndone\n" {
		t.Errorf("progress in all: %q", got)
	}
}

func TestWhatTheModelReadsOfTheToolIsShort(t *testing.T) {
	s := open(t, nil)
	spec, ok := s.runner.View().Lookup("bash")
	if n := len(spec.Name) + len(spec.Description) + len(spec.Schema); !ok || n > 1640 {
		t.Errorf("%d bytes", n)
	}
	if !strings.Contains(string(spec.Schema), `"required":["command","description"]`) || spec.Tier != tools.Exec || !spec.NeedsDescription {
		t.Errorf("got %s", spec.Schema)
	}
}

func TestNoBashIsAnError(t *testing.T) {
	s := open(t, func(c *Config) { c.Bash = "/no/such/bash" })
	if r := s.run(t.Context(), "true"); r.Outcome != tools.Failed || !strings.Contains(r.Text(), "bash could not be started") {
		t.Errorf("%s %s", r.Outcome, r.Text())
	}
}

func BenchmarkBash(b *testing.B) {
	sup := proc.New(proc.Config{Run: "bench", Env: os.Environ()})
	defer sup.Close(b.Context())
	sh := &bash{cfg: Config{Workspace: folder(b.TempDir()), Proc: sup}, path: "/bin/bash"}
	for b.Loop() {
		if _, err := sh.run(b.Context(), Args{Command: "true"}, &tools.IO{}); err != nil {
			b.Fatal(err)
		}
	}
}
