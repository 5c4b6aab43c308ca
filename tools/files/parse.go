package files

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/lakecode/lakecode/tools"
)

// Bounds of one patch.
const (
	maxPatch      = 1 << 20 // bytes
	maxSections   = 200
	maxPatchHunks = 1000
	maxHeads      = 8 // @@ lines of one hunk
)

// section is what a patch does to one file.
type section struct {
	line  int    // of the patch, from 1; that of the head
	verb  string // addFile, deleteFile or updateFile
	path  string
	to    string // the new path; empty: it stays
	text  string // of a new file
	hunks []hunk
}

// hunk is a change at one place.
type hunk struct {
	line  int      // of the patch
	heads []string // lines above the place, from the outermost inwards
	ops   []op
	end   bool // the last line of the hunk is the last of the file
}

// op is one line of a hunk.
type op struct {
	kind byte // ' ', '-' or '+'
	text string
}

const (
	beginPatch = "*** Begin Patch"
	endPatch   = "*** End Patch"
	endOfFile  = "*** End of File"
	addFile    = "*** Add File:"
	deleteFile = "*** Delete File:"
	updateFile = "*** Update File:"
	moveTo     = "*** Move to:"
)

// parser goes through a patch line by line.
type parser struct {
	lines    []string // all of the text, without line ends
	at       int      // index of the next line
	sections []section
	hunks    int
	notes    []string
}

var (
	// heredoc is the head of a shell's here-document, in which models that know
	// the format as a command wrap it.
	heredoc = regexp.MustCompile(`^(?:apply_patch\s+)?<<-?\s*['"]?(\w+)['"]?$`)
	fence   = regexp.MustCompile("^```\\w*$")
	ranges  = regexp.MustCompile(`^-\d+(?:,\d+)? \+\d+(?:,\d+)? @@`)
)

// parse reads a patch. notes say what in it was passed over. The error names
// the line of the patch.
func parse(patch string) (sections []section, notes []string, bad *tools.Error) {
	if len(patch) > maxPatch {
		return nil, nil, tools.Errorf(tools.TooLarge, "Split it.", "The patch has %d bytes; the limit is %d. Nothing was written.", len(patch), maxPatch)
	}
	p := &parser{lines: strings.Split(patch, "\n")}
	if bad := p.envelope(); bad != nil {
		return nil, nil, bad
	}
	for p.at < len(p.lines) {
		if blank(p.lines[p.at]) {
			p.at++
			continue
		}
		if bad := p.section(); bad != nil {
			return nil, nil, bad
		}
	}
	if len(p.sections) == 0 {
		return nil, nil, tools.Errorf(tools.BadArguments, "", "The patch has no file between %q and %q. Nothing was written.", beginPatch, endPatch)
	}
	return p.sections, p.notes, nil
}

// fail is an error at the line with the index i.
func (p *parser) fail(i int, next, format string, args ...any) *tools.Error {
	return tools.Errorf(tools.BadArguments, next, "Line %d of the patch %s Nothing was written.", i+1, fmt.Sprintf(format, args...))
}

func blank(l string) bool { return strings.TrimSpace(l) == "" }

// mark is a line of the format itself, without space at its end.
func mark(l string) string { return strings.TrimRight(l, " \t") }

// envelope finds the first and the last line and leaves what is between them.
func (p *parser) envelope() *tools.Error {
	begin, end, last := -1, -1, -1
	for i, l := range p.lines {
		switch {
		case strings.HasSuffix(l, "\r"):
			return p.fail(i, "Write the patch with LF; a file's own line ends are kept by themselves.", "ends with CR LF.")
		case strings.ContainsRune(l, 0):
			return p.fail(i, "", "holds a NUL character.")
		case begin < 0 && mark(l) == beginPatch:
			begin = i
		case begin >= 0 && end < 0 && mark(l) == endPatch:
			end = i
		}
		if !blank(l) {
			last = i
		}
	}
	switch {
	case last < 0:
		return tools.Errorf(tools.BadArguments, "", "The patch is empty. Nothing was written.")
	case begin < 0:
		return p.fail(first(p.lines), "", "is not %q, with which a patch begins.", beginPatch)
	case end < 0:
		return p.fail(last, "", "is the last and not %q: the patch may be cut.", endPatch)
	}
	if bad := p.around(begin, end, last); bad != nil {
		return bad
	}
	p.lines, p.at = p.lines[:end], begin+1
	return nil
}

// first is the index of the first line that is not blank.
func first(lines []string) int {
	for i, l := range lines {
		if !blank(l) {
			return i
		}
	}
	return 0
}

// around refuses text outside of the patch, except for one pair of lines that
// can only be its wrapping.
func (p *parser) around(begin, end, last int) *tools.Error {
	head := first(p.lines)
	if head < begin {
		open, tail := strings.TrimSpace(p.lines[head]), "```"
		what := "``` fence"
		if m := heredoc.FindStringSubmatch(open); m != nil {
			tail, what = m[1], "here-document"
		} else if !fence.MatchString(open) {
			return p.fail(head, "", "stands before %q. Only the patch belongs into it.", beginPatch)
		}
		if i := head + 1 + first(p.lines[head+1:]); i < begin {
			return p.fail(i, "", "stands before %q. Only the patch belongs into it.", beginPatch)
		}
		if i := end + 1 + first(p.lines[end+1:]); end < last && i == last && strings.TrimSpace(p.lines[i]) == tail {
			last = end
		}
		p.notes = append(p.notes, "The "+what+" around the patch was ignored.")
	}
	if end < last {
		return p.fail(end+1+first(p.lines[end+1:]), "Put all files between one pair of them.", "stands after %q. Only the patch belongs into it.", endPatch)
	}
	return nil
}

