package files

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/lakecode/lakecode/session/durable"
	"github.com/lakecode/lakecode/tools"
	"github.com/lakecode/lakecode/tools/workspace"
)

const (
	maxListed = 500
	maxDepth  = 5
)

// leftOut are the folders that a listing does not show unless it is asked for
// one by its path (spec 12: list_directory).
var leftOut = []string{".git", "bin", "obj", "node_modules"}

// maxGathered bounds what is looked at of one level of a listing, in entries.
const maxGathered = 50_000

var listSpec = tools.Spec{
	Name: "list_directory", Tier: tools.Read,
	Description: `List a folder: folders first, then files with sizes in bytes; links are shown with their targets and not followed.
At most 500 entries. .git, bin, obj and node_modules, and what git ignores, are left out inside of what is listed, and named or counted; give their path to list them. To find files by name use find_files, by content search_text.`,
}

type listIn struct {
	Path  string `json:"path,omitempty" jsonschema:"relative to the workspace root; default the root"`
	Depth int    `json:"depth,omitempty" jsonschema:"levels, 1 to 5; default 1"`
}

// listing is one call of list_directory.
type listing struct {
	b       *box
	ctx     context.Context
	top     workspace.Path
	unsaid  map[string][]string // folder to names that are open in the editor and not on the disk
	out     strings.Builder
	shown   int
	more    bool
	hidden  []string
	ignored int
	notes   []string
}

// shelf is a folder of a listing.
type shelf struct {
	at    workspace.Path
	items []*item
	names map[string]bool // all that is there, shown or not
	err   error
}

type item struct {
	entry fs.DirEntry
	below *shelf // nil for what is no folder, or too deep to be listed
}

func (b *box) list(ctx context.Context, in listIn, _ *tools.IO) (tools.Output, error) {
	if in.Depth < 0 || in.Depth > maxDepth {
		return tools.Output{}, tools.Errorf(tools.BadArguments, "", "depth goes from 1 to %d.", maxDepth)
	}
	if in.Path == "" {
		in.Path = "."
	}
	p, err := b.w.Resolve(in.Path)
	if err != nil {
		return tools.Output{}, err
	}
	l := &listing{b: b, ctx: ctx, top: p, unsaid: map[string][]string{}}
	for _, d := range b.w.Docs() {
		if q, ok := b.w.Locate(d.Path); ok {
			l.unsaid[path.Dir(q.Rel)] = append(l.unsaid[path.Dir(q.Rel)], path.Base(q.Rel))
		}
	}
	first := &shelf{at: p}
	err = l.gather(first, max(1, in.Depth))
	switch {
	case is(err, tools.NotFound):
		return tools.Output{}, b.missing(ctx, p)
	case err != nil:
		return tools.Output{}, err
	}
	l.write(first, "")
	return tools.Output{Text: l.text()}, nil
}

func (l *listing) text() string {
	head := fmt.Sprintf("%s: %d entries", l.top.Rel, l.shown)
	if l.shown == 0 && l.ignored == 0 && !l.more {
		head = l.top.Rel + " is empty"
	}
	var not []string
	if len(l.hidden) > 0 {
		named := "not shown: " + strings.Join(l.hidden[:min(10, len(l.hidden))], ", ")
		if n := len(l.hidden) - 10; n > 0 {
			named += fmt.Sprintf(" and %d more left out", n)
		}
		not = append(not, named)
	}
	if l.ignored == 1 {
		not = append(not, "1 ignored entry not shown")
	} else if l.ignored > 1 {
		not = append(not, fmt.Sprintf("%d ignored entries not shown", l.ignored))
	}
	if len(not) > 0 {
		head += " (" + strings.Join(not, "; ") + ")"
	}
	out := strings.Join(append([]string{head}, l.notes...), "\n") + "\n" + l.out.String()
	if l.more {
		out += fmt.Sprintf("[cut after %d entries: list a folder below it, or use find_files or search_text]", l.shown)
	}
	return strings.TrimSuffix(out, "\n")
}

// gather reads first and what is below, level by level: so the ignore rules are
// asked once for each level and not for each folder.
func (l *listing) gather(first *shelf, depth int) error {
	level := []*shelf{first}
	for d := range depth {
		room := maxGathered
		for _, s := range level {
			if room <= 0 {
				l.more = true
				break
			}
			s.err = l.read(s)
			if s.err != nil && (s == first || l.ctx.Err() != nil) {
				return s.err
			}
			room -= len(s.items)
		}
		if err := l.leaveOut(level); err != nil {
			return err
		}
		if d+1 == depth {
			break
		}
		left := maxListed
		level = l.next(first, &left)
	}
	return nil
}

