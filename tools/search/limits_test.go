package search

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lakecode/lakecode/tools"
)

// A file and a whole result are bounded, and say how to get at the rest.
//
// covers TOOL-14 partly
func TestLimitsSayWhatWasCutAndHowToGoOn(t *testing.T) {
	files := map[string]string{}
	for i := range 10 {
		files[fmt.Sprintf("d%d/f.txt", i)] = strings.Repeat("needle\n", 30+i)
	}
	files["a.txt"] = strings.Repeat("x\nneedle\n", 80)
	f := newFixture(t, files)
	got, _ := f.search(textArgs{Pattern: "needle"})
	if n := strings.Count(got, ":needle\n"); n != 200 {
		t.Errorf("%d lines shown, want 200", n)
	}
	for _, part := range []string{
		"425 matching lines in 11 files (11 files searched)\n",
		"100:needle\n[cut: 50 of 80 matching lines of this file shown; the rest is after line 100: read_file path=\"a.txt\" offset=101, or a narrower pattern]\n",
		"[cut: 24 of 34 matching lines of this file shown; the rest is after line 24: read_file path=\"d4/f.txt\" offset=25, or a narrower pattern]\n",
		"\n[cut: 200 of 425 matching lines shown, 6 of 11 files; narrow with glob, a longer pattern or path=\"d9\" (39), path=\"d8\" (38), path=\"d7\" (37)]\n",
	} {
		if !strings.Contains(got, part) {
			t.Errorf("result lacks %q:\n%s", part, got)
		}
	}
}

func TestFarMoreHitsThanTheLimitKeepTheFirstFiles(t *testing.T) {
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("f%03d", i)] = strings.Repeat("needle\n", 7)
	}
	f := newFixture(t, files)
	got, _ := f.search(textArgs{Pattern: "needle"})
	if !strings.HasPrefix(got, "2100 matching lines in 300 files") || !strings.Contains(got, "\nf000\n") ||
		!strings.Contains(got, "\nf028\n") || strings.Contains(got, "\nf029\n") {
		t.Errorf("wrong files shown:\n%s", got)
	}
}

func TestACollectorKeepsTheTextOfTheFirstFilesAlone(t *testing.T) {
	c := newCollector("", 200)
	for i := range 10_000 {
		c.add(fileHits{rel: fmt.Sprintf("f%05d", (i*7919)%10_000), total: 3, matches: 2})
		if c.kept > 4*c.limit+2 {
			t.Fatalf("the text of %d lines is kept", c.kept)
		}
	}
	files := c.sorted()
	if len(files) != 100 || files[0].rel != "f00000" || files[99].rel != "f00099" || c.lines != 30_000 || c.count != 10_000 {
		t.Errorf("%d files, %d lines in %d", len(files), c.lines, c.count)
	}
}

func TestContextCannotMakeAResultHuge(t *testing.T) {
	f := newFixture(t, map[string]string{"a": strings.Repeat(strings.Repeat("y", 380)+"\n", 4000)})
	f.write("a", strings.Repeat(strings.Repeat("y\n", 20)+"needle "+strings.Repeat("z", 380)+"\n", 200))
	f.limits.TextBytes = 4000
	got, _ := f.search(textArgs{Pattern: "needle", Context: 10})
	if len(got) > 5000 || !strings.Contains(got, "[cut: ") {
		t.Errorf("%d bytes:\n%s", len(got), got)
	}
}

// covers TOOL-14 partly
func TestLongLinesAreCutAroundTheMatchWithMarks(t *testing.T) {
	f := newFixture(t, map[string]string{
		"head": "needle" + strings.Repeat("é", 1000),
		"mid":  strings.Repeat("é", 1000) + "needle" + strings.Repeat("x", 1000),
		"tail": strings.Repeat("x", 1000) + "needle",
	})
	f.limits.LineBytes = 40
	f.check(textArgs{Pattern: "needle"}, `3 matching lines in 3 files (3 files searched)

head
1:needle`+strings.Repeat("é", 17)+`[cut 1966 bytes]

mid
1:[cut 1990 bytes]éééééneedle`+strings.Repeat("x", 24)+`[cut 976 bytes]

tail
1:[cut 966 bytes]`+strings.Repeat("x", 34)+`needle
`)
}

// covers TOOL-14 partly
func TestAHugeLineIsSearched(t *testing.T) {
	f := newFixture(t, nil)
	f.limits.Time = 2 * time.Minute
	f.write("huge", strings.Repeat("a", 50<<20)+"needle")
	for _, args := range []textArgs{{Pattern: "needle"}, {Pattern: `[n]e+dle$`, Regex: true}} {
		got, code := f.search(args)
		if code != "" || !strings.Contains(got, "1:[cut 52428406 bytes]aaa") || !strings.HasSuffix(got, "aaaneedle\n") {
			t.Errorf("%s %.200s", code, got)
		}
	}
}

