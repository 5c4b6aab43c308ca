package files

import (
	"context"
	"fmt"
	"strings"

	"github.com/lakecode/lakecode/tools"
)

// sheet is a text as lines, for finding and changing whole lines.
type sheet struct {
	text  string
	lines []string // with their line ends
	exact []string // without them
	loose []string // without space at their ends; made when needed
	ends  []int    // see blocks; made when needed
}

func newSheet(text string) *sheet {
	s := &sheet{text: text, lines: strings.SplitAfter(text, "\n")}
	if s.lines[len(s.lines)-1] == "" {
		s.lines = s.lines[:len(s.lines)-1]
	}
	for _, l := range s.lines {
		if bare, ok := strings.CutSuffix(l, "\n"); ok {
			l = strings.TrimSuffix(bare, "\r")
		}
		s.exact = append(s.exact, l)
	}
	return s
}

// cost is how many lines patch will look at, at most about.
func (s *sheet) cost(hunks []hunk) int {
	looks := 0
	for _, h := range hunks {
		looks += 1 + len(h.heads)
	}
	return looks * len(s.lines)
}

// old returns the lines that h must find, the last of its lines that changes
// something, counted among them, and what it adds and removes.
func (h hunk) old() (old []string, last, added, removed int) {
	for _, o := range h.ops {
		switch o.kind {
		case '+':
			added++
		case '-':
			removed++
			old = append(old, o.text)
		default:
			old = append(old, o.text)
			continue
		}
		last = len(old)
	}
	return old, last, added, removed
}

// patched is what the hunks made of a text.
type patched struct {
	text           string
	added, removed int
	notes          []string
}

// patch applies the hunks in their order. Each is looked for below the last
// change of the one before, so the lines after that may serve both.
func (s *sheet) patch(ctx context.Context, hunks []hunk) (patched, *tools.Error) {
	var p patched
	out := make([]string, 0, len(s.lines))
	from := 0
	for _, h := range hunks {
		if ctx.Err() != nil {
			return p, tools.Errorf(tools.Cancelled, "", "Stopped: %v. Nothing was written.", context.Cause(ctx))
		}
		at, note, bad := s.place(h, from)
		if bad != nil {
			bad.Text = fmt.Sprintf("The hunk at line %d of the patch %s Nothing was written.", h.line, bad.Text)
			return p, bad
		}
		if note != "" {
			p.notes = append(p.notes, fmt.Sprintf("The hunk at line %d of the patch %s", h.line, note))
		}
		old, last, added, removed := h.old()
		p.added, p.removed = p.added+added, p.removed+removed
		out = append(out, s.lines[from:at]...)
		out = s.fill(out, h, at, s.end(at, at+len(old)))
		from = at + last
	}
	out = append(out, s.lines[from:]...)
	p.text = s.join(out)
	return p, nil
}

// fill appends what h makes of the lines from at on, up to its last change.
func (s *sheet) fill(out []string, h hunk, at int, end string) []string {
	_, last, _, _ := h.old()
	last += at
	for _, o := range h.ops {
		switch {
		case o.kind == '+':
			out = append(out, o.text+end)
			continue
		case at == last: // only lines that stay are left
			return out
		case o.kind == ' ':
			out = append(out, s.lines[at])
		}
		at++
	}
	return out
}

// end is the line end that is usual in [from, to), or else in the text.
func (s *sheet) end(from, to int) string {
	near := strings.Join(s.lines[from:to], "")
	if !strings.Contains(near, "\n") {
		near = s.text
	}
	if strings.Count(near, "\r\n")*2 > strings.Count(near, "\n") {
		return "\r\n"
	}
	return "\n"
}

// join puts lines together. A missing final line end stays missing, and the
// line that had none gets one when it is no longer the last.
func (s *sheet) join(out []string) string {
	if s.text == "" || strings.HasSuffix(s.text, "\n") || len(out) == 0 {
		return strings.Join(out, "")
	}
	for i, l := range out[:len(out)-1] {
		if !strings.HasSuffix(l, "\n") {
			out[i] = l + s.end(len(s.lines), len(s.lines))
		}
	}
	all := strings.Join(out, "")
	if last := strings.TrimSuffix(all, "\n"); last != all {
		return strings.TrimSuffix(last, "\r")
	}
	return all
}

// find returns all places of want, which is not empty, in have, overlapping ones too, in time that
// grows with both lengths only (Knuth, Morris and Pratt).
func find(have, want []string) []int {
	back := make([]int, len(want)) // how much of want is still matched after a miss
	for i, k := 1, 0; i < len(want); i++ {
		for k > 0 && want[i] != want[k] {
			k = back[k-1]
		}
		if want[i] == want[k] {
			k++
		}
		back[i] = k
	}
	var found []int
	k := 0
	for i, l := range have {
		for k > 0 && l != want[k] {
			k = back[k-1]
		}
		if l == want[k] {
			k++
		}
		if k == len(want) {
			found = append(found, i+1-k)
			k = back[k-1]
		}
	}
	return found
}

// numbers names the first twenty places as line numbers.
func numbers(places []int) string {
	const most = 20
	var out []string
	for _, p := range places[:min(most, len(places))] {
		out = append(out, fmt.Sprint(p+1))
	}
	if len(places) > most {
		out = append(out, "and more")
	}
	return strings.Join(out, ", ")
}
