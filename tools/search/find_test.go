package search

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/lakecode/lakecode/lsp/overlay"
	"github.com/lakecode/lakecode/tools"
)

// findBy returns what the model reads, and the code of the error if it is one.
func findBy(t *testing.T, s *searcher, args findArgs) (string, tools.Code) {
	t.Helper()
	out, err := s.find(t.Context(), args, nil)
	if err == nil {
		return out.Text, ""
	}
	var te *tools.Error
	if !errors.As(err, &te) {
		t.Fatalf("error %T is not for the model: %v", err, err)
	}
	return te.Text + "\n" + te.Next, te.Code
}

func checkFind(t *testing.T, s *searcher, args findArgs, want string) {
	t.Helper()
	got, code := findBy(t, s, args)
	if d := cmp.Diff(want, got); d != "" || code != "" {
		t.Errorf("find %+v: %s (-want +got):\n%s", args, code, d)
	}
}

func refusedFind(t *testing.T, s *searcher, args findArgs, want tools.Code, parts ...string) {
	t.Helper()
	got, code := findBy(t, s, args)
	if code != want {
		t.Errorf("find %+v: code %q, want %q: %s", args, code, want, got)
	}
	for _, p := range parts {
		if !strings.Contains(got, p) {
			t.Errorf("find %+v: %q lacks %q", args, got, p)
		}
	}
}

// covers TOOL-14 partly
func TestFindFollowsTheSameRulesAsSearch(t *testing.T) {
	files := map[string]string{
		".gitignore": "*.log\n/out/\n/gen/\n!keep.log\n",
		"a.go":       "x", "a.log": "x", "keep.log": "x", "sub/b.go": "x", "sub/.hidden.go": "x",
		"out/x.go": "x", "gen/x.go": "x", "node_modules/m/x.go": "x", "nested/.gitignore": "*.tmp\n", "nested/n.go": "x", "nested/n.tmp": "x", "nested/n.log": "x",
		"sub/own/.gitignore": "c.go\n", "sub/own/c.go": "x", "sub/own/d.go": "x",
	}
	f := repository(t, files)
	f.runGit("nested", "init", "-q")
	f.write("out/tracked.go", "x")
	f.write("bin/tracked.go", "x")
	f.write("bin/built.go", "x")
	f.runGit("", "add", "-f", "out/tracked.go", "bin/tracked.go", "a.go")
	f.write("gone.go", "x")
	f.runGit("", "add", "gone.go")
	if err := os.Remove(f.path("gone.go")); err != nil {
		t.Fatal(err)
	}
	f.link("a.go", "link.go")
	f.link("sub", "linked")
	s := f.searcher()
	want := "a.go\nbin/tracked.go\nnested/n.go\nout/tracked.go\nsub/.hidden.go\nsub/b.go\nsub/own/d.go\n"
	checkFind(t, s, findArgs{Glob: "*.go"}, "7 of 12 files match glob \"*.go\"\n"+want)
	checkFind(t, s, findArgs{Glob: "*.go", Path: "linked"}, "3 of 4 files in sub match glob \"*.go\"\nsub/.hidden.go\nsub/b.go\nsub/own/d.go\n")
	// What a path names is looked into, ignored or not.
	checkFind(t, s, findArgs{Query: "x", Path: "gen"}, "1 of 1 file in gen match \"x\", best first\ngen/x.go\n")
	checkFind(t, s, findArgs{Glob: "*", Path: "out"}, "1 of 1 file in out match glob \"*\"\nout/tracked.go\n")
	checkFind(t, s, findArgs{Query: "xgo", Path: "node_modules"}, "1 of 1 file in node_modules match \"xgo\", best first\nnode_modules/m/x.go\n")
	refusedFind(t, s, findArgs{Query: "x", Path: "../"}, tools.OutsideRoot)
	// Search looks at the same files.
	f.finds(textArgs{Pattern: "x", Glob: "*.go"}, strings.Fields(want)...)
}

