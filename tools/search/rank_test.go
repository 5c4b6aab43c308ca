package search

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// projectPaths are like those of a project of many kinds of files.
var projectPaths = strings.Fields(`
README.md
Makefile
go.mod
cmd/server/main.go
cmd/client/main.go
cmd/client/main_test.go
agent/loop/turn.go
agent/loop/turn_test.go
agent/convo/return.go
internal/session/index.go
internal/session/index_test.go
internal/session/session.go
internal/search/walk.go
internal/search/searcher.go
internal/tokens/token_buffer.go
internal/text/broken_turf.go
web/src/components/UserController.tsx
web/src/components/UserCard.tsx
web/src/components/index.tsx
web/src/index.ts
web/src/user/controller/setup.ts
web/src/api/users.ts
web/package.json
web/test/user_controller_test.ts
docs/architecture.md
docs/user-guide.md
docs/über-uns.md
docs/日本語.md
vendor/github.com/some/session/index/doc.go
scripts/release.sh
scripts/re/lease/setup.py
testdata/HTTPServer2.golden
`)

func best(t *testing.T, paths []string, query string, n int) []string {
	t.Helper()
	p, err := findArgs{Query: query, Limit: n}.pick("")
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.from(t.Context(), newPathList(paths))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, h := range got.hits {
		out = append(out, h.path)
	}
	return out
}

// A person who looks at the list and the query would put these first.
func TestTheBestPathsComeFirst(t *testing.T) {
	for query, want := range map[string]string{
		"Makefile":            "Makefile",
		"make":                "Makefile",
		"mkfl":                "Makefile",
		"turn":                "agent/loop/turn.go agent/loop/turn_test.go agent/convo/return.go",
		"turn.go":             "agent/loop/turn.go agent/convo/return.go",
		"TURN":                "agent/loop/turn.go agent/loop/turn_test.go",
		"tutest":              "agent/loop/turn_test.go",
		"index":               "web/src/index.ts internal/session/index.go web/src/components/index.tsx internal/session/index_test.go",
		"session/index":       "internal/session/index.go internal/session/index_test.go vendor/github.com/some/session/index/doc.go",
		"session/index.go":    "internal/session/index.go",
		"./cmd/client/main":   "cmd/client/main.go cmd/client/main_test.go",
		"session":             "internal/session/session.go internal/session/index.go internal/session/index_test.go",
		"uc":                  "web/src/components/UserCard.tsx web/src/components/UserController.tsx",
		"usrctl":              "web/src/components/UserController.tsx",
		"user controller":     "web/src/components/UserController.tsx web/test/user_controller_test.ts web/src/user/controller/setup.ts",
		"controller user":     "web/src/components/UserController.tsx",
		"user_controller":     "web/test/user_controller_test.ts",
		"tokbuf":              "internal/tokens/token_buffer.go",
		"tb":                  "internal/tokens/token_buffer.go",
		"main test":           "cmd/client/main_test.go",
		"client main":         "cmd/client/main.go cmd/client/main_test.go",
		"guide":               "docs/user-guide.md",
		"release":             "scripts/release.sh scripts/re/lease/setup.py",
		"hs2":                 "testdata/HTTPServer2.golden",
		"ÜBER":                "docs/über-uns.md",
		"日本":                  "docs/日本語.md",
		"日語":                  "docs/日本語.md",
		"arch docs":           "docs/architecture.md",
		"pkgjson":             "web/package.json",
		"vendor session doc":  "vendor/github.com/some/session/index/doc.go",
		"/internal/search/wa": "internal/search/walk.go",
	} {
		first := strings.Fields(want)
		if d := cmp.Diff(first, best(t, projectPaths, query, len(first))); d != "" {
			t.Errorf("query %q (-want +got):\n%s", query, d)
		}
	}
	for _, query := range []string{"zzz", "nrut.og", "turn turn turn xq", "語日", "main.go.go"} {
		if got := best(t, projectPaths, query, 5); got != nil {
			t.Errorf("query %q finds %v", query, got)
		}
	}
}

// The bytes of a letter belong together.
func TestLettersAreNotTakenApart(t *testing.T) {
	for query, want := range map[string][]string{"é": {"é.go"}, "xé": {"x-é.go"}, "xÉ": {"x-é.go"}} {
		if d := cmp.Diff(want, best(t, []string{"à©.go", "xà©.go", want[0]}, query, 5)); d != "" {
			t.Errorf("query %q (-want +got):\n%s", query, d)
		}
	}
}

