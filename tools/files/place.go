package files

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lakecode/lakecode/tools"
)

// place finds the one place of h at or below the line from. The texts of its
// errors go on from the name of the hunk.
func (s *sheet) place(h hunk, from int) (at int, note string, bad *tools.Error) {
	heads, bad := s.heads(h.heads)
	if bad != nil {
		return 0, "", bad
	}
	old, _, _, _ := h.old()
	if len(old) == 0 {
		if h.end || len(s.lines) == 0 {
			return len(s.lines), "", nil
		}
		return 0, "", tools.Errorf(tools.BadArguments, "Give lines of the file above or below the new ones, or "+endOfFile+" to append.",
			"has only + lines, so that its place is not known.")
	}
	all := find(s.exact, old)
	at, ambiguous := s.choose(h, all, len(old), heads, from)
	if at < 0 && ambiguous == nil {
		if at, ambiguous = s.chooseLoose(h, old, heads, from); at >= 0 {
			return at, fmt.Sprintf("matched except for space at line ends (line %d).", at+1), nil
		}
	}
	switch {
	case at >= 0:
		return at, s.outside(at, heads), nil
	case ambiguous != nil:
		return 0, "", tools.Errorf(tools.Other, "Add lines around it, or an @@ line with the line that begins its function or block.",
			"is ambiguous: its lines are in the file %d times, at lines %s.", len(ambiguous), numbers(ambiguous))
	case len(all) > 0:
		return 0, "", tools.Errorf(tools.NotFound, "Put hunks in the order of the file, and check @@ lines and "+endOfFile+".",
			"does not match where it should: its lines are at line %s, not %s.", numbers(all), where(h, heads, from))
	}
	return 0, "", tools.Errorf(tools.NotFound, "Copy the lines with space and - from the file as it is now.",
		"does not match: its old lines are not in the file.%s", candidates(s.text, strings.Join(old, "\n")))
}

// where says what narrows the place of a hunk.
func where(h hunk, heads []int, from int) string {
	var all []string
	if from > 0 {
		all = append(all, fmt.Sprintf("below line %d, where the hunk before it ends", from))
	}
	if heads != nil {
		all = append(all, fmt.Sprintf("below its @@ line (line %d)", heads[0]+1))
	}
	if h.end {
		all = append(all, "at the end of the file")
	}
	return strings.Join(all, " and ")
}

// chooseLoose is choose for lines that differ in space at their ends. Blank
// lines alone would match too much.
func (s *sheet) chooseLoose(h hunk, old []string, heads []int, from int) (at int, ambiguous []int) {
	if blank(strings.Join(old, "")) {
		return -1, nil
	}
	if s.loose == nil {
		s.loose = trimmed(s.exact)
	}
	return s.choose(h, find(s.loose, trimmed(old)), len(old), heads, from)
}

func trimmed(lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = strings.TrimRight(l, " \t\r")
	}
	return out
}

// choose takes of the places all, which rise, the only one that is left at or
// below from and its heads. When several are left and some of them are in the
// block of a head, these alone count. -1: none or several.
func (s *sheet) choose(h hunk, all []int, size int, heads []int, from int) (at int, ambiguous []int) {
	if heads != nil {
		from = max(from, heads[0])
	}
	left := all[sortedAt(all, from):]
	if h.end {
		left = left[sortedAt(left, len(s.lines)-size):]
	}
	if len(left) > 1 && heads != nil {
		if inside := s.inside(left, heads); len(inside) > 0 {
			left = inside
		}
	}
	switch len(left) {
	case 0:
		return -1, nil
	case 1:
		return left[0], nil
	}
	return -1, left
}

// sortedAt is the index of the first of rising that is not below v.
func sortedAt(rising []int, v int) int {
	i, _ := slices.BinarySearch(rising, v)
	return i
}

// heads finds the lines that the @@ lines of a hunk name: those of the last,
// below one of the first, within its block where it has them there. Nil: there
// are no @@ lines.
func (s *sheet) heads(names []string) ([]int, *tools.Error) {
	var found []int
	for i, name := range names {
		here := s.named(name)
		if i > 0 {
			here = here[sortedAt(here, found[0]+1):]
			if inside := s.inside(here, found); len(inside) > 0 {
				here = inside
			}
		}
		if len(here) == 0 {
			return nil, tools.Errorf(tools.NotFound, "After @@ write a whole line of the file that stands above the place, or nothing.",
				"has an @@ line that is not in the file: %s.%s", quote(name), candidates(s.text, name))
		}
		found = here
	}
	return found, nil
}

// named returns the lines that are name, space around them aside, or when there
// is none those that begin with it and end a word there.
func (s *sheet) named(name string) []int {
	var whole, begun []int
	for i, l := range s.exact {
		rest, ok := strings.CutPrefix(strings.TrimSpace(l), name)
		if !ok {
			continue
		}
		next, _ := utf8.DecodeRuneInString(rest)
		last, _ := utf8.DecodeLastRuneInString(name)
		switch {
		case rest == "":
			whole = append(whole, i)
		case !word(next) || !word(last):
			begun = append(begun, i)
		}
	}
	if whole != nil {
		return whole
	}
	return begun
}

func word(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// inside returns those of places that are in the block of one of heads.
func (s *sheet) inside(places, heads []int) []int {
	if s.ends == nil {
		s.ends = s.blocks()
	}
	depth := make([]int, len(s.lines)+2)
	for _, h := range heads {
		depth[h]++
		depth[s.ends[h]]--
	}
	for i := range depth[1:] {
		depth[i+1] += depth[i]
	}
	var in []int
	for _, p := range places {
		if depth[p] > 0 {
			in = append(in, p)
		}
	}
	return in
}

// blocks returns for each line where its block ends: at the first line below
// that is indented no deeper, or after it when that one closes a bracket. A line
// that opens one, as in "{" and ") error {", goes on with the block.
func (s *sheet) blocks() []int {
	ends := make([]int, len(s.lines))
	depth := make([]int, len(s.lines))
	var open []int // lines whose block has not ended, none deeper than the next
	pop := func(least, end int) {
		for len(open) > 0 && depth[open[len(open)-1]] >= least {
			ends[open[len(open)-1]] = end
			open = open[:len(open)-1]
		}
	}
	for i, l := range s.exact {
		text := strings.TrimSpace(l)
		if text == "" {
			ends[i] = i + 1
			continue
		}
		depth[i] = strings.Index(l, text)
		closes := strings.IndexByte(")]}", text[0]) >= 0
		opens := strings.IndexByte("([{:", text[len(text)-1]) >= 0
		pop(depth[i]+1, i)
		switch {
		case opens && (closes || text == "{"):
		case closes:
			pop(depth[i], i+1)
		default:
			pop(depth[i], i)
		}
		open = append(open, i)
	}
	pop(0, len(s.lines))
	return ends
}

// outside tells of a place that is not in the block of the head above it.
func (s *sheet) outside(at int, heads []int) string {
	i := sortedAt(heads, at+1) - 1
	if i < 0 || len(s.inside([]int{at}, heads)) > 0 {
		return ""
	}
	h := heads[i]
	if blank(strings.Join(s.exact[h+1:s.ends[h]], "")) {
		return "" // it begins none
	}
	return fmt.Sprintf("is at line %d, below the block of its @@ line (lines %d-%d).", at+1, h+1, s.ends[h])
}