// section reads the part of one file.
func (p *parser) section() *tools.Error {
	l := mark(p.lines[p.at])
	s := section{line: p.at + 1}
	for _, verb := range []string{addFile, deleteFile, updateFile} {
		if rest, ok := strings.CutPrefix(l, verb); ok {
			s.verb, s.path = verb, strings.TrimSpace(rest)
		}
	}
	switch {
	case s.verb == "":
		return p.fail(p.at, "", "is %s, where a file begins: \"%s path\", \"%s path\" or \"%s path\".", quote(l), addFile, deleteFile, updateFile)
	case s.path == "":
		return p.fail(p.at, "", "names no file.")
	case len(p.sections) == maxSections:
		return p.fail(p.at, "Split the patch.", "begins one file too many: the limit is %d.", maxSections)
	}
	p.at++
	var bad *tools.Error
	switch s.verb {
	case addFile:
		bad = p.add(&s)
	case updateFile:
		bad = p.update(&s)
	}
	p.sections = append(p.sections, s)
	return bad
}

func (p *parser) add(s *section) *tools.Error {
	var b strings.Builder
	for ; p.at < len(p.lines); p.at++ {
		l := p.lines[p.at]
		if strings.HasPrefix(l, "***") {
			break
		}
		if blank(l) {
			i := p.at
			for i < len(p.lines) && blank(p.lines[i]) {
				i++
			}
			if i == len(p.lines) || strings.HasPrefix(p.lines[i], "***") {
				p.at = i // they only set the sections apart
				break
			}
		}
		if !strings.HasPrefix(l, "+") {
			return p.fail(p.at, "An empty line of a new file is a + alone.", "does not begin with +, as every line of a new file does: %s.", quote(l))
		}
		b.WriteString(l[1:] + "\n")
	}
	s.text = b.String()
	return nil
}

func (p *parser) update(s *section) *tools.Error {
	if p.at < len(p.lines) {
		if to, ok := strings.CutPrefix(p.lines[p.at], moveTo); ok {
			if s.to = strings.TrimSpace(to); s.to == "" {
				return p.fail(p.at, "", "names no file.")
			}
			p.at++
		}
	}
	for p.at < len(p.lines) {
		switch l := p.lines[p.at]; {
		case blank(l):
			p.at++
		case strings.HasPrefix(l, "***"):
			if len(s.hunks) == 0 && s.to == "" {
				return p.fail(s.line-1, "", "has no hunk after it.")
			}
			return nil
		case len(s.hunks) > 0 && !strings.HasPrefix(l, "@@"):
			return p.fail(p.at, "", "does not begin with @@, as every hunk after the first does.")
		default:
			if bad := p.hunk(s); bad != nil {
				return bad
			}
		}
	}
	if len(s.hunks) == 0 && s.to == "" {
		return p.fail(s.line-1, "", "has no hunk after it.")
	}
	return nil
}

// hunk reads one hunk. The @@ line of the first may be left out.
func (p *parser) hunk(s *section) *tools.Error {
	if p.hunks++; p.hunks > maxPatchHunks {
		return p.fail(p.at, "Split the patch.", "begins one hunk too many: the limit is %d.", maxPatchHunks)
	}
	h := hunk{line: p.at + 1}
	for ; p.at < len(p.lines) && strings.HasPrefix(p.lines[p.at], "@@"); p.at++ {
		if head := p.head(p.lines[p.at]); head != "" {
			h.heads = append(h.heads, head)
		}
	}
	if len(h.heads) > maxHeads {
		return p.fail(h.line-1, "One or two are enough.", "begins a hunk with more than %d @@ lines.", maxHeads)
	}
	bare := 0 // empty lines at the end, which may only set things apart
	for ; p.at < len(p.lines); p.at++ {
		l := p.lines[p.at]
		if strings.HasPrefix(l, "***") || strings.HasPrefix(l, "@@") {
			break
		}
		bare++
		switch {
		case l == "":
			h.ops = append(h.ops, op{' ', ""})
			continue
		case strings.IndexByte(" -+", l[0]) < 0:
			return p.fail(p.at, "", "begins with neither space, - nor +, as every line of a hunk does: %s.", quote(l))
		}
		bare = 0
		h.ops = append(h.ops, op{l[0], l[1:]})
	}
	h.ops = h.ops[:len(h.ops)-bare]
	if len(h.ops) == 0 {
		return p.fail(h.line-1, "", "begins a hunk without lines.")
	}
	if p.at < len(p.lines) && mark(p.lines[p.at]) == endOfFile {
		h.end = true
		p.at++
	}
	s.hunks = append(s.hunks, h)
	return nil
}

// head returns what an @@ line says. The numbers of a unified diff say nothing
// here, nor does the line after them, which such a diff may have cut.
func (p *parser) head(l string) string {
	l = strings.TrimSpace(strings.TrimPrefix(l, "@@"))
	if ranges.MatchString(l) {
		const note = "The line numbers of @@ lines were ignored."
		if len(p.notes) == 0 || p.notes[len(p.notes)-1] != note {
			p.notes = append(p.notes, note)
		}
		return ""
	}
	return strings.TrimSpace(strings.TrimSuffix(l, "@@"))
}
