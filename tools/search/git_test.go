package search

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func repository(t *testing.T, files map[string]string) *fixture {
	t.Helper()
	f := newFixture(t, files)
	f.runGit("", "init", "-q")
	return f
}

func (f *fixture) finds(args textArgs, want ...string) {
	f.t.Helper()
	if diff := cmp.Diff(want, f.names(args)); diff != "" {
		f.t.Errorf("search %+v (-want +got):\n%s", args, diff)
	}
}

// covers TOOL-14 partly
func TestIgnoreRulesOfAWorkTreeHold(t *testing.T) {
	f := repository(t, map[string]string{
		".gitignore":            "*.log\n/out/\n!keep.log\n",
		"a.go":                  "x",
		"a.log":                 "x",
		"keep.log":              "x",
		"out/gen.go":            "x",
		"out/deep/gen.go":       "x",
		"sub/.gitignore":        "local\n",
		"sub/local":             "x",
		"sub/other":             "x",
		"tracked.log":           "x",
		"bin/script":            "x",
		"node_modules/m/i.js":   "x",
		"gone":                  "x",
		"was-file":              "x",
		"was-folder/x":          "x",
		".github/workflow.yml":  "x",
		"name with \n newline":  "x",
		"name \xff not utf8":    "x",
		"out-of-order/a":        "x",
		"out.of/b":              "x",
		".git/info/exclude":     "excluded\n",
		"excluded":              "x",
		"sub/node_modules/x/y":  "x",
		"deep/1/2/3/4/5/6/file": "x",
		":(top)*/a":             "x",
		":(top)*/a.log":         "x",
	})
	f.runGit("", "add", "-f", "tracked.log", "bin/script", "gone", "was-file", "was-folder/x")
	if err := errors.Join(os.Remove(f.path("gone")), os.Remove(f.path("was-file")), os.RemoveAll(f.path("was-folder"))); err != nil {
		t.Fatal(err)
	}
	f.write("was-file/now-folder", "x")
	f.write("was-file/now.log", "x")
	f.write("was-folder", "x")
	f.finds(textArgs{Pattern: "x"},
		".github/workflow.yml", ":(top)*/a", "a.go", "bin/script", "deep/1/2/3/4/5/6/file", "keep.log",
		"name with \n newline", "name \xff not utf8", "out-of-order/a", "out.of/b",
		"sub/other", "tracked.log", "was-file/now-folder", "was-folder")
	// A folder inside the work tree is searched by the same rules.
	f.finds(textArgs{Pattern: "x", Path: "sub"}, "sub/other")
	f.finds(textArgs{Pattern: "x", Path: ":(top)*"}, ":(top)*/a")
	f.finds(textArgs{Pattern: "x", Path: "deep/1/2"}, "deep/1/2/3/4/5/6/file")
	// What is named is searched, ignored or not.
	f.finds(textArgs{Pattern: "x", Path: "out"}, "out/deep/gen.go", "out/gen.go")
	f.finds(textArgs{Pattern: "x", Path: "out/deep"}, "out/deep/gen.go")
	f.finds(textArgs{Pattern: "x", Path: "a.log"}, "a.log")
	f.finds(textArgs{Pattern: "x", Path: "node_modules"}, "node_modules/m/i.js")
	f.finds(textArgs{Pattern: "x", Path: "sub/node_modules/x"}, "sub/node_modules/x/y")
	f.finds(textArgs{Pattern: "excluded", Path: ".git/info"}, ".git/info/exclude")
}

func TestRepositoriesInsideAreWalkedByTheirOwnRules(t *testing.T) {
	f := repository(t, map[string]string{
		".gitignore":            "*.log\n/ignored/\n",
		"a":                     "x",
		"nested/.gitignore":     "*.tmp\n",
		"nested/a.tmp":          "x",
		"nested/a.log":          "x", // no rule of the outer one reaches in
		"nested/bin/tool":       "x",
		"library/.gitignore":    "*.tmp\n",
		"library/a.tmp":         "x",
		"library/src/a":         "x",
		"ignored/repo/a":        "x",
		"ignored/repo/out/a":    "x",
		"ignored/repo/.gitkeep": "",
	})
	f.runGit("nested", "init", "-q")
	f.runGit("library", "init", "-q")
	f.runGit("library", "add", ".gitignore", "src/a")
	f.runGit("library", "commit", "-q", "-m", "x")
	f.runGit("", "clone", "-q", "library", "module")
	f.runGit("", "-c", "advice.addEmbeddedRepo=false", "add", "module", "a")
	f.write("module/b.tmp", "x")
	f.write("module/c", "x")
	f.finds(textArgs{Pattern: "x"}, "a", "library/src/a", "module/c", "module/src/a", "nested/a.log")
	f.finds(textArgs{Pattern: "x", Path: "module"}, "module/c", "module/src/a")
	f.finds(textArgs{Pattern: "x", Path: "module/src"}, "module/src/a")
	// A folder of repositories that is none itself.
	f.runGit("ignored/repo", "init", "-q")
	f.write("ignored/repo/.gitignore", "out\n")
	f.finds(textArgs{Pattern: "x", Path: "ignored"}, "ignored/repo/a")
}

