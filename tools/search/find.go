//go:build unix

package search

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lakecode/lakecode/tools"
)

const (
	foundByDefault = 50
	maxFound       = 200
	lookLess       = "This says nothing about whether the file is there. Give path, a folder with less in it."
	// onlyOpen marks a file that the editor holds and the disk does not.
	onlyOpen = "  (only in the editor, not saved)"
)

var findSpec = tools.Spec{
	Name: "find_files",
	Tier: tools.Read,
	Description: `Find files by their names or paths, best first: query is fuzzy ("usrctl" finds src/user_controller.go; several words must all fit), glob is exact; give one or both. ` +
		`Ignored files and build folders count only when path names such a folder; links are not followed; new unsaved files of the editor count. To find text in files use search_text.`,
}

// findArgs are the arguments of find_files.
type findArgs struct {
	Query string `json:"query,omitempty" jsonschema:"part of a name or path, in any case; letters may be left out"`
	Glob  string `json:"glob,omitempty" jsonschema:"only paths that fit: *.go in any folder; src/**/*.{ts,tsx}; !*_test.go for all others"`
	Path  string `json:"path,omitempty" jsonschema:"folder to look in, relative to the workspace; default: all of it"`
	Limit int    `json:"limit,omitempty" jsonschema:"most paths shown, 1 to 200; default 50"`
}

func (a findArgs) pick(base string) (pick, error) {
	p := pick{limit: a.Limit}
	if p.limit == 0 {
		p.limit = foundByDefault
	}
	switch {
	case a.Limit < 0 || a.Limit > maxFound:
		return p, tools.Errorf(tools.BadArguments, "", "limit is %d; it may be 1 to %d.", a.Limit, maxFound)
	case len(a.Query) > maxQuery:
		return p, tools.Errorf(tools.BadArguments, "Use search_text to find text in files.", "query has %d bytes; a part of a path has %d at most.", len(a.Query), maxQuery)
	}
	if q := newFuzzy(a.Query); len(q.words) > 0 {
		p.query = q
	}
	var err error
	if p.glob, err = newGlob(a.Glob, base); err != nil {
		return p, err
	}
	if p.query == nil && p.glob == nil {
		return p, tools.Errorf(tools.BadArguments, `Give query, glob or both; list_directory lists a folder; glob "**" takes every file.`, "There is neither a query nor a glob.")
	}
	return p, nil
}

// find runs find_files.
func (s *searcher) find(ctx context.Context, in findArgs, _ *tools.IO) (tools.Output, error) {
	at, err := s.place(in.Path)
	if err != nil {
		return tools.Output{}, err
	}
	if at.file {
		return tools.Output{}, tools.Errorf(tools.BadArguments, "Give a folder, or leave path out.", "%s is a file.", at.rel)
	}
	p, err := in.pick(at.base())
	if err != nil {
		return tools.Output{}, err
	}
	timed, stop := context.WithTimeoutCause(ctx, s.limits.Time, errTime)
	defer stop()
	f := &finding{args: in, pick: p, at: at}
	if f.list, err = s.list(timed, at); err == nil {
		f.open = s.unlisted(f.list.paths, at)
		f.picked, err = p.from(timed, f.list.paths, newPathList(f.openPaths()))
	}
	if err != nil {
		return tools.Output{}, s.gaveUp(ctx, err, at, lookLess)
	}
	text, err := f.render()
	return tools.Output{Text: text}, err
}

// finding is one call of find_files.
type finding struct {
	args   findArgs
	pick   pick
	at     place
	list   *listing
	open   map[string]bool // documents that are not in list; true: not on the disk
	picked picked
}

func (f *finding) openPaths() []string {
	var all []string
	for rel := range f.open {
		all = append(all, rel)
	}
	return all
}

// unlisted returns the documents of the editor in a folder that are not in l:
// they are in front of the person, ignored or not.
func (s *searcher) unlisted(l *pathList, at place) map[string]bool {
	open := map[string]bool{}
	for _, d := range s.tree.Docs() {
		p, ok := s.tree.Locate(d.Path)
		if !ok || !at.holds(p.Rel) {
			continue
		}
		info, err := os.Lstat(p.Abs)
		switch {
		case err == nil && info.Mode().IsRegular():
			open[p.Rel] = false
		case errors.Is(err, fs.ErrNotExist):
			open[p.Rel] = true
		}
	}
	if len(open) == 0 {
		return open
	}
	for i := range l.len() {
		from, _, end := l.bounds(i)
		delete(open, string(l.raw[from:end]))
	}
	return open
}

func (f *finding) render() (string, error) {
	all := f.list.paths.len() + len(f.open)
	if all == 0 {
		return "", f.nothing()
	}
	var out strings.Builder
	switch {
	case f.picked.fit == 0:
		fmt.Fprintf(&out, "No path fits glob %q among %s%s.", f.args.Glob, count(all, "file"), f.where())
	case f.picked.total == 0:
		fmt.Fprintf(&out, "No path fits query %q among %s%s.", f.args.Query, count(f.picked.fit, "file"), f.scope())
	case f.pick.query != nil:
		fmt.Fprintf(&out, "%d of %s%s match %q, best first", f.picked.total, count(f.picked.fit, "file"), f.scope(), f.args.Query)
	default:
		fmt.Fprintf(&out, "%d of %s%s match glob %q", f.picked.total, count(all, "file"), f.where(), f.args.Glob)
	}
	out.WriteByte('\n')
	if t := f.list.tally; t.unreadable > 0 {
		fmt.Fprintf(&out, "%s could not be read.\n", count(t.unreadable, "folder"))
	}
	for _, n := range f.list.notes {
		out.WriteString(n + "\n")
	}
	for _, h := range f.picked.hits {
		out.WriteString(visible(h.path))
		if f.open[h.path] {
			out.WriteString(onlyOpen)
		}
		out.WriteByte('\n')
	}
	if n := len(f.picked.hits); n < f.picked.total {
		more := "a longer query, glob or path"
		if n < maxFound {
			more += fmt.Sprintf(", or limit up to %d", maxFound)
		}
		fmt.Fprintf(&out, "[cut: %d of %d paths shown; narrow with %s]\n", n, f.picked.total, more)
	}
	return out.String(), nil
}

func (f *finding) where() string {
	if f.at.rel == "." {
		return ""
	}
	return " in " + f.at.rel
}

func (f *finding) scope() string {
	if f.pick.glob == nil {
		return f.where()
	}
	return fmt.Sprintf(" that fit glob %q", f.args.Glob) + f.where()
}

// nothing explains why there was no path to look at.
func (f *finding) nothing() error {
	why, next := "there is no file"+f.where(), "Give another path, or list_directory to see what is there."
	switch t := f.list.tally; {
	case t.unreadable > 0:
		why += fmt.Sprintf(" that can be seen (%s could not be read)", count(t.unreadable, "folder"))
	case t.hidden > 0:
		why += fmt.Sprintf(" that is not in a hidden folder (%s passed over)", strings.Join(hiddenFolders, ", "))
		next = "Name the folder in path to look in it."
	case t.links > 0:
		why += fmt.Sprintf(" (%s not followed)", count(t.links, "link"))
	}
	if len(f.list.notes) > 0 {
		why += ". " + strings.TrimSuffix(strings.Join(f.list.notes, " "), ".")
	}
	return tools.Errorf(tools.NotFound, next, "Nothing was looked at: %s.", why)
}

// visible keeps a name with odd characters on one line, as itself.
func visible(name string) string {
	if !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return strconv.Quote(name)
	}
	return name
}
