package search

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lakecode/lakecode/tools/workspace"
)

// The same lines as ripgrep's, over Go's net packages.
func TestAgreesWithRipgrep(t *testing.T) {
	rg := ripgrep(t)
	root := filepath.Join(goroot(t), "src", "net")
	w, err := workspace.Open(workspace.Config{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	s, err := newSearcher(Config{Workspace: w, Limits: Limits{PerFile: 1 << 30, Total: 1 << 30}})
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range []textArgs{
		{Pattern: "ErrUnexpectedEOF"},
		{Pattern: "func ("},
		{Pattern: "\t\t\t"},
		{Pattern: "日本"},
		{Pattern: "zzzqqqabsent"},
		{Pattern: "content-type", Case: "insensitive"},
		{Pattern: "kelvin", Case: "insensitive"},
		{Pattern: "ß", Case: "insensitive"},
		{Pattern: `func \(\w+ \*Reader\)`, Regex: true},
		{Pattern: `err(or)? != nil \{`, Regex: true},
		{Pattern: `\w+Sprintf\(`, Regex: true},
		{Pattern: `TODO|FIXME|XXX`, Regex: true},
		{Pattern: `^package \w+$`, Regex: true},
		{Pattern: `^\s*$`, Regex: true},
		{Pattern: `[A-Z]{3}\d+`, Regex: true},
		{Pattern: `\bclose\b.*\bconn\b`, Regex: true},
		{Pattern: `(foo|bar)baz|qu+x`, Regex: true},
		{Pattern: `http[sS]?://`, Regex: true, Case: "insensitive"},
		{Pattern: `return (nil, )?(err|ErrClosed)`, Regex: true},
		{Pattern: `(?i)SERVE[rd]`, Regex: true},
		{Pattern: `\p{Greek}`, Regex: true},
		{Pattern: `x*`, Regex: true},
	} {
		at, err := s.place("")
		if err != nil {
			t.Fatal(err)
		}
		j, err := args.job(s.limits, "")
		if err != nil {
			t.Fatal(err)
		}
		found, err := s.run(t.Context(), j, at)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, h := range found.files {
			for _, l := range h.lines {
				got = append(got, fmt.Sprintf("%s:%d", h.rel, l.number))
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(ripgrepLines(t, rg, root, args), got); diff != "" {
			t.Errorf("%+v (-ripgrep +got):\n%s", args, diff)
		}
	}
}

func ripgrepLines(t *testing.T, rg, root string, args textArgs) []string {
	argv := []string{"--line-number", "--no-heading", "--hidden", "--no-ignore", "--color=never", "--null", "--crlf"}
	if !args.Regex {
		argv = append(argv, "--fixed-strings")
	}
	if args.Case == "insensitive" {
		argv = append(argv, "--ignore-case")
	}
	cmd := exec.Command(rg, append(argv, "-e", args.Pattern)...)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState.ExitCode() != 1 {
		t.Fatalf("ripgrep: %v", err)
	}
	var lines []string
	for l := range bytes.Lines(out) {
		name, rest, ok := bytes.Cut(l, []byte{0})
		number, _, ok2 := bytes.Cut(rest, []byte(":"))
		if !ok || !ok2 {
			t.Fatalf("ripgrep: %q", l)
		}
		lines = append(lines, fmt.Sprintf("%s:%s", name, number))
	}
	slices.Sort(lines)
	return lines
}

// oddPatterns are expressions that a search for needles could get wrong.
var oddPatterns = []string{
	"abc", "a", "k", "Kelvin", "\u212a", "s", "\u017f", "(foo|bar)+x", "a{2,3}b", "(?i)ab(?-i)Cd", "x?abc|de", `\bfoo\b`, "^$", "^ab", "b$",
	"(a|b)(c|d)", "(?:ab)+", "[ab]c", "é+", "(?i)É", "\uFFFD", `\x{80}`, "a\rb", "\r", "(|a)b", "foo(bar)?baz", "(?i)straSSe", "a.c", "(?s)a.c", `\Bo`, `\b`, `o\B`, `\Aab\z`, "ab|a|abc", "[^a]",
}

// Lines that are too long for the regular expression as a whole match as well.
func TestLongLinesMatchLikeShortOnes(t *testing.T) {
	pad := strings.Repeat("z ", longLine)
	var text []byte
	for _, l := range []string{"abc", "foobarx foo", "\xffk\u212as\u017fABC", "KELVIN aab \x80é\uFFFD\r", "AbCd", "foo", "strasse", "ab"} {
		text = append(text, pad+l+"\n"+l+pad+"\r\n"+pad+" "+l+" "+pad+"\n"...)
	}
	for _, p := range oddPatterns {
		q, err := compile(p, true, false)
		if err != nil {
			t.Fatal(err)
		}
		re, want := regexp.MustCompile(p), 0
		for l := range bytes.Lines(text) {
			if re.Match(bytes.TrimSuffix(bytes.TrimSuffix(l, []byte("\n")), []byte("\r"))) {
				want++
			}
		}
		letters := q.letters
		for _, q.letters = range []*alphabet{letters, nil} {
			for _, keep := range []int{0, 1 << 30} {
				if _, got, err := newScanner(q).scan(t.Context(), text, keep); got != want || err != nil {
					t.Errorf("pattern %q, keep %d: %d lines, want %d: %v", p, keep, got, want, err)
				}
			}
		}
	}
}

// FuzzScanAgreesWithPlainRegexp compares the search for needles with a regular
// expression that is asked about every line.
func FuzzScanAgreesWithPlainRegexp(f *testing.F) {
	for _, p := range oddPatterns {
		f.Add(p, true, true, []byte("Kelvin \u212aelvin kelvin \u017ftrasse STRASSE É é\nfoo oof\n"))
		f.Add(p, true, false, []byte("abc\r\nfoobarx foo\n\xffk\u212as\u017fABC\n\n\nKELVIN aab \x80é\uFFFD\r\r\nAbCd"))
		f.Add(p, false, true, []byte("(foo|bar)+X\n"+p+"\n"+strings.ToUpper(p)))
	}
	f.Fuzz(func(t *testing.T, pattern string, isRegex, fold bool, text []byte) {
		q, err := compile(pattern, isRegex, fold)
		if err != nil {
			return
		}
		source := pattern
		if !isRegex {
			source = regexp.QuoteMeta(pattern)
		}
		if fold {
			source = "(?i)(?:" + source + ")"
		}
		re := regexp.MustCompile(source)
		var want []string
		n := 0
		for l := range bytes.Lines(text) {
			n++
			if l = bytes.TrimSuffix(l, []byte("\n")); len(l) < len(text) && bytes.HasSuffix(l, []byte("\r")) && n <= bytes.Count(text, []byte("\n")) {
				l = l[:len(l)-1]
			}
			if loc := re.FindIndex(l); loc != nil {
				want = append(want, fmt.Sprintf("%d %q %d", n, l, loc[0]))
			}
		}
		s := newScanner(q)
		spans, total, err := s.scan(context.Background(), text, 1<<30)
		if err != nil || total != len(spans) {
			t.Fatal(err, total, len(spans))
		}
		var got []string
		for _, sp := range spans {
			got = append(got, fmt.Sprintf("%d %q %d", sp.number, text[sp.start:sp.end], sp.from-sp.start))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("pattern %q regex %v fold %v text %q (-plain +got):\n%s", pattern, isRegex, fold, text, diff)
		}
		if _, n, err := s.scan(context.Background(), text, 0); n != total || err != nil {
			t.Errorf("pattern %q regex %v fold %v text %q: %d lines when they are only counted, %d when shown: %v", pattern, isRegex, fold, text, n, total, err)
		}
		if total > 0 && !s.mayMatch(text) {
			t.Errorf("pattern %q: the quick look says no", pattern)
		}
	})
}
