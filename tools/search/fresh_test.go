package search

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// keptListing makes s list the whole workspace so that the listing is kept.
func keptListing(t *testing.T, f *fixture, s *searcher) *listing {
	t.Helper()
	s.lists.settle = 100 * time.Millisecond
	deadline := time.Now().Add(20 * time.Second)
	for time.Now().Before(deadline) {
		if _, code := findBy(t, s, findArgs{Glob: "**"}); code != "" {
			t.Fatal(code)
		}
		if l := s.lists.get("."); l != nil {
			return l
		}
		time.Sleep(s.lists.settle / 2)
	}
	t.Fatal("no listing was kept")
	return nil
}

// A listing that is used again is never older than the disk: whatever changes
// what would be listed, the next call shows it.
func TestAKeptListingIsNeverStale(t *testing.T) {
	home := t.TempDir()
	for _, c := range []struct {
		name   string
		change func(f *fixture)
		want   string
	}{
		{"a file comes", func(f *fixture) { f.write("new.go", "") }, "a.go b/c.go new.go"},
		{"a file comes into a folder", func(f *fixture) { f.write("b/new.go", "") }, "a.go b/c.go b/new.go"},
		{"a file comes into an empty folder", func(f *fixture) { f.write("empty/deep/new.go", "") }, "a.go b/c.go empty/deep/new.go"},
		{"a file comes into a folder of ignored ones", func(f *fixture) { f.write("logs/new.go", "") }, "a.go b/c.go logs/new.go"},
		{"a file goes", func(f *fixture) { f.remove("b/c.go") }, "a.go"},
		{"a folder is renamed", func(f *fixture) { f.rename("b", "z") }, "a.go z/c.go"},
		{"a file becomes a link", func(f *fixture) { f.remove("a.go"); f.link("b/c.go", "a.go") }, "b/c.go"},
		{"the rules change in place", func(f *fixture) { f.write(".gitignore", "c.*\nskip/\n*.lo?\n") }, "a.go"},
		{"rules come into a folder", func(f *fixture) { f.write("b/.gitignore", "*") }, "a.go"},
		{"rules of the repository change", func(f *fixture) { f.write(".git/info/exclude", "a.*\n") }, "b/c.go"},
		{"rules of the person change", func(f *fixture) { write(f.t, filepath.Join(home, "rules"), "a.*\n") }, "b/c.go"},
		{"the configuration names other rules", func(f *fixture) {
			f.write(".git/other", "b/\n")
			f.runGit("", "config", "core.excludesFile", f.path(".git/other"))
		}, "a.go"},
		{"an ignored file is tracked", func(f *fixture) { f.runGit("", "add", "-f", "logs/x.log") }, "a.go b/c.go logs/x.log"},
		{"the work tree gets another repository", func(f *fixture) {
			f.rename(".git", "../.git-"+filepath.Base(f.root))
			f.write(".git", "gitdir: ../.git-"+filepath.Base(f.root)+"\n")
			f.write("../.git-"+filepath.Base(f.root)+"/info/exclude", "a.*\n.git-*\n")
		}, "b/c.go"},
		{"a folder becomes a repository", func(f *fixture) {
			f.runGit("b", "init", "-q")
			f.write("b/.git/info/exclude", "c.go\n")
		}, "a.go"},
		{"the repository goes", func(f *fixture) { f.remove(".git") }, "a.go b/c.go logs/x.log skip/y"},
		{"an ignored folder changes", func(f *fixture) { f.write("skip/z", "") }, "a.go b/c.go"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := repository(t, map[string]string{".gitignore": "skip/\n*.log\n", "a.go": "", "b/c.go": "", "logs/x.log": "", "skip/y": ""})
			if err := os.MkdirAll(f.path("empty/deep"), 0o755); err != nil {
				t.Fatal(err)
			}
			if c.name == "rules of the person change" {
				f.runGit("", "config", "core.excludesFile", filepath.Join(home, "rules"))
			}
			s := f.searcher()
			kept := keptListing(t, f, s)
			again, err := s.list(t.Context(), place{f.root, ".", false})
			if err != nil || again != kept {
				t.Fatalf("nothing changed, and there is another listing: %v", err)
			}
			c.change(f)
			got, _ := findBy(t, s, findArgs{Glob: "!{.gitignore,exclude}"})
			if d := cmp.Diff(c.want, names(got)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

// A change in the same moment as the listing leaves the times as they are: a
// listing of what has just changed is not kept.
func TestAListingOfFreshFoldersIsNotKept(t *testing.T) {
	f := newFixture(t, map[string]string{"a": ""})
	s := f.searcher()
	if _, code := findBy(t, s, findArgs{Glob: "**"}); code != "" || s.lists.get(".") != nil {
		t.Errorf("%s, kept %v", code, s.lists.get("."))
	}
}

func TestAListingWithRemarksIsNotKept(t *testing.T) {
	f := repository(t, map[string]string{"a": ""})
	f.git = ""
	s := f.searcher()
	s.lists.settle = -time.Hour // everything counts as old
	l, err := s.list(t.Context(), place{f.root, ".", false})
	if err != nil || len(l.notes) != 1 || s.lists.get(".") != nil {
		t.Errorf("%v, notes %q, kept %v", err, l.notes, s.lists.get("."))
	}
}

// Where no configuration names a file of rules, the person's usual one counts.
func TestTheUsualRulesOfThePersonAreWatched(t *testing.T) {
	f := repository(t, map[string]string{"a": ""})
	s := f.searcher()
	s.lists.rules = filepath.Join(t.TempDir(), "ignore")
	kept := keptListing(t, f, s)
	write(t, s.lists.rules, "b\n")
	if l, err := s.list(t.Context(), place{f.root, ".", false}); err != nil || l == kept {
		t.Errorf("the same listing, %v", err)
	}
}

func TestTheListingsOfTwoPlacesAreKept(t *testing.T) {
	var l lists
	one, two, three := &listing{}, &listing{}, &listing{}
	l.put(".", one)
	l.put("a", two)
	if l.get(".") != one || l.get("a") != two || l.get("b") != nil {
		t.Error("two are not kept")
	}
	l.put("b", three)
	if l.get(".") != nil || l.get("a") != two || l.get("b") != three {
		t.Error("the oldest is kept, or a newer one is not")
	}
	l.put("a", nil)
	if l.get("a") != nil || l.get("b") != three {
		t.Error("another was dropped")
	}
}

// covers TOOL-14 partly
func TestRulesTellWhatIsIgnored(t *testing.T) {
	f := repository(t, map[string]string{
		".gitignore": "*.log\nout/\n\"quo*\n", "a.go": "", "a.log": "", "ab.log": "", "a*.log": "", "out/x": "", "sub/b.log": "", "sub/out/y": "",
		"two\nlines.log": "", "bad\xff.log": "", `"quoted.txt`: "", ":c.log": "", "-d.log": "", "kept/out/z": "",
		"nested/.gitignore": "*.go\n", "nested/n.go": "", "nested/n.log": "",
	})
	f.runGit("nested", "init", "-q")
	f.runGit("", "add", "-f", "ab.log", "kept/out/z")
	rules, err := NewRules(Config{Git: f.git, Run: run})
	if err != nil {
		t.Fatal(err)
	}
	check := func(dir string, want []string, paths ...string) {
		t.Helper()
		got, err := rules.Ignored(t.Context(), f.path(dir), append(paths, want...))
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]bool{}
		for _, w := range want {
			all[w] = true
		}
		if d := cmp.Diff(all, got); d != "" {
			t.Errorf("in %q (-want +got):\n%s", dir, d)
		}
	}
	check("", []string{"a.log", "a*.log", "out", "sub/b.log", "two\nlines.log", "bad\xff.log", `"quoted.txt`, ":c.log", "-d.log", "nested/n.go"},
		"a.go", "sub", "ab.log", "kept", "kept/out", "nested", "nested/n.log")
	check("sub", []string{"b.log", "out"})
	check("out", nil, "x")
	check("sub/out", nil, "y")
	check("nested", []string{"n.go"}, "n.log", ".gitignore")
	check("kept/out", nil, "z")
	f.write(".git/config", "[core\n")
	if _, err := rules.Ignored(t.Context(), f.root, []string{"a.go"}); err == nil {
		t.Error("a repository that git cannot read has rules")
	}
	without, err := NewRules(Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := without.Ignored(t.Context(), f.root, []string{"a.go"}); err == nil {
		t.Error("rules without git")
	}
	if got, err := without.Ignored(t.Context(), t.TempDir(), []string{"a.go"}); err != nil || got != nil {
		t.Errorf("outside of work trees: %v %v", got, err)
	}
}

func write(tb testing.TB, name, text string) {
	tb.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		tb.Fatal(err)
	}
}

func (f *fixture) remove(name string) {
	f.t.Helper()
	if err := os.RemoveAll(f.path(name)); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) rename(from, to string) {
	f.t.Helper()
	if err := os.Rename(f.path(from), f.path(to)); err != nil {
		f.t.Fatal(err)
	}
}
