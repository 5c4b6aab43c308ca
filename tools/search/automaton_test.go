package search

import (
	"bytes"
	"math/rand/v2"
	"regexp"
	"testing"
)

// An expression with more states than are kept goes on by the regular
// expression in the middle of a text, and no line is lost.
func TestAnExpressionOfTooManyStatesStillFindsItsLines(t *testing.T) {
	const pattern = `[ab]*a[ab]{17}c`
	rnd := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, 400_000)
	for i := range text {
		text[i] = "ab"[rnd.IntN(2)]
		switch {
		case i%20_000 == 19_999:
			text[i] = '\n'
		case i%60_000 == 19_998:
			text[i] = 'c'
		}
	}
	q, err := compile(pattern, true, false)
	if err != nil {
		t.Fatal(err)
	}
	q.needles = nil // or it would be looked for by its c
	s := newScanner(q)
	_, got, err := s.scan(t.Context(), text, 1)
	if err != nil {
		t.Fatal(err)
	}
	re, want := regexp.MustCompile(pattern), 0
	for l := range bytes.Lines(text) {
		if re.Match(l) {
			want++
		}
	}
	if got != want || want == 0 {
		t.Errorf("%d lines, want %d", got, want)
	}
	if !s.machine.spent {
		t.Error("the table was never too small: the text tests nothing")
	}
}

func TestOversizedExpressionsHaveNoAutomaton(t *testing.T) {
	q, err := compile(`(\pL\d){520}x?`, true, false)
	if err != nil {
		t.Fatal(err)
	}
	if q.letters != nil {
		t.Errorf("an automaton for %d instructions", len(q.letters.prog.Inst))
	}
	line := bytes.Repeat([]byte("é7"), 520)
	if _, n, err := newScanner(q).scan(t.Context(), line, 1); n != 1 || err != nil {
		t.Error(n, err)
	}
}
