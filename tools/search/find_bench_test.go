package search

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lakecode/lakecode/lsp/overlay"
)

// findQueries are of the kinds that a model asks: two letters fit nearly
// everything, the last fits nothing.
var findQueries = []string{"se", "tokbuf", "session/index.go", "agent tool test", "EditorQueueController", "zzqx"}

// BenchmarkFind measures find_files over 100 000 paths of a work tree: the first
// listing, then calls that find it unchanged, and the ranking of those alone.
// Medians over queries and rounds, in milliseconds.
func BenchmarkFind(b *testing.B) {
	f := hundredThousand(b)
	s := f.searcher()
	at, err := s.place("")
	if err != nil {
		b.Fatal(err)
	}
	time.Sleep(settled) // as a tree is that was not made just now
	t0 := time.Now()
	if _, err := s.list(b.Context(), at); err != nil {
		b.Fatal(err)
	}
	cold := time.Since(t0)
	var calls, ranks []time.Duration
	for range max(b.N, 10) {
		for _, q := range findQueries {
			t0 := time.Now()
			if _, err := s.find(b.Context(), findArgs{Query: q}, nil); err != nil {
				b.Fatal(err)
			}
			t1 := time.Now()
			l := s.lists.get(".")
			if l == nil || l.paths.len() != 100_000 {
				b.Fatal("the listing was not kept, or is not whole")
			}
			p, err := findArgs{Query: q}.pick("")
			if err != nil {
				b.Fatal(err)
			}
			t2 := time.Now()
			if _, err := p.from(b.Context(), l.paths); err != nil {
				b.Fatal(err)
			}
			calls, ranks = append(calls, t1.Sub(t0)), append(ranks, time.Since(t2))
		}
	}
	b.ReportMetric(median(calls), "ms/call")
	b.ReportMetric(median(ranks), "ms/ranking")
	b.ReportMetric(float64(cold.Milliseconds()), "ms/first")
	b.ReportMetric(100, "bar")
}

// BenchmarkRank measures the ranking of single queries.
func BenchmarkRank(b *testing.B) {
	l := newPathList(manyPaths(100_000))
	for _, q := range findQueries {
		b.Run(strings.ReplaceAll(q, "/", "|"), func(b *testing.B) {
			p, err := findArgs{Query: q}.pick("")
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := p.from(b.Context(), l); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

var pathWords = strings.Fields("agent session tool search file walk config server client handler parser token buffer index editor protocol message queue worker stream cache render layout model view controller service store record journal lock")

// manyPaths makes n different paths like those of a large project, 15 in a
// folder and one to six folders deep; always the same.
func manyPaths(n int) []string {
	seed := uint32(1)
	next := func(n int) int {
		seed = seed*1664525 + 1013904223
		return int(seed>>8) % n
	}
	word := func() string { return pathWords[next(len(pathWords))] }
	exts := []string{".go", ".ts", ".tsx", ".md", ".py", "_test.go"}
	dirs := []string{""}
	all := make([]string, 0, n)
	for i := range n {
		if i%15 == 0 {
			in := dirs[next(len(dirs))]
			if strings.Count(in, "/") > 5 {
				in = ""
			}
			dirs = append(dirs, fmt.Sprintf("%s%s%d/", in, word(), i/15))
		}
		name := word() + "_" + word()
		if next(3) == 0 {
			name = strings.ToUpper(name[:1]) + name[1:] + strings.ToUpper(word()[:1]) + word()[1:]
		}
		all = append(all, fmt.Sprintf("%s%s%d%s", dirs[len(dirs)-1], name, i%15, exts[next(len(exts))]))
	}
	return all
}

// hundredThousand makes a work tree of empty files.
func hundredThousand(b *testing.B) *fixture {
	root, err := filepath.EvalSymlinks(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	f := &fixture{t: b, root: root, docs: overlay.NewStore(), git: program(b, "git")}
	last := ""
	for _, p := range manyPaths(100_000) {
		if dir := filepath.Dir(p); dir != last {
			last = dir
			if err := os.MkdirAll(f.path(dir), 0o755); err != nil {
				b.Fatal(err)
			}
		}
		file, err := os.Create(f.path(p))
		if err != nil {
			b.Fatal(err)
		}
		if err := file.Close(); err != nil {
			b.Fatal(err)
		}
	}
	f.runGit("", "init", "-q")
	return f
}