// read fills a shelf with all that is in its folder but what is left out by name.
func (l *listing) read(s *shelf) error {
	entries, more, err := l.b.w.ReadDir(l.ctx, s.at)
	if err != nil {
		return err
	}
	l.more = l.more || more
	slices.SortFunc(entries, func(a, b fs.DirEntry) int {
		if a.IsDir() != b.IsDir() {
			if a.IsDir() {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Name(), b.Name())
	})
	s.names = make(map[string]bool, len(entries))
	for _, e := range entries {
		s.names[e.Name()] = true
		switch {
		case strings.HasPrefix(e.Name(), durable.TempPrefix):
		case e.IsDir() && slices.Contains(leftOut, e.Name()):
			l.hidden = append(l.hidden, path.Join(s.at.Rel, e.Name()))
		default:
			s.items = append(s.items, &item{entry: e})
		}
	}
	return nil
}

// leaveOut takes out what is ignored, as far as entries may still be shown.
func (l *listing) leaveOut(level []*shelf) error {
	type placed struct {
		in *shelf
		*item
	}
	var all []placed
	for _, s := range level {
		for _, it := range s.items {
			all = append(all, placed{s, it})
		}
		s.items = nil
	}
	kept := 0
	for some := range slices.Chunk(all, 2*maxListed) {
		if kept > maxListed {
			l.more = true
			break
		}
		paths := make([]string, len(some))
		for i, p := range some {
			rel := path.Join(p.in.at.Rel, p.entry.Name())
			if l.top.Rel != "." {
				rel = strings.TrimPrefix(rel, l.top.Rel+"/")
			}
			paths[i] = rel
		}
		ignored, err := l.rules(paths)
		if err != nil {
			return err
		}
		for i, p := range some {
			if ignored[paths[i]] {
				l.ignored++
				continue
			}
			kept++
			p.in.items = append(p.in.items, p.item)
		}
	}
	return nil
}

// rules asks which paths are ignored. Only the context's end is an error: a
// listing without rules is better than none, if it says so.
func (l *listing) rules(paths []string) (map[string]bool, error) {
	if l.b.ignored == nil {
		return nil, nil
	}
	ignored, err := l.b.ignored(l.ctx, l.top.Abs, paths)
	if l.ctx.Err() != nil {
		return nil, tools.Errorf(tools.Cancelled, "", "Stopped: %v.", context.Cause(l.ctx))
	}
	if err != nil {
		note := fmt.Sprintf("[the ignore rules were not applied: %v]", err)
		if !slices.Contains(l.notes, note) {
			l.notes = append(l.notes, note)
		}
		return nil, nil
	}
	return ignored, nil
}

// next makes the shelves of the folders that are not read yet and may be shown;
// room is how many entries still may.
func (l *listing) next(s *shelf, room *int) []*shelf {
	var out []*shelf
	for _, it := range s.items {
		if *room == 0 {
			break
		}
		*room--
		switch name := it.entry.Name(); {
		case it.below != nil:
			out = append(out, l.next(it.below, room)...)
		case it.entry.IsDir():
			it.below = &shelf{at: workspace.Path{Abs: path.Join(s.at.Abs, name), Rel: path.Join(s.at.Rel, name)}}
			out = append(out, it.below)
		}
	}
	return out
}

// write shows a folder and what is below. It stops where the listing is full.
func (l *listing) write(s *shelf, indent string) {
	for _, it := range s.items {
		if l.shown == maxListed {
			l.more = true
			return
		}
		l.shown++
		l.out.WriteString(indent + l.line(s.at, it.entry) + "\n")
		switch {
		case it.below == nil:
		case it.below.err != nil:
			l.out.WriteString(indent + "  [cannot be listed: " + it.below.err.Error() + "]\n")
		default:
			l.write(it.below, indent+"  ")
		}
	}
	l.buffers(s, indent)
}

func (l *listing) line(p workspace.Path, e fs.DirEntry) string {
	name := visible(e.Name())
	switch {
	case e.IsDir():
		return name + "/"
	case e.Type()&fs.ModeSymlink != 0:
		to, err := l.b.w.Readlink(p, e.Name())
		if err != nil {
			return name + " (link)"
		}
		return name + " -> " + visible(to)
	case !e.Type().IsRegular():
		return name + " (not a regular file)"
	}
	info, err := e.Info()
	if err != nil {
		return name
	}
	return fmt.Sprintf("%s  %d", name, info.Size())
}

// buffers adds the files of a folder that exist only in the editor.
func (l *listing) buffers(s *shelf, indent string) {
	for _, name := range l.unsaid[s.at.Rel] {
		if s.names == nil || s.names[name] { // not read, or on the disk
			continue
		}
		l.shown++
		l.out.WriteString(indent + visible(name) + "  (only in the editor, not saved)\n")
	}
}

// visible keeps a name with control characters from looking like several.
func visible(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7F || r == 0xFFFD }) {
		return fmt.Sprintf("%q", name)
	}
	return name
}
