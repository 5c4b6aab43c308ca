package overlay

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf16"
)

// naive is the reference: it looks at the whole text for every position.
func naive(s string, p Position, enc Encoding) int {
	lines := []int{0}
	for i := range len(s) {
		if s[i] == '\n' || s[i] == '\r' && !strings.HasPrefix(s[i+1:], "\n") {
			lines = append(lines, i+1)
		}
	}
	if int(p.Line) >= len(lines) {
		return len(s)
	}
	at := lines[p.Line]
	left := int(p.Character)
	for _, r := range s[at:] {
		w := map[Encoding]int{UTF8: len(string(r)), UTF16: len(utf16.Encode([]rune{r})), UTF32: 1}[enc]
		if r == '\n' || r == '\r' || left < w {
			break
		}
		left -= w
		at += len(string(r))
	}
	return at
}

func naiveChange(s string, r Range, enc Encoding, with string) string {
	a, b := naive(s, r.Start, enc), naive(s, r.End, enc)
	if b < a {
		a, b = b, a
	}
	return s[:a] + with + s[b:]
}

// sound checks what the blocks promise.
func sound(t *testing.T, x *text) {
	t.Helper()
	for i, b := range x.blocks {
		if got := count(b.s); got != b {
			t.Fatalf("block %d counts %v, is %v", i, b.eols, got.eols)
		}
		if len(b.s) == 0 || len(b.s) > blockMax {
			t.Fatalf("block %d has %d bytes", i, len(b.s))
		}
		if i > 0 && strings.HasSuffix(x.blocks[i-1].s, "\r") && strings.HasPrefix(b.s, "\n") {
			t.Fatalf("CR LF is cut before block %d", i)
		}
	}
}

func TestManyEditsEqualTheNaiveReference(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	pieces := []string{"a", "bc", "\n", "\r", "\r\n", "é", "漢", "😀", "\t", strings.Repeat("long ", 700), strings.Repeat("x\n", 900), strings.Repeat("😀", 3000)}
	some := func(n int) string {
		var b strings.Builder
		for range rnd.IntN(n) {
			b.WriteString(pieces[rnd.IntN(len(pieces))])
		}
		return b.String()
	}
	for _, enc := range []Encoding{UTF8, UTF16, UTF32} {
		for range 8 {
			want := some(30)
			s := NewStore()
			s.SetEncoding(enc)
			s.Open(Doc{URI: "x:", Text: want})
			for v := range int32(60) {
				line := uint32(rnd.IntN(strings.Count(want, "\n") + 3))
				r := Range{Position{line, uint32(rnd.IntN(40))}, Position{line + uint32(rnd.IntN(3)), uint32(rnd.IntN(4000))}}
				with := some(4)
				want = naiveChange(want, r, enc, with)
				_ = s.Change("x:", v+1, []Change{{&r, with}}) // clamping is no failure here
				x := s.docs["x:"].text
				sound(t, x)
				if v%7 == 0 || len(want) < 200 {
					if got := s.Docs()[0].Text; got != want {
						t.Fatalf("%s: edit %d at %v: texts differ (%d and %d bytes)", enc, v, r, len(want), len(got))
					}
				}
			}
			if got := s.Docs()[0].Text; got != want {
				t.Fatalf("%s: texts differ", enc)
			}
		}
	}
}

// A CR at the end of one block and an LF put before the next become one line end.
func TestALineEndThatComesTogetherBetweenBlocksIsOne(t *testing.T) {
	x := newText(strings.Repeat("x", 3*blockMax))
	x.blocks = []block{count(strings.Repeat("a", 4000)), count(strings.Repeat("b", 3999) + "\r"), count(strings.Repeat("c", 4000))}
	x.replace(place{2, 0}, place{2, 0}, "\n"+strings.Repeat("d", 4000))
	sound(t, x)
	if at, ok := x.line(1); !ok || x.blocks[at.i].s[at.off] != 'd' {
		t.Errorf("line 1 begins at %v", at)
	}
	x.replace(place{0, 0}, place{0, 0}, "\r")
	x.replace(place{0, 1}, place{0, 1}, "\n")
	sound(t, x)
}

func FuzzChange(f *testing.F) {
	f.Add("a\r\n😀b\rc", uint32(1), uint32(1), uint32(1), uint32(2), "\n", uint8(1))
	f.Add(strings.Repeat("\r\n", 5000), uint32(2), uint32(0), uint32(4000), uint32(0), "\r", uint8(0))
	f.Add("x"+strings.Repeat("\r\n", 5000), uint32(2), uint32(0), uint32(1), uint32(0), "\r\n", uint8(1))
	f.Add(strings.Repeat("漢", 9000), uint32(0), uint32(8999), uint32(0), uint32(1), "\xff", uint8(2))
	f.Fuzz(func(t *testing.T, s string, l1, c1, l2, c2 uint32, with string, e uint8) {
		enc := []Encoding{UTF8, UTF16, UTF32}[e%3]
		r := Range{Position{l1, c1}, Position{l2, c2}}
		x := NewStore()
		x.SetEncoding(enc)
		x.Open(Doc{URI: "x:", Text: s})
		_ = x.Change("x:", 1, []Change{{&r, with}, {&r, with}}) // clamping is no failure here
		sound(t, x.docs["x:"].text)
		want := naiveChange(naiveChange(valid(s), r, enc, valid(with)), r, enc, valid(with))
		if got := x.Docs()[0].Text; got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}

// BenchmarkChange10MB: one operation is 1 000 small edits all over a document
// of 10 MB, without and with a reader after each.
func BenchmarkChange10MB(b *testing.B) {
	for _, doc := range []struct{ name, text string }{
		{"lines", strings.Repeat(strings.Repeat("x", 39)+"\n", 10<<20/40)},
		{"oneLine", strings.Repeat("x", 10<<20)},
	} {
		lines := uint32(strings.Count(doc.text, "\n")) + 1
		for _, read := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/read=%v", doc.name, read), func(b *testing.B) {
				for b.Loop() {
					s := NewStore()
					s.Open(Doc{URI: "x:", Text: doc.text})
					for v := range int32(1000) {
						l := uint32(v) * 7919 % lines
						c := uint32(v) * 7919 % uint32(len(doc.text)/int(lines))
						if err := s.Change("x:", v+1, []Change{{at(l, c, l, c), "y"}}); err != nil {
							b.Fatal(err)
						}
						if read {
							s.Docs()
						}
					}
				}
			})
		}
	}
}