func TestTiesAreInTheOrderOfLengthAndBytes(t *testing.T) {
	paths := []string{"b/x.go", "a/x.go", "c/dd/x.go", "c/x.go"}
	for range 3 {
		if d := cmp.Diff([]string{"a/x.go", "b/x.go", "c/x.go", "c/dd/x.go"}, best(t, paths, "x.go", 10)); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
		paths = append(paths[1:], paths[0])
	}
}

// Pruning, pieces and processors change nothing: the first of a long list are
// those that a plain sort of all has first, and all that fit are counted.
func TestPruningKeepsTheFirst(t *testing.T) {
	paths := manyPaths(20_000)
	for _, query := range append([]string{"e", "server", "sr tk", "ca/in"}, findQueries...) {
		q := newFuzzy(query)
		var all []hit
		for _, p := range paths {
			a := aligner{floor: unreachable}
			if s, ok := a.score(q, []byte(p), appendFolded(nil, p), strings.LastIndexByte(p, '/')+1); ok {
				all = append(all, hit{s, p})
			}
		}
		slices.SortFunc(all, func(a, b hit) int {
			if a.before(b) {
				return -1
			}
			return 1
		})
		p, err := findArgs{Query: query}.pick("")
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.from(t.Context(), newPathList(paths))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(all[:min(len(all), 50)], got.hits, cmp.AllowUnexported(hit{})); d != "" || got.total != len(all) {
			t.Errorf("query %q, %d in all, want %d (-want +got):\n%s", query, got.total, len(all), d)
		}
	}
}

// FuzzRank: a path fits exactly when each word is a subsequence of it, in any
// case of letters; what it is worth does not depend on the case of the query or
// on the floor; nothing beats the path itself.
func FuzzRank(f *testing.F) {
	for _, q := range []string{"turn", "a b", "日本", "ü", "/x", "\xff", "\x80\x80", "A/B.c", strings.Repeat("ab", 90)} {
		f.Add(q, "agent/loop/turn.go")
		f.Add(q, "docs/日本語/Über.md")
		f.Add(q, strings.Repeat("ab/", 400)+"x\xffy\n\u212a")
	}
	f.Fuzz(func(t *testing.T, query, path string) {
		if len(query) > maxQuery || path == "" || len(path) > 4096 {
			return
		}
		q := newFuzzy(query)
		name := strings.LastIndexByte(path, '/') + 1
		low := appendFolded(nil, path)
		if len(low) != len(path) {
			t.Fatalf("%q has another length folded: %q", path, low)
		}
		a := aligner{floor: unreachable}
		s, ok := a.score(q, []byte(path), low, name)
		fits, mask := true, maskOf(low)
		for _, w := range q.words {
			fits = fits && subsequence(w, low)
		}
		if ok && !fits || fits && q.ascii && !ok {
			t.Fatalf("%q in %q: fits %v, subsequence %v", query, path, ok, fits)
		}
		if fits && mask&q.mask != q.mask {
			t.Fatalf("%q in %q: the letters say no", query, path)
		}
		if up, okUp := a.score(newFuzzy(strings.ToUpper(query)), []byte(path), low, name); q.ascii && (up != s || okUp != ok) {
			t.Fatalf("%q in %q: %d %v, in capitals %d %v", query, path, s, ok, up, okUp)
		}
		a.floor = s + 1
		if below, okBelow := a.score(q, []byte(path), low, name); okBelow != ok || ok && below > s {
			t.Fatalf("%q in %q: %d %v, below the floor %d %v", query, path, s, ok, below, okBelow)
		}
		a.floor = s
		if at, okAt := a.score(q, []byte(path), low, name); ok && (at != s || !okAt) {
			t.Fatalf("%q in %q: %d, at the floor %d %v", query, path, s, at, okAt)
		}
		if self := newFuzzy(path); len(self.words) == 1 && bytes.Equal(self.words[0], low) && len(q.words) == 1 && utf8.ValidString(path) && len(q.words[0]) <= len(low) && ok {
			a.floor = unreachable
			if most, okSelf := a.score(self, []byte(path), low, name); !okSelf || most < s && len(q.words[0]) < len(low)-name {
				t.Fatalf("%q is worth %d for itself, for %q %d", path, most, query, s)
			}
		}
	})
}