func TestAWorkspaceInsideALargerWorkTreeFollowsItsRules(t *testing.T) {
	outer := repository(t, map[string]string{".gitignore": "*.log\n/whole/\n", "part/a": "x", "part/a.log": "x", "whole/a": "x", "whole/a.log": "x", "b": "x"})
	part := *outer
	part.root = outer.path("part")
	part.finds(textArgs{Pattern: "x"}, "a")
	// The outer repository (of dotfiles, say) ignores the workspace: it has no say.
	whole := *outer
	whole.root = outer.path("whole")
	whole.finds(textArgs{Pattern: "x"}, "a", "a.log")
}

func TestWithoutAWorkingGitTheResultSaysThatRulesWereNotApplied(t *testing.T) {
	f := repository(t, map[string]string{".gitignore": "*.log\n", "a.log": "x", "obj/b": "x", "sub/c": "y"})
	without := *f
	without.git = ""
	without.check(textArgs{Pattern: "x"}, `1 matching line in 1 file (3 files searched)
The ignore rules of this work tree were not applied (git is not installed).

a.log
1:x
`)
	f.write(".git/config", "[core\n")
	got, code := f.search(textArgs{Pattern: "zzz"})
	if code != "" || !strings.Contains(got, "No match for \"zzz\" in 3 files.\nThe ignore rules of this work tree were not applied (") || !strings.Contains(got, "bad config") {
		t.Errorf("%s %s", code, got)
	}
	got, code = f.search(textArgs{Pattern: "y", Path: "sub"})
	if code != "" || !strings.Contains(got, "sub/c\n1:y\n") || !strings.Contains(got, "were not applied") {
		t.Errorf("%s %s", code, got)
	}
}

