package search

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/lakecode/lakecode/tools"
)

func TestResultsAreGroupedByFileInOrder(t *testing.T) {
	f := newFixture(t, map[string]string{
		"b/two.go":  "package b\n\nvar x = needle\n",
		"a.go":      "needle\nother\nneedle again",
		"sub/c.txt": "a Needle\r\n",
	})
	f.check(textArgs{Pattern: "needle"}, `3 matching lines in 2 files (3 files searched)

a.go
1:needle
3:needle again

b/two.go
3:var x = needle
`)
	f.check(textArgs{Pattern: "NEEDLE", Case: "insensitive", Path: "sub"}, `1 matching line in 1 file (1 file searched)

sub/c.txt
1:a Needle
`)
	f.check(textArgs{Pattern: `^needle$|\bx\b`, Regex: true, Glob: "**/*.go"}, `2 matching lines in 2 files (2 files searched)

a.go
1:needle

b/two.go
3:var x = needle
`)
	f.check(textArgs{Pattern: "n.edle"}, "No match for \"n.edle\" in 3 files.\n")
	f.check(textArgs{Pattern: "zzz", Path: f.root + "/b", Glob: "*.go"}, "No match for \"zzz\" in 1 file that fit glob \"*.go\" in b.\n")
}

func TestContextLinesSurroundMatchesOnce(t *testing.T) {
	f := newFixture(t, map[string]string{"a": "1\n2\nhit 3\n4\r\n5\nhit 6\n7\n8\n9\n10\n11\nhit 12"})
	f.check(textArgs{Pattern: "hit", Context: 2}, `3 matching lines in 1 file (1 file searched)

a
1-1
2-2
3:hit 3
4-4
5-5
6:hit 6
7-7
8-8
--
10-10
11-11
12:hit 12
`)
}

// Only a search that looked at something can say that a text is not there.
func TestNothingToSearchIsAnError(t *testing.T) {
	f := newFixture(t, map[string]string{"a.go": "x", "empty/.git/x": "", "built/bin/y": "needle"})
	f.refused(textArgs{Pattern: "x", Glob: "*.rs"}, tools.NotFound, `none of 1 file fits glob "*.rs"`)
	f.refused(textArgs{Pattern: "x", Path: "nowhere"}, tools.NotFound, "nowhere does not exist", "list_directory")
	f.refused(textArgs{Pattern: "x", Path: "built"}, tools.NotFound, "in built that is not in a hidden folder")
	f.refused(textArgs{Pattern: "x", Path: "../up"}, tools.OutsideRoot)
	f.check(textArgs{Pattern: "needle", Path: "built/bin"}, "1 matching line in 1 file (1 file searched)\n\nbuilt/bin/y\n1:needle\n")
}

// covers TOOL-14 partly
func TestLinksAreNotFollowed(t *testing.T) {
	out := newFixture(t, map[string]string{"secret": "needle"})
	f := newFixture(t, map[string]string{"real/a": "needle", "b": "needle"})
	f.link("b", "link-to-file")
	f.link("real", "link-to-folder")
	f.link("..", "real/up")
	f.link(out.root, "link-out")
	f.link("nowhere", "broken")
	f.check(textArgs{Pattern: "needle"}, `2 matching lines in 2 files (2 files searched; skipped: 5 links)

b
1:needle

real/a
1:needle
`)
	// A link that is named is resolved, as by every tool, and stays inside.
	f.check(textArgs{Pattern: "needle", Path: "link-to-folder"}, "1 matching line in 1 file (1 file searched; skipped: 1 link)\n\nreal/a\n1:needle\n")
	f.refused(textArgs{Pattern: "needle", Path: "link-out"}, tools.OutsideRoot)
}

