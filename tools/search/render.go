package search

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/lakecode/lakecode/tools"
)

// maxPlaces is how many folders are named to narrow a search with.
const maxPlaces = 3

// render writes the result, or the error that stands for it when nothing was
// searched: only a text that was looked for and is not there is a success.
func (f *found) render(in textArgs, at place) (string, error) {
	if f.tally.searched == 0 {
		return "", f.nothing(in, at)
	}
	c := f.job.hits
	if c.lines == 0 {
		return f.none(in, at), nil
	}
	var body strings.Builder
	shown, whole := 0, 0
	for i := range f.files {
		n := f.file(&body, &f.files[i], f.job.limits.Total-shown)
		shown += n
		if n == 0 {
			break
		}
		whole++
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s in %s", count(c.lines, "matching line"), count(c.count, "file"))
	fmt.Fprintf(&out, " (%s searched%s)\n", count(f.tally.searched, "file"), f.skipped())
	f.remarks(&out)
	out.WriteString(body.String())
	if shown < c.lines {
		fmt.Fprintf(&out, "\n[cut: %d of %d matching lines shown, %d of %d files%s]\n", shown, c.lines, whole, c.count, f.narrow(at, whole))
	}
	return out.String(), nil
}

// file writes the hits of one file, at most room matching lines of them, and
// returns how many.
func (f *found) file(out *strings.Builder, h *fileHits, room int) int {
	if room <= 0 || out.Len() >= f.job.limits.TextBytes {
		return 0
	}
	out.WriteString("\n" + printable([]byte(h.rel)))
	if h.note != "" {
		out.WriteString(" (" + h.note + ")")
	}
	out.WriteByte('\n')
	n, last := 0, 0
	for _, l := range h.lines {
		if l.match && n == room || out.Len() >= f.job.limits.TextBytes {
			break
		}
		if f.job.context > 0 && last > 0 && l.number > last+1 {
			out.WriteString("--\n")
		}
		last = l.number
		mark := byte('-')
		if l.match {
			mark = ':'
			n++
		}
		out.WriteString(strconv.Itoa(l.number))
		out.WriteByte(mark)
		out.WriteString(l.text)
		out.WriteByte('\n')
	}
	if n < h.total {
		fmt.Fprintf(out, "[cut: %d of %d matching lines of this file shown; the rest is after line %d: read_file path=%q offset=%d, or a narrower pattern]\n",
			n, h.total, last, h.rel, last+1)
	}
	return n
}

// narrow says how to get at what was not shown.
func (f *found) narrow(at place, whole int) string {
	if at.file || whole == f.job.hits.count {
		return ""
	}
	places := f.job.hits.places
	names := slices.SortedFunc(maps.Keys(places), func(a, b string) int {
		return cmp.Or(cmp.Compare(places[b], places[a]), cmp.Compare(a, b))
	})
	if len(names) == 0 {
		return "; narrow with glob or a longer pattern"
	}
	var most []string
	for _, name := range names[:min(len(names), maxPlaces)] {
		most = append(most, fmt.Sprintf("path=%q (%d)", at.base()+name, places[name]))
	}
	return "; narrow with glob, a longer pattern or " + strings.Join(most, ", ")
}

// none is the text for a pattern that is not there.
func (f *found) none(in textArgs, at place) string {
	var out strings.Builder
	fmt.Fprintf(&out, "No match for %q in %s%s%s.\n", in.Pattern, count(f.tally.searched, "file"), f.scope(in, at), f.skipped())
	f.remarks(&out)
	return out.String()
}

// nothing explains why there was no text to search.
func (f *found) nothing(in textArgs, at place) error {
	t, where := f.tally, f.scope(textArgs{}, at)
	code, why, next := tools.NotFound, "there is no file"+where, "Give another path, or list_directory to see what is there."
	switch {
	case at.file && t.binary > 0:
		code, why, next = tools.Other, at.rel+" is a binary file", ""
	case at.file && t.large > 0:
		code, next = tools.TooLarge, "Read parts of it with read_file and offset."
		why = fmt.Sprintf("%s is larger than %d bytes", at.rel, f.job.limits.FileBytes)
	case at.file && t.unreadable > 0:
		code, why, next = tools.NotAllowed, at.rel+" cannot be read", "Tell the person; do not try another way around it."
	case t.binary+t.large+t.unreadable > 0:
		code, why = tools.Other, fmt.Sprintf("none of the files%s is a text that can be read%s", where, f.skipped())
	case in.Glob != "" && t.looked > 0:
		why = fmt.Sprintf("none of %s%s fits glob %q", count(t.looked, "file"), where, in.Glob)
		next = `Examples of glob: "*.go", "src/**/*.{ts,tsx}", "!*_test.go".`
	case t.hidden > 0:
		why += fmt.Sprintf(" that is not in a hidden folder (%s passed over)", strings.Join(hiddenFolders, ", "))
		next = "Name the folder in path to search it."
	}
	return tools.Errorf(code, next, "Nothing was searched: %s.", why+f.also())
}

func (f *found) also() string {
	if len(f.notes) == 0 {
		return ""
	}
	return ". " + strings.TrimSuffix(strings.Join(f.notes, " "), ".")
}

func (f *found) scope(in textArgs, at place) string {
	s := ""
	if in.Glob != "" {
		s = fmt.Sprintf(" that fit glob %q", in.Glob)
	}
	switch {
	case at.file:
		return s + " (" + at.rel + ")"
	case at.rel != ".":
		return s + " in " + at.rel
	}
	return s
}

// skipped lists what was met and not searched; it begins with "; " if at all.
func (f *found) skipped() string {
	t := f.tally
	var parts []string
	add := func(n int, text string) {
		if n > 0 {
			parts = append(parts, text)
		}
	}
	add(t.binary, fmt.Sprintf("%d binary", t.binary))
	add(t.unreadable, fmt.Sprintf("%d unreadable", t.unreadable))
	add(t.large, fmt.Sprintf("%d over %d MiB", t.large, f.job.limits.FileBytes>>20))
	add(t.special, count(t.special, "special file"))
	add(t.links, count(t.links, "link"))
	if len(parts) == 0 {
		return ""
	}
	return "; skipped: " + strings.Join(parts, ", ")
}

func (f *found) remarks(out *strings.Builder) {
	for _, n := range f.notes {
		out.WriteString(n + "\n")
	}
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
