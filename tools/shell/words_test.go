package shell

import (
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

// What counts as written out is what bash makes of it, character by character.
func TestStaticWordsAreWhatBashMakesOfThem(t *testing.T) {
	gen := rand.New(rand.NewPCG(3, 4))
	pieces := []string{"c", "a", "t", "'", "'", `"`, `"`, `\`, `\`, "$", "\n", " ", "{", "}", ",", "*", "[", "]", "~", "$'", `\x61`, "`", "#", "!", "=", "/", "\\\n", "\u00fc", "%", "^"}
	var words []string
	var values []string
	for range 60_000 {
		var b strings.Builder
		for range 1 + gen.IntN(7) {
			b.WriteString(pieces[gen.IntN(len(pieces))])
		}
		// A second word keeps an assignment or a comment from being taken for one.
		f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(": "+b.String()), "")
		if err != nil || len(f.Stmts) != 1 {
			continue
		}
		call, ok := f.Stmts[0].Cmd.(*syntax.CallExpr)
		if !ok || len(call.Args) != 2 || len(f.Stmts[0].Redirs) > 0 || strings.HasSuffix(b.String(), `\`) || oddBreak(": "+b.String()+"\n") > 0 || strings.Contains(b.String(), "#") {
			continue
		}
		if v, ok := static(call.Args[1]); ok {
			words, values = append(words, b.String()), append(values, v)
		}
	}
	if len(words) < 1000 {
		t.Fatalf("only %d words to compare", len(words))
	}
	var script strings.Builder
	for _, w := range words {
		script.WriteString("printf '%s\\0' " + w + "\n")
	}
	cmd := exec.Command("bash", "--noprofile", "--norc", "-s")
	cmd.Dir = t.TempDir()
	cmd.Stdin = strings.NewReader(script.String())
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, err.(*exec.ExitError).Stderr)
	}
	got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	if len(got) != len(values) {
		t.Fatalf("bash makes %d words of %d", len(got), len(values))
	}
	for i, v := range values {
		if got[i] != v {
			t.Errorf("%q is %q in bash, not %q", words[i], got[i], v)
		}
	}
}