func TestPipesAndSocketsDoNotHangASearch(t *testing.T) {
	f := newFixture(t, map[string]string{"a": "needle"})
	if err := syscall.Mkfifo(f.path("pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(f.root, "sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f.check(textArgs{Pattern: "needle"}, "1 matching line in 1 file (1 file searched; skipped: 2 special files)\n\na\n1:needle\n")
	tracked := repository(t, map[string]string{"a": "needle", "b": "needle"})
	tracked.runGit("", "add", "b")
	if err := errors.Join(os.Remove(tracked.path("b")), syscall.Mkfifo(tracked.path("b"), 0o644)); err != nil {
		t.Fatal(err)
	}
	tracked.check(textArgs{Pattern: "needle"}, "1 matching line in 1 file (1 file searched; skipped: 1 special file)\n\na\n1:needle\n")
	f.refused(textArgs{Pattern: "needle", Path: "pipe"}, tools.Other, "pipe is neither a file nor a folder")
}

func TestOddTextsAreSearchedLineByLine(t *testing.T) {
	f := newFixture(t, map[string]string{
		"crlf":    "one\r\ntwo\r\n",
		"invalid": "\xff\xfe two \x80\n",
		"control": "\x1b[31mtwo\n",
		"nofinal": "one\ntwo",
		"empty":   "",
		"blank":   "\n\n\n",
		"lone-cr": "one\rtwo\n",
	})
	f.check(textArgs{Pattern: `two( .)?$`, Regex: true}, `5 matching lines in 5 files (7 files searched)

control
1:�[31mtwo

crlf
2:two

invalid
1:�� two �

lone-cr
1:one�two

nofinal
2:two
`)
	f.check(textArgs{Pattern: `^$`, Regex: true}, "3 matching lines in 1 file (7 files searched)\n\nblank\n1:\n2:\n3:\n")
}

func TestBadArgumentsSayWhereAndWhatInstead(t *testing.T) {
	f := newFixture(t, map[string]string{"a": "x"})
	for _, c := range []struct {
		args  textArgs
		parts []string
	}{
		{textArgs{}, []string{"pattern is empty"}},
		{textArgs{Pattern: strings.Repeat("x", 5000)}, []string{"5000 bytes"}},
		{textArgs{Pattern: "a\nb"}, []string{"inside one line", "context"}},
		{textArgs{Pattern: `a\nb`, Regex: true}, []string{"inside one line"}},
		{textArgs{Pattern: "x", Case: "smart"}, []string{`case is "smart"`, `"insensitive"`}},
		{textArgs{Pattern: "x", Context: 11}, []string{"context is 11", "read_file"}},
		{textArgs{Pattern: "x", Glob: "a[b"}, []string{`glob "a[b"`}},
		{textArgs{Pattern: `abc(?=x)`, Regex: true}, []string{"at character 4: (?=x)", "RE2", "look-aheads"}},
		{textArgs{Pattern: `é(?<!x)y`, Regex: true}, []string{"at character 2: (?<!x)", "RE2", "look-behinds"}},
		{textArgs{Pattern: `(a)\1`, Regex: true}, []string{`at character 4: \1`, "RE2", "backreferences"}},
		{textArgs{Pattern: `foo(bar`, Regex: true}, []string{"missing closing ) at character 4: (bar", "leave regex out"}},
		{textArgs{Pattern: `[)]\)x)`, Regex: true}, []string{"unexpected ) at character 7: )"}},
		{textArgs{Pattern: `a**`, Regex: true}, []string{"at character 2: **"}},
		{textArgs{Pattern: `x{1001}`, Regex: true}, []string{"at character 2: {1001}"}},
	} {
		f.refused(c.args, tools.BadArguments, c.parts...)
	}
}

func TestGlobsSelectByNameOrPath(t *testing.T) {
	f := newFixture(t, map[string]string{
		"a.go": "x", "a_test.go": "x", "src/b.go": "x", "src/lib/c.go": "x", "src/lib/d.ts": "x",
	})
	for _, c := range []struct {
		path, glob string
		want       []string
	}{
		{"", "*.go", []string{"a.go", "a_test.go", "src/b.go", "src/lib/c.go"}},
		{"", "!*_test.go", []string{"a.go", "src/b.go", "src/lib/c.go", "src/lib/d.ts"}},
		{"", "src/*.go", []string{"src/b.go"}},
		{"", "./src/**/*.{go,ts}", []string{"src/b.go", "src/lib/c.go", "src/lib/d.ts"}},
		{"src", "lib/*", []string{"src/lib/c.go", "src/lib/d.ts"}},
		{"src", "src/lib/", []string{"src/lib/c.go", "src/lib/d.ts"}},
		{"src/lib/d.ts", "", []string{"src/lib/d.ts"}},
	} {
		if diff := cmp.Diff(c.want, f.names(textArgs{Pattern: "x", Path: c.path, Glob: c.glob})); diff != "" {
			t.Errorf("path %q glob %q (-want +got):\n%s", c.path, c.glob, diff)
		}
	}
}

type quiet struct{}

func (quiet) Started(tools.Call, tools.Spec)                      {}
func (quiet) Progress(tools.Call, string)                         {}
func (quiet) Ended(c tools.Call, r tools.Result, _ time.Duration) {}

func TestTheToolRunsThroughTheRunner(t *testing.T) {
	f := newFixture(t, map[string]string{"a.go": "Needle", "b.txt": "needle"})
	s := f.searcher()
	ts, err := New(Config{Workspace: s.tree, Git: f.git, Run: run})
	if err != nil {
		t.Fatal(err)
	}
	var reg tools.Registry
	if err := reg.Add(ts...); err != nil {
		t.Fatal(err)
	}
	r := tools.NewRunner(tools.Config{View: reg.View(tools.Build), Observer: quiet{}, Log: zap.NewNop()})
	res := r.Invoke(t.Context(), tools.Call{ID: "1", Name: "search_text", Args: `{"pattern":"needle","case":"insensitive","glob":"*.go","context":0}`})
	if want := "1 matching line in 1 file (1 file searched)\n\na.go\n1:Needle\n"; res.Text() != want || res.Outcome != tools.OK {
		t.Errorf("%s %q", res.Outcome, res.Text())
	}
	if _, err := New(Config{Workspace: s.tree, Git: "git", Run: run}); err == nil {
		t.Error("a git without an absolute path was taken")
	}
	if info, err := os.Stat(f.git); err != nil || info.IsDir() {
		t.Fatal(err)
	}
}

type panics struct{}

func (panics) visit(context.Context, *folder, string, *tally) error { panic("bug in a worker") }

// The runner makes a result of a panic, which it can only in its own goroutine.
func TestAPanicOfAWorkerReachesTheCall(t *testing.T) {
	f := newFixture(t, map[string]string{"a": "x", "b/c": "x"})
	dir, err := openRoot(f.root, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if p, ok := recover().(error); !ok || !strings.Contains(p.Error(), "bug in a worker") || !strings.Contains(p.Error(), "panics.visit") {
			t.Errorf("recovered %v", p)
		}
	}()
	w := &walk{limits: DefaultLimits()}
	err = w.run(t.Context(), task{dir: dir, kind: plain}, []visitor{panics{}, panics{}})
	t.Errorf("no panic, but %v", err)
}

func TestTheDescriptionIsShort(t *testing.T) {
	ts, err := New(Config{Workspace: newFixture(t, nil).searcher().tree})
	if err != nil {
		t.Fatal(err)
	}
	spec := ts[0].Spec()
	if n := len(spec.Description) + len(spec.Schema); n > 1200 {
		t.Errorf("%d bytes of description and schema:\n%s\n%s", n, spec.Description, spec.Schema)
	}
}