// Binary, unreadable and oversized files are counted, not passed over silently.
//
// covers TOOL-14 partly
func TestWhatIsNotSearchedIsCounted(t *testing.T) {
	f := newFixture(t, map[string]string{
		"text": "needle", "binary": "needle\x00", "large": strings.Repeat("needle\n", 300_000),
	})
	f.limits.FileBytes = 2 << 20
	f.write("secret", "needle")
	s := f.searcher()
	at, err := s.place("")
	if err != nil {
		t.Fatal(err)
	}
	j, err := textArgs{Pattern: "nothing"}.job(s.limits, "")
	if err != nil {
		t.Fatal(err)
	}
	// The tests may run as root, who can read everything.
	r := newReader(j)
	r.opener = func(dir int, name string, flags int) (int, error) {
		if name == "secret" {
			return -1, unix.EACCES
		}
		return openAt(dir, name, flags)
	}
	w := &walk{limits: s.limits, hidden: s.hidden}
	dir, err := openRoot(f.root, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.run(t.Context(), task{dir: dir, kind: plain}, []visitor{r}); err != nil {
		t.Fatal(err)
	}
	found := &found{job: j, tally: w.total}
	got, err := found.render(textArgs{Pattern: "nothing"}, at)
	want := "No match for \"nothing\" in 1 file; skipped: 1 binary, 1 unreadable, 1 over 2 MiB.\n"
	if got != want || err != nil {
		t.Errorf("got %q %v, want %q", got, err, want)
	}
	f.refused(textArgs{Pattern: "x", Path: "binary"}, tools.Other, "binary is a binary file")
	f.refused(textArgs{Pattern: "x", Path: "large"}, tools.TooLarge, "large is larger than 2097152 bytes", "read_file")
}

// covers TOOL-14 partly
func TestAnExceededBudgetIsAnError(t *testing.T) {
	files := map[string]string{}
	for i := range 40 {
		files[fmt.Sprintf("d%d/f", i)] = "some text"
	}
	f := newFixture(t, files)
	const says = "says nothing about whether the text is there"
	f.limits = Limits{Entries: 60}
	f.refused(textArgs{Pattern: "absent"}, tools.TooLarge, "more than 60 files and folders", says)
	f.limits = Limits{Bytes: 100}
	f.refused(textArgs{Pattern: "absent"}, tools.TooLarge, "more than 100 bytes", says)
	f.limits = Limits{Time: time.Nanosecond}
	f.refused(textArgs{Pattern: "absent"}, tools.TimedOut, "given up after 1ns", says)
	f.limits = Limits{Depth: 3}
	f.write("deep/1/2/3/4/5", "x")
	f.refused(textArgs{Pattern: "absent"}, tools.TooLarge, "nested more than 3 deep at deep/1/2/", says)
	f.limits = Limits{}
	f.check(textArgs{Pattern: "absent"}, "No match for \"absent\" in 41 files.\n")
}

func TestCancellingEndsASearchSoon(t *testing.T) {
	f := newFixture(t, nil)
	f.write("huge-line", strings.Repeat("ab", 2<<20)+"d")
	f.write("many/0", strings.Repeat(strings.Repeat("ab", 40)+"\n", 20_000))
	for i := range 1000 {
		if err := os.Link(f.path("many/0"), f.path(fmt.Sprintf("many/%d", i+1))); err != nil {
			t.Fatal(err)
		}
	}
	for path, pattern := range map[string]string{
		"huge-line": `([ab][ab]){520}d$`, // too large for an automaton
		"many":      `([ab]*c|[ab]+[de])`,
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		s := f.searcher()
		var stopped time.Time
		timer := time.AfterFunc(50*time.Millisecond, func() { stopped = time.Now(); cancel(errors.New("stopped by the person")) })
		_, err := s.text(ctx, textArgs{Pattern: pattern, Regex: true, Path: path}, nil)
		late := time.Since(stopped)
		timer.Stop()
		var te *tools.Error
		if !errors.As(err, &te) || te.Code != tools.Cancelled || !strings.Contains(te.Text, "stopped by the person") {
			t.Errorf("%s: error %v", path, err)
		} else if late > 600*time.Millisecond {
			t.Errorf("%s: ended %v after it was stopped", path, late)
		}
	}
}

// Every folder of a walk is let go of, however it ends.
func TestNoDescriptorIsLeftOpen(t *testing.T) {
	files := map[string]string{}
	for i := range 30 {
		files[fmt.Sprintf("d%d/e%d/f", i%7, i)] = "needle"
	}
	f := newFixture(t, files)
	s := f.searcher()
	before := descriptors(t)
	for _, limits := range []Limits{{}, {Entries: 20}, {Bytes: 50}, {Depth: 1}, {Time: 1}} {
		s.limits = limits.orDefault()
		for _, path := range []string{"", "d1", "d1/e1/f"} {
			_, _ = s.text(t.Context(), textArgs{Pattern: "needle", Path: path}, nil)
		}
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors open, %d before", after, before)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(fds)
}
