package overlay

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Blocks are kept between half and the whole of blockMax bytes where the text
// allows it: an edit recounts one or two of them whatever the size of the
// document or the length of its lines.
const blockMax = 8 << 10

// block is a piece of a text with what must be known to step over it. A block
// never ends inside a rune or between CR and LF.
type block struct {
	s      string
	eols   int // line ends: LF, CR LF, lone CR
	runes  int
	astral int // runes outside the basic plane: two units in UTF-16
}

// units is the length of b in the units of enc.
func (b *block) units(enc Encoding) int {
	switch enc {
	case UTF8:
		return len(b.s)
	case UTF32:
		return b.runes
	}
	return b.runes + b.astral
}

// text is an editable string of valid UTF-8. flat is its whole when current.
type text struct {
	blocks  []block
	flat    string
	current bool
}

func newText(s string) *text {
	s = valid(s)
	return &text{blocks: split(nil, s), flat: s, current: true}
}

// valid replaces what is not UTF-8, so that every edit falls between runes.
// JSON decoders have done it already; this is for callers in the process.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// split appends s to dst in blocks.
func split(dst []block, s string) []block {
	for len(s) > 0 {
		n := len(s)
		if n > blockMax {
			n = boundary(s, blockMax*3/4)
		}
		dst = append(dst, count(s[:n]))
		s = s[n:]
	}
	return dst
}

// boundary returns the last place at or before n where s may be cut.
func boundary(s string, n int) int {
	at := n
	for at > n-utf8.UTFMax && !utf8.RuneStart(s[at]) {
		at--
	}
	if s[at-1] == '\r' && s[at] == '\n' {
		at--
	}
	return at
}

func count(s string) block {
	b := block{s: s}
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			b.runes++
			if c == '\n' || c == '\r' && (i+1 == len(s) || s[i+1] != '\n') {
				b.eols++
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		b.runes++
		if r > 0xFFFF {
			b.astral++
		}
		i += n
	}
	return b
}

// String returns the whole text. Blocks are made to share its memory, so the
// text before is free to go.
func (t *text) String() string {
	if t.current {
		return t.flat
	}
	var b strings.Builder
	n := 0
	for i := range t.blocks {
		n += len(t.blocks[i].s)
	}
	b.Grow(n)
	for i := range t.blocks {
		b.WriteString(t.blocks[i].s)
	}
	t.flat, t.current = b.String(), true
	at := 0
	for i := range t.blocks {
		n := len(t.blocks[i].s)
		t.blocks[i].s = t.flat[at : at+n]
		at += n
	}
	return t.flat
}

// place is a byte in a text: blocks[i].s[off:], where off may be the block's
// length only at the end of the text.
type place struct{ i, off int }

func (p place) less(q place) bool { return p.i < q.i || p.i == q.i && p.off < q.off }

// find turns a position into a place; exact is false when it had to be clamped
// (LSP 3.18, Position: a character beyond the line's end means the line's end).
func (t *text) find(pos Position, enc Encoding) (p place, exact bool) {
	at, ok := t.line(int(min(pos.Line, math.MaxInt32)))
	if !ok {
		return at, false
	}
	left := int(min(pos.Character, math.MaxInt32))
	for left > 0 {
		if at.i == len(t.blocks) {
			return at, false
		}
		b := &t.blocks[at.i]
		if at.off == 0 && b.eols == 0 && b.units(enc) <= left {
			left -= b.units(enc)
			at.i++
			continue
		}
		n, used, stop := advance(b.s[at.off:], left, enc)
		at.off += n
		left -= used
		if stop {
			return t.tidy(at), left == 0
		}
		at = t.tidy(at)
	}
	return at, true
}

// line returns where a line begins, or the end of the text when there are not
// so many.
func (t *text) line(n int) (place, bool) {
	for i := range t.blocks {
		b := &t.blocks[i]
		if n > b.eols {
			n -= b.eols
			continue
		}
		if n == 0 {
			return place{i, 0}, true
		}
		return t.tidy(place{i, afterEOLs(b.s, n)}), true
	}
	return place{len(t.blocks), 0}, n == 0
}

// afterEOLs returns the offset after the nth line end of s, n from 1.
func afterEOLs(s string, n int) int {
	for i := 0; i < len(s); i++ {
		if s[i] == '\n' || s[i] == '\r' && (i+1 == len(s) || s[i+1] != '\n') {
			if n--; n == 0 {
				return i + 1
			}
		}
	}
	return len(s)
}

func (t *text) tidy(p place) place {
	if p.i < len(t.blocks) && p.off == len(t.blocks[p.i].s) {
		return place{p.i + 1, 0}
	}
	return p
}

// advance steps over at most units of s, stopping before a line end or before a
// rune that is longer than what is left.
func advance(s string, units int, enc Encoding) (n, used int, stop bool) {
	for n < len(s) && used < units {
		c := s[n]
		if c == '\n' || c == '\r' {
			return n, used, true
		}
		size, width := 1, 1
		if c >= utf8.RuneSelf {
			var r rune
			r, size = utf8.DecodeRuneInString(s[n:])
			switch {
			case enc == UTF8:
				width = size
			case enc == UTF16 && r > 0xFFFF:
				width = 2
			}
		}
		if used+width > units {
			return n, used, true
		}
		n += size
		used += width
	}
	return n, used, used == units
}

// replace puts s in the place of [from, to).
func (t *text) replace(from, to place, s string) {
	if from == to && s == "" {
		return
	}
	first, last := from.i, to.i // blocks[first:last] go
	head, tail := "", ""
	if from.i < len(t.blocks) {
		head = t.blocks[from.i].s[:from.off]
	}
	if to.off > 0 {
		tail = t.blocks[to.i].s[to.off:]
		last++
	}
	// A small neighbour is taken in, and one whose border with the new piece
	// would fall between CR and LF.
	if first > 0 && head == "" && (s == "" || small(t.blocks[first-1].s) || splits(t.blocks[first-1].s, s+tail)) {
		first--
		head = t.blocks[first].s
	}
	piece := head + s + tail
	for last < len(t.blocks) && (small(piece) || splits(piece, t.blocks[last].s)) {
		piece += t.blocks[last].s
		last++
	}
	t.blocks = slices.Replace(t.blocks, first, last, split(nil, piece)...)
	t.flat, t.current = "", false
}

func small(s string) bool { return len(s) < blockMax/4 }

// splits reports whether a and b must not be two blocks.
func splits(a, b string) bool {
	if a == "" || b == "" {
		return true
	}
	return a[len(a)-1] == '\r' && b[0] == '\n'
}