func TestFindWithoutAWorkTree(t *testing.T) {
	f := newFixture(t, map[string]string{"a.go": "", "d/b.go": "", "bin/c.go": "", "d/node_modules/x.go": "", "d/e.txt": ""})
	f.link("/etc", "outside")
	s := f.searcher()
	checkFind(t, s, findArgs{Glob: "**"}, "3 of 3 files match glob \"**\"\na.go\nd/b.go\nd/e.txt\n")
	checkFind(t, s, findArgs{Query: "b", Glob: "!*.txt"}, "1 of 2 files that fit glob \"!*.txt\" match \"b\", best first\nd/b.go\n")
	checkFind(t, s, findArgs{Glob: "*.{go,txt}", Path: "d"}, "2 of 2 files in d match glob \"*.{go,txt}\"\nd/b.go\nd/e.txt\n")
	checkFind(t, s, findArgs{Glob: "d/*.go"}, "1 of 3 files match glob \"d/*.go\"\nd/b.go\n")
}

// "Nothing" is three different things.
func TestTheKindsOfNothingAreToldApart(t *testing.T) {
	f := newFixture(t, map[string]string{"a.go": "", "b.go": "", "c.md": "", "bin/x": ""})
	if err := os.MkdirAll(f.path("empty/bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := f.searcher()
	checkFind(t, s, findArgs{Query: "zz"}, "No path fits query \"zz\" among 3 files.\n")
	checkFind(t, s, findArgs{Query: "md", Glob: "*.go"}, "No path fits query \"md\" among 2 files that fit glob \"*.go\".\n")
	checkFind(t, s, findArgs{Query: "a", Glob: "*.rs"}, "No path fits glob \"*.rs\" among 3 files.\n")
	refusedFind(t, s, findArgs{Query: "a", Path: "empty"}, tools.NotFound, "Nothing was looked at: there is no file in empty that is not in a hidden folder", "Name the folder in path")
	refusedFind(t, s, findArgs{Query: "a", Path: "none"}, tools.NotFound, "none does not exist")
	refusedFind(t, s, findArgs{Query: "a", Path: "a.go"}, tools.BadArguments, "a.go is a file")
	refusedFind(t, s, findArgs{Query: " / "}, tools.BadArguments, "neither a query nor a glob")
	refusedFind(t, s, findArgs{Query: "a", Limit: 201}, tools.BadArguments, "1 to 200")
	refusedFind(t, s, findArgs{Query: "a", Limit: -1}, tools.BadArguments, "1 to 200")
	refusedFind(t, s, findArgs{Query: strings.Repeat("a", 201)}, tools.BadArguments, "201 bytes")
	refusedFind(t, s, findArgs{Glob: "[a"}, tools.BadArguments, "not a valid pattern")
}

func TestFindIsBoundedAndSaysSo(t *testing.T) {
	files := map[string]string{}
	for i := range 250 {
		files[fmt.Sprintf("f%03d.go", i)] = ""
	}
	f := newFixture(t, files)
	s := f.searcher()
	got, _ := findBy(t, s, findArgs{Query: "f"})
	if !strings.HasPrefix(got, "250 of 250 files match \"f\", best first\nf000.go\n") || strings.Count(got, ".go\n") != 50 ||
		!strings.HasSuffix(got, "f049.go\n[cut: 50 of 250 paths shown; narrow with a longer query, glob or path, or limit up to 200]\n") {
		t.Errorf("got %s", got)
	}
	got, _ = findBy(t, s, findArgs{Glob: "*", Limit: 200})
	if strings.Count(got, ".go\n") != 200 || !strings.HasSuffix(got, "f199.go\n[cut: 200 of 250 paths shown; narrow with a longer query, glob or path]\n") {
		t.Errorf("got %s", got)
	}
	// More than can be looked at is an error, not a shorter list.
	f.limits = Limits{Entries: 249}
	refusedFind(t, f.searcher(), findArgs{Query: "f"}, tools.TooLarge, "more than 249 files and folders", "says nothing about whether the file is there")
	f.limits = Limits{Time: time.Nanosecond}
	refusedFind(t, f.searcher(), findArgs{Query: "f"}, tools.TimedOut, "given up after 1ns", "says nothing")
}

func TestStoppingAFindIsNoAnswer(t *testing.T) {
	f := repository(t, map[string]string{"a": ""})
	for _, warm := range []bool{false, true} {
		s := f.searcher()
		if warm {
			keptListing(t, f, s)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("stopped by the person"))
		_, err := s.find(ctx, findArgs{Query: "a"}, nil)
		var te *tools.Error
		if !errors.As(err, &te) || te.Code != tools.Cancelled || !strings.Contains(te.Text, "stopped by the person") {
			t.Errorf("warm %v: error %v", warm, err)
		}
	}
}

// covers TOOL-4 partly
func TestNewFilesOfTheEditorAreFound(t *testing.T) {
	f := repository(t, map[string]string{".gitignore": "*.log\n", "sub/on_disk.go": "", "open.log": "", "shut.log": ""})
	f.open("sub/new.go", "x")
	f.open("fresh/new.go", "x")
	f.open("sub/on_disk.go", "changed")
	f.open("open.log", "")
	f.docs.Open(overlay.Doc{URI: "file:///elsewhere/new.go", Version: 1})
	f.docs.Open(overlay.Doc{URI: "untitled:new", Version: 1})
	s := f.searcher()
	const note = "  (only in the editor, not saved)\n"
	checkFind(t, s, findArgs{Query: "new"}, "2 of 5 files match \"new\", best first\nsub/new.go"+note+"fresh/new.go"+note)
	checkFind(t, s, findArgs{Glob: "*.{go,log}"}, "4 of 5 files match glob \"*.{go,log}\"\nfresh/new.go"+note+"open.log\nsub/new.go"+note+"sub/on_disk.go\n")
	checkFind(t, s, findArgs{Query: "go", Path: "sub"}, "2 of 2 files in sub match \"go\", best first\nsub/new.go"+note+"sub/on_disk.go\n")
}

func TestOddNamesStayOnOneLine(t *testing.T) {
	f := repository(t, map[string]string{"two\nlines.go": "", "bad\xffname.go": "", "tab\t.go": "", `quo"te.go`: "", "-dash.go": "", ":colon.go": "", "日本.go": ""})
	want := "7 of 7 files match glob \"*.go\"\n-dash.go\n:colon.go\n\"bad\\xffname.go\"\nquo\"te.go\n\"tab\\t.go\"\n\"two\\nlines.go\"\n日本.go\n"
	checkFind(t, f.searcher(), findArgs{Glob: "*.go"}, want)
	if err := os.RemoveAll(f.path(".git")); err != nil {
		t.Fatal(err)
	}
	checkFind(t, f.searcher(), findArgs{Glob: "*.go"}, want)
}

func TestAFolderOfManyFilesIsListedWhole(t *testing.T) {
	f := repository(t, nil)
	for i := range 5000 {
		if err := unix.Mknod(f.path(fmt.Sprintf("file%04d", i)), unix.S_IFREG|0o644, 0); err != nil {
			t.Fatal(err)
		}
	}
	checkFind(t, f.searcher(), findArgs{Query: "file4999"}, "1 of 5000 files match \"file4999\", best first\nfile4999\n")
}

func TestFindSaysWhenRulesWereNotApplied(t *testing.T) {
	f := repository(t, map[string]string{".gitignore": "*.log\n", "a.log": ""})
	f.git = ""
	checkFind(t, f.searcher(), findArgs{Query: "a.log"}, "1 of 2 files match \"a.log\", best first\nThe ignore rules of this work tree were not applied (git is not installed).\na.log\n")
}

// What a model pays for the tool in every request.
func TestTheDescriptionOfFindIsShort(t *testing.T) {
	f := newFixture(t, nil)
	ts, err := New(Config{Workspace: f.searcher().tree})
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range ts {
		spec := tool.Spec()
		if spec.Name != "find_files" {
			continue
		}
		if n := len(spec.Description) + len(spec.Schema); n > 1126 || len(spec.Schema) < 100 {
			t.Errorf("%d bytes of description, %d of schema", len(spec.Description), len(spec.Schema))
		}
		return
	}
	t.Error("there is no find_files")
}

// names returns the paths of a result in one line.
func names(text string) string {
	_, list, _ := strings.Cut(text, "\n")
	return strings.Join(strings.Fields(list), " ")
}
