package shell

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/lakecode/lakecode/tools/workspace"
)

// folder is a workspace of one folder.
type folder string

func (f folder) Resolve(name string) (workspace.Path, error) {
	return workspace.Path{Abs: string(f), Rel: name}, nil
}

// clean records out in one piece, and byte by byte: both must give text.
func clean(t *testing.T, out, text string) {
	t.Helper()
	whole, bytewise := newRecorder(), newRecorder()
	whole.write([]byte(out))
	for i := range len(out) {
		bytewise.write([]byte{out[i]})
	}
	for how, r := range map[string]*recorder{"whole": whole, "bytewise": bytewise} {
		if d := cmp.Diff(text, r.text()); d != "" {
			t.Errorf("%q %s (-want +got):\n%s", out, how, d)
		}
	}
}

func TestOutputIsPlainText(t *testing.T) {
	clean(t, "", "")
	clean(t, "a\nb\n\n", "a\nb")
	clean(t, "a\r\nb\r\n", "a\nb")
	clean(t, "\x1b[31mred\x1b[0m \x1b[1;32mgreen\x1b[m\n", "red green")
	clean(t, "\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n", "alink")
	clean(t, "\x1b(Ba\x1b=b\x1b[?25lc\x1bPq#0\x1b\\d", "abcd")
	clean(t, "\x1b[2K\x1b[1Gdone", "done")
	clean(t, "broken \x1b]0;no end\nnext", "broken \nnext")
	clean(t, "10%\r50%\r100%\nok", "100%\nok")
	clean(t, "10%\r50%\r", "50%")
	clean(t, "long progress\rshort\n", "short")
	clean(t, "a\r\r\nb", "a\nb")
	clean(t, "ab\bc", "ac")
	clean(t, "\b\bx", "x")
	clean(t, "tab\tand bell\x07 and del\x7f", "tab\tand bell and del")
	clean(t, "gr\u00fc\u00dfe \u4e16\u754c \U0001F600\n", "gr\u00fc\u00dfe \u4e16\u754c \U0001F600")
	clean(t, "latin1 caf\xe9 and much more text\n", "latin1 caf\uFFFD and much more text")
	clean(t, "one.go\x00two.go\x00three.go\x00", "one.go\ntwo.go\nthree.go")
	clean(t, strings.Repeat("\u4e16", 5000), strings.Repeat("\u4e16", 5000))
}

func TestBinaryOutputIsCounted(t *testing.T) {
	random := make([]byte, 100_000)
	gen := rand.New(rand.NewPCG(1, 2))
	for i := range random {
		random[i] = byte(gen.UintN(256))
	}
	clean(t, string(random), "[100000 bytes of output that is not text: not shown]")
	clean(t, "\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00", "[14 bytes of output that is not text: not shown]")
}

// The bounds of decisions.md: 10 KiB of the beginning and 20 of the end.
//
// covers TOOL-12
func TestLongOutputKeepsItsBeginningAndEnd(t *testing.T) {
	fits := strings.Repeat(strings.Repeat("x", 99)+"\n", 307) // 30 700 bytes
	clean(t, fits, strings.TrimRight(fits, "\n"))

	r := newRecorder()
	r.write([]byte("first\n" + strings.Repeat("0123456789\n", 10_000) + "last\n"))
	head, rest, _ := strings.Cut(r.text(), "[... ")
	note, tail, _ := strings.Cut(rest, " ...]\n")
	if !strings.HasPrefix(head, "first\n0123") || !strings.HasSuffix(head, "9\n") || !strings.HasPrefix(tail, "0123456789\n") || !strings.HasSuffix(tail, "9\nlast") {
		t.Errorf("head %q, tail %q", head, tail)
	}
	if len(head) > outputHead || len(head) < outputHead-20 || len(tail) > outputTail || len(tail) < outputTail-20 {
		t.Errorf("head of %d bytes, tail of %d", len(head), len(tail))
	}
	if note != "79299 bytes, 7209 lines left out" {
		t.Errorf("note %q", note)
	}

	for _, piece := range []string{"\u4e16", "\U0001F600x", "x"} {
		r := newRecorder()
		for range 100_000 {
			r.write([]byte(piece))
		}
		if text := r.text(); !utf8.ValidString(text) || strings.Contains(text, "\uFFFD") || len(text) > outputHead+outputTail+100 {
			t.Errorf("one long line of %q: %d bytes, valid %t", piece, len(text), utf8.ValidString(text))
		}
	}
}

func TestProgressIsTheTextInPieces(t *testing.T) {
	r := newRecorder()
	var all strings.Builder
	for _, p := range []string{"a", "b\nc", "\xe4\xb8", "\x96", "\n10%", "\r20%", "\r30%\n", "end"} {
		r.write([]byte(p))
		all.WriteString(r.progress())
	}
	if d := cmp.Diff("ab\nc\u4e16\n10%\n20%\n30%\nend", all.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if d := cmp.Diff("ab\nc\u4e16\n30%\nend", r.text()); d != "" {
		t.Errorf("the result (-want +got):\n%s", d)
	}
	r.write(bytes.Repeat([]byte("y\n"), 1<<20))
	if p := r.progress(); len(p) > progressPart+10 || !strings.HasPrefix(p, "[...]\n") {
		t.Errorf("%d bytes beginning with %q", len(p), p[:10])
	}
}

func FuzzRecorder(f *testing.F) {
	for _, s := range []string{"a\r\nb", "\x1b[31mx\x1b[0m", "10%\r20%", "\xff\xfe", "a\bb", "\x1b]0;t\x07", "x\x00y", "\u4e16"} {
		f.Add([]byte(s), uint8(3))
	}
	f.Fuzz(func(t *testing.T, out []byte, step uint8) {
		whole, parts := newRecorder(), newRecorder()
		whole.write(out)
		for rest := out; len(rest) > 0; {
			n := min(int(step)%7+1, len(rest))
			parts.write(rest[:n])
			rest = rest[n:]
		}
		a, b := whole.text(), parts.text()
		if a != b || !utf8.ValidString(a) || len(a) > outputHead+outputTail+200 {
			t.Errorf("%d and %d bytes, equal %t", len(a), len(b), a == b)
		}
	})
}

func BenchmarkRecorder(b *testing.B) {
	p := bytes.Repeat([]byte("a line of text that a test prints, of usual length\n"), 640)
	b.SetBytes(int64(len(p)))
	r := newRecorder()
	for b.Loop() {
		r.write(p)
	}
}
