package files

import (
	"sort"
	"strings"
)

// span is [from, to) in bytes of the text that is edited.
type span struct{ from, to int }

// view is a text with some bytes left out, and where they were: matching goes
// on without them, and finds its way back to the bytes of the file.
type view struct {
	s   string
	cut []int // for every byte left out, the offset in s before which it was; rising
}

// back returns the offset in the text of the view's offset at, before what was
// left out there.
func (v view) back(at int) int { return at + sort.SearchInts(v.cut, at) }

// without leaves out the bytes of s for which drop holds.
func without(s string, drop func(i int) bool) view {
	var b strings.Builder
	var cut []int
	for i := range len(s) {
		if drop(i) {
			cut = append(cut, b.Len())
			continue
		}
		b.WriteByte(s[i])
	}
	return view{b.String(), cut}
}

// unixEnds sees CR LF as LF.
func unixEnds(s string) view {
	if !strings.Contains(s, "\r\n") {
		return view{s: s}
	}
	return without(s, func(i int) bool { return s[i] == '\r' && i+1 < len(s) && s[i+1] == '\n' })
}

// noTrail leaves out spaces, tabs and CR before a line end and at the end.
func noTrail(s string) view {
	trail := make([]bool, len(s))
	at := true
	for i := len(s) - 1; i >= 0; i-- {
		switch s[i] {
		case '\n':
			at = true
		case ' ', '\t', '\r':
			trail[i] = at
		default:
			at = false
		}
	}
	return without(s, func(i int) bool { return trail[i] })
}

// occurrences finds old in s, from left to right and without overlap; two
// places that overlap are still two, so that old is not taken for unique.
func occurrences(s, old string) (found []int, ambiguous bool) {
	for at := 0; ; {
		i := strings.Index(s[at:], old)
		if i < 0 {
			break
		}
		at += i
		found = append(found, at)
		if next := strings.Index(s[at+1:], old); next >= 0 && next+1 < len(old) {
			ambiguous = true
		}
		at += len(old)
	}
	return found, ambiguous || len(found) > 1
}

// exact finds old in s; LF in old matches CR LF in s.
func exact(s, old string) (at []span, ambiguous bool) {
	v := view{s: s}
	if strings.Contains(s, "\r\n") {
		v, old = unixEnds(s), strings.ReplaceAll(old, "\r\n", "\n")
	}
	found, ambiguous := occurrences(v.s, old)
	for _, f := range found {
		// A match that begins with a line end begins before its CR, and one that
		// ends before a line end ends before it.
		at = append(at, span{v.back(f), v.back(f + len(old))})
	}
	return at, ambiguous
}

// forgiving finds old in s where they differ in space at line ends only. The
// space at the end of the match is not part of it, nor is a final line end that
// the text does not have; short says so of the latter.
func forgiving(s, old string) (at []span, ambiguous, short bool) {
	v, o := noTrail(s), noTrail(old).s
	if strings.Trim(o, "\n") == "" {
		return nil, false, false // would match every line end
	}
	found, ambiguous := occurrences(v.s, o)
	if len(found) == 0 && strings.HasSuffix(o, "\n") && !strings.HasSuffix(s, "\n") {
		if o = strings.TrimSuffix(o, "\n"); strings.HasSuffix(v.s, o) {
			found, short = []int{len(v.s) - len(o)}, true
		}
	}
	for _, f := range found {
		at = append(at, span{v.back(f), v.back(f + len(o))})
	}
	return at, ambiguous, short
}

// splice replaces the spans of s, which rise and do not overlap, each of which
// old has matched, by new. Lines that old and new have in common keep the bytes
// of s; the others get the line ends that are usual around them.
func splice(s string, spans []span, old, new string) string {
	crlf := strings.Count(s, "\r\n")
	mostly := crlf*2 > strings.Count(s, "\n")
	var b strings.Builder
	at := 0
	for _, sp := range spans {
		b.WriteString(s[at:sp.from])
		if crlf == 0 && s[sp.from:sp.to] == old {
			b.WriteString(new)
		} else {
			b.WriteString(merge(s[sp.from:sp.to], old, new, mostly))
		}
		at = sp.to
	}
	b.WriteString(s[at:])
	return b.String()
}

// merge is splice for one span, whose lines are as many as old's.
func merge(region, old, new string, crlf bool) string {
	if n := strings.Count(region, "\n"); n > 0 {
		crlf = strings.Count(region, "\r\n")*2 > n
	}
	was := strings.Split(region, "\n")
	from := strings.Split(strings.ReplaceAll(old, "\r\n", "\n"), "\n")
	to := strings.Split(strings.ReplaceAll(new, "\r\n", "\n"), "\n")
	head := 0
	for head < min(len(from), len(to)) && from[head] == to[head] {
		head++
	}
	tail := 0
	for tail < min(len(from), len(to))-head && from[len(from)-1-tail] == to[len(to)-1-tail] {
		tail++
	}
	var out []string
	for i, l := range was[:head] {
		if crlf && i == len(was)-1 { // had no line end, has one now
			l += "\r"
		}
		out = append(out, l)
	}
	for _, l := range to[head : len(to)-tail] {
		if crlf {
			l += "\r"
		}
		out = append(out, l)
	}
	out = append(out, was[len(was)-tail:]...)
	if tail == 0 && (crlf || head == len(to)) { // the last has no line end of its own
		out[len(out)-1] = strings.TrimSuffix(out[len(out)-1], "\r")
	}
	return strings.Join(out, "\n")
}
