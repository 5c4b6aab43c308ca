package search

import (
	"bytes"
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lakecode/lakecode/tools/workspace"
)

// ripgrepQueries are measured against ripgrep. bar is the largest ratio of wall
// times that docs/performance.md allows; 0 reports without one: a pattern of
// classes alone has no string to look for.
var ripgrepQueries = []struct {
	name string
	args textArgs
	bar  float64
}{
	{"literal", textArgs{Pattern: "ErrUnexpectedEOF"}, 2},
	{"literal_frequent", textArgs{Pattern: "func ("}, 2},
	{"literal_absent", textArgs{Pattern: "zzzqqqabsent"}, 2},
	{"literal_fold", textArgs{Pattern: "unexpected newline", Case: "insensitive"}, 2},
	{"regex_receiver", textArgs{Pattern: `func \(\w+ \*Reader\)`, Regex: true}, 2},
	{"regex_frequent", textArgs{Pattern: `err(or)? != nil \{`, Regex: true}, 2},
	{"regex_suffix", textArgs{Pattern: `\w+Sprintf\(`, Regex: true}, 2},
	{"regex_alternatives", textArgs{Pattern: `TODO|FIXME|XXX`, Regex: true}, 2},
	{"class_only", textArgs{Pattern: `[A-Z]{5}[0-9]+`, Regex: true}, 0},
}

// BenchmarkRipgrep runs every query alternately with ripgrep's process ($RG or
// rg in PATH) and with search_text in this process, over the sources of Go's
// standard library, and reports the medians and their ratio. Both walk the same
// files and must count the same lines.
func BenchmarkRipgrep(b *testing.B) {
	rg := ripgrep(b)
	root := filepath.Join(goroot(b), "src")
	s := benchSearcher(b, root)
	for _, q := range ripgrepQueries {
		b.Run(q.name, func(b *testing.B) {
			var ours, theirs []time.Duration
			for i := 0; i < b.N || i < 2; i++ {
				t0 := time.Now()
				lines := runRipgrep(b, rg, root, q.args)
				t1 := time.Now()
				got := runSearch(b, s, q.args)
				t2 := time.Now()
				if lines != got.job.hits.lines {
					b.Fatalf("%d matching lines, ripgrep has %d", got.job.hits.lines, lines)
				}
				if i > 0 || b.N == 1 { // the first fills the caches
					theirs, ours = append(theirs, t1.Sub(t0)), append(ours, t2.Sub(t1))
				}
			}
			b.ReportMetric(median(ours), "ms/search")
			b.ReportMetric(median(theirs), "ms/rg")
			b.ReportMetric(median(ours)/median(theirs), "ratio")
			b.ReportMetric(q.bar, "bar")
		})
	}
}

// BenchmarkSearch measures search_text alone.
func BenchmarkSearch(b *testing.B) {
	s := benchSearcher(b, filepath.Join(goroot(b), "src"))
	for _, q := range ripgrepQueries {
		b.Run(q.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				runSearch(b, s, q.args)
			}
		})
	}
}

func benchSearcher(b *testing.B, root string) *searcher {
	w, err := workspace.Open(workspace.Config{Root: root})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = w.Close() })
	s, err := newSearcher(Config{Workspace: w})
	if err != nil {
		b.Fatal(err)
	}
	// Go's tree is no build folder: cmd/internal/obj holds sources.
	s.hidden = map[string]bool{}
	return s
}

func runSearch(b *testing.B, s *searcher, args textArgs) *found {
	at, err := s.place(args.Path)
	if err != nil {
		b.Fatal(err)
	}
	j, err := args.job(s.limits, at.base())
	if err != nil {
		b.Fatal(err)
	}
	f, err := s.run(b.Context(), j, at)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := f.render(args, at); err != nil {
		b.Fatal(err)
	}
	return f
}

// runRipgrep counts all matching lines, as search_text does for its totals, and
// is spared the printing. Hidden files and ignore rules are off on both sides:
// Go's release has no work tree.
func runRipgrep(tb testing.TB, rg, root string, args textArgs) int {
	argv := []string{"--count", "--hidden", "--no-ignore", "--color=never"}
	if !args.Regex {
		argv = append(argv, "--fixed-strings")
	}
	if args.Case == "insensitive" {
		argv = append(argv, "--ignore-case")
	}
	cmd := exec.Command(rg, append(argv, "-e", args.Pattern, ".")...)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState.ExitCode() != 1 {
		tb.Fatalf("ripgrep: %v", err)
	}
	sum := 0
	for l := range bytes.Lines(out) {
		_, n, _ := bytes.Cut(bytes.TrimSpace(l), []byte(":"))
		v, err := strconv.Atoi(string(n))
		if err != nil {
			tb.Fatalf("ripgrep: %q", l)
		}
		sum += v
	}
	return sum
}

func median(ds []time.Duration) float64 {
	slices.Sort(ds)
	return float64(ds[len(ds)/2].Microseconds()) / 1000
}

func ripgrep(tb testing.TB) string {
	rg, err := exec.LookPath(cmp.Or(os.Getenv("RG"), "rg"))
	if err != nil {
		tb.Fatalf("ripgrep is needed (Debian package ripgrep, or $RG): %v", err)
	}
	return rg
}

func goroot(tb testing.TB) string {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		tb.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