// What a repository configures does not run because the repository is looked at.
//
// covers TOOL-14 partly
func TestLookingAtARepositoryRunsNothingOfIts(t *testing.T) {
	f := repository(t, map[string]string{
		"a.txt": "x", "b.txt": "x", ".gitattributes": "* filter=evil diff=evil merge=evil\n", "sub/c": "x", "sub/deep/d": "x",
	})
	marker := filepath.Join(t.TempDir(), "ran")
	script := f.path("evil.sh")
	f.write("evil.sh", "#!/bin/sh\necho \"$0 $*\" >> '"+marker+"'\ncat\n")
	hooks := f.path("hooks")
	for _, h := range []string{"post-index-change", "fsmonitor-watchman", "pre-commit", "post-checkout", "reference-transaction"} {
		f.write("hooks/"+h, "#!/bin/sh\necho hook >> '"+marker+"'\n")
		if err := os.Chmod(filepath.Join(hooks, h), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(script, 0o755); err != nil {
		t.Fatal(err)
	}
	f.runGit("", "add", "a.txt")
	for _, kv := range [][2]string{
		{"core.fsmonitor", script},
		{"core.hooksPath", hooks},
		{"core.pager", script},
		{"pager.ls-files", script},
		{"diff.external", script},
		{"diff.evil.textconv", script},
		{"diff.evil.command", script},
		{"filter.evil.clean", script},
		{"filter.evil.smudge", script},
		{"filter.evil.process", script},
		{"filter.evil.required", "true"},
		{"core.editor", script},
		{"core.sshCommand", script},
		{"core.gitProxy", script},
		{"core.askPass", script},
		{"credential.helper", "!" + script},
		{"alias.ls-files", "!" + script},
		{"alias.check-ignore", "!" + script},
		{"alias.config", "!" + script},
		{"alias.rev-parse", "!" + script},
		{"core.excludesFile", "|" + script},
		{"core.untrackedCache", "true"},
		{"extensions.partialClone", "origin"},
		{"remote.origin.url", "ext::" + script},
		{"remote.origin.promisor", "true"},
		{"remote.origin.uploadpack", script},
		{"protocol.ext.allow", "always"},
		{"uploadpack.packObjectsHook", script},
		{"trace2.eventTarget", marker + "-trace"},
	} {
		f.runGit("", "-c", "core.fsmonitor=false", "config", kv[0], kv[1])
	}
	later := f.path("a.txt")
	if err := os.WriteFile(later, []byte("x changed"), 0o644); err != nil { // the index has to be looked at again
		t.Fatal(err)
	}
	// Planted: a bare repository among the files, one in a folder without
	// anything else, and a .git file that leads to a repository elsewhere.
	evil := "[core]\n\trepositoryformatversion = 0\n\tbare = true\n\tfsmonitor = " + script + "\n\tworktree = ..\n"
	for _, dir := range []string{"bare", "sub"} {
		f.write(dir+"/HEAD", "ref: refs/heads/main\n")
		f.write(dir+"/config", evil)
		f.write(dir+"/objects/.keep", "")
		f.write(dir+"/refs/.keep", "")
	}
	elsewhere := repository(t, map[string]string{"outside-secret": "x"})
	elsewhere.runGit("", "add", "outside-secret")
	elsewhere.runGit("", "config", "core.fsmonitor", script)
	elsewhere.runGit("", "config", "core.worktree", elsewhere.root)
	f.write("lead/.git", "gitdir: "+elsewhere.path(".git")+"\n")
	f.write("lead/own", "x")

	s, rules := f.searcher(), &Rules{&git{f.git, run}}
	for _, path := range []string{"", "sub", "sub/deep", "bare", "lead", "a.txt"} {
		got, code := f.search(textArgs{Pattern: "x", Path: path})
		if code != "" {
			t.Errorf("path %q: %s %s", path, code, got)
		}
		if path != "a.txt" {
			for range 2 { // the second may use the first one's listing
				names, code := findBy(t, s, findArgs{Glob: "**", Path: path})
				if code != "" {
					t.Errorf("find in %q: %s %s", path, code, names)
				}
				got += names
			}
			if _, err := rules.Ignored(t.Context(), f.path(path), []string{"a.txt", "HEAD", "objects", "deep/d"}); err != nil {
				t.Errorf("rules in %q: %v", path, err)
			}
		}
		if strings.Contains(got, "outside-secret\n") {
			t.Errorf("path %q: found what is outside:\n%s", path, got)
		}
	}
	keptListing(t, f, s) // and what looks whether it still holds
	if !s.lists.get(".").watch.holds(t.Context(), s.git) {
		t.Error("the listing does not hold")
	}
	for _, m := range []string{marker, marker + "-trace"} {
		if b, err := os.ReadFile(m); err == nil {
			t.Errorf("the repository ran something: %s", b)
		}
	}
	// The trap works: git alone falls into it.
	_, _ = run(t.Context(), []string{f.git, "ls-files", "-co"}, f.root)
	if _, err := os.Stat(marker); err != nil {
		t.Error("the fixture runs nothing even when git is asked without care")
	}
}

func TestGitVariablesOfTheEnvironmentLeadNowhere(t *testing.T) {
	other := repository(t, map[string]string{"other": "x"})
	other.runGit("", "add", "other")
	f := repository(t, map[string]string{".gitignore": "*.log\n", "a": "x", "a.log": "x"})
	script := f.path("evil.sh")
	f.write("evil.sh", "#!/bin/sh\ntouch '"+f.path("ran")+"'\n")
	if err := os.Chmod(script, 0o755); err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]string{
		"GIT_DIR": other.path(".git"), "GIT_WORK_TREE": other.root, "GIT_INDEX_FILE": other.path(".git/index"),
		"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": script,
		"GIT_CONFIG_PARAMETERS": "'core.fsmonitor'='" + script + "'", "GIT_CEILING_DIRECTORIES": "/",
		"GIT_TRACE2_EVENT": f.path("trace"), "GIT_LITERAL_PATHSPECS": "nonsense",
	} {
		t.Setenv(k, v)
	}
	f.git = program(t, "git")
	f.finds(textArgs{Pattern: "x"}, "a")
	for _, name := range []string{"ran", "trace"} {
		if _, err := os.Stat(f.path(name)); err == nil {
			t.Errorf("%s was written", name)
		}
	}
}

// An index can name anything; only what is really below the folder is opened.
func TestPathsFromGitCannotLeaveTheFolder(t *testing.T) {
	out := newFixture(t, map[string]string{"secret": "needle"})
	f := repository(t, map[string]string{"a": "needle", "sub/b": "needle"})
	f.link(out.root, "to-out")
	f.link(out.path("secret"), "to-file")
	s := f.searcher()
	s.git.run = func(context.Context, []string, string) ([]byte, error) {
		list := []string{
			"a", "../" + filepath.Base(out.root) + "/secret", "sub/../../x/secret", "/etc/passwd", "to-out/secret", "to-file",
			"sub/b", "sub//b", "./a", ".git/config", "sub/.", "a/b/c", "missing/c", "",
		}
		return []byte(strings.Join(list, "\x00") + "\x00"), nil
	}
	at, err := s.place("")
	if err != nil {
		t.Fatal(err)
	}
	j, err := textArgs{Pattern: "needle|core|root", Regex: true}.job(s.limits, "")
	if err != nil {
		t.Fatal(err)
	}
	found, err := s.run(t.Context(), j, at)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, h := range found.files {
		got = append(got, h.rel)
	}
	if diff := cmp.Diff([]string{"a", "sub/b"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestStoppingEndsGitToo(t *testing.T) {
	f := repository(t, map[string]string{"a": "x"})
	s := f.searcher()
	s.git.run = func(ctx context.Context, _ []string, _ string) ([]byte, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	s.limits.Time = 20_000_000
	_, err := s.text(t.Context(), textArgs{Pattern: "x"}, nil)
	if err == nil || !strings.Contains(err.Error(), "given up after 20ms") {
		t.Errorf("error %v", err)
	}
}
