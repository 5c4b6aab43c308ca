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

var listSpec = tools.Spec{
	Name: "list_directory", Tier: tools.Read,
	Description: `List a folder: folders first, then files with sizes in bytes; links are shown with their targets and not followed.
At most 500 entries. .git, bin, obj and node_modules are left out inside of what is listed, and named; give their path to list them. To find files by content use search_text.`,
}

type listIn struct {
	Path  string `json:"path,omitempty" jsonschema:"relative to the workspace root; default the root"`
	Depth int    `json:"depth,omitempty" jsonschema:"levels, 1 to 5; default 1"`
}

// listing is one call of list_directory.
type listing struct {
	b      *box
	ctx    context.Context
	unsaid map[string][]string // folder to names that are open in the editor and not on the disk
	out    strings.Builder
	shown  int
	more   bool
	hidden []string
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
	l := &listing{b: b, ctx: ctx, unsaid: map[string][]string{}}
	for _, d := range b.w.Docs() {
		if q, ok := b.w.Locate(d.Path); ok {
			l.unsaid[path.Dir(q.Rel)] = append(l.unsaid[path.Dir(q.Rel)], path.Base(q.Rel))
		}
	}
	err = l.folder(p, max(1, in.Depth), "")
	switch {
	case is(err, tools.NotFound):
		return tools.Output{}, b.missing(ctx, p)
	case err != nil:
		return tools.Output{}, err
	}
	return tools.Output{Text: l.text(p)}, nil
}

func (l *listing) text(p workspace.Path) string {
	head := fmt.Sprintf("%s: %d entries", p.Rel, l.shown)
	if l.shown == 0 && !l.more {
		head = p.Rel + " is empty"
	}
	if len(l.hidden) > 0 {
		head += fmt.Sprintf(" (not shown: %s)", strings.Join(l.hidden[:min(10, len(l.hidden))], ", "))
		if n := len(l.hidden) - 10; n > 0 {
			head += fmt.Sprintf(" and %d more left out", n)
		}
	}
	out := head + "\n" + l.out.String()
	if l.more {
		out += fmt.Sprintf("[cut after %d entries: list a folder below it, or use search_text]", l.shown)
	}
	return strings.TrimSuffix(out, "\n")
}

// folder lists p and, as far as depth goes, what is below.
func (l *listing) folder(p workspace.Path, depth int, indent string) error {
	entries, more, err := l.b.w.ReadDir(l.ctx, p)
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
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), durable.TempPrefix) {
			continue
		}
		if e.IsDir() && slices.Contains(leftOut, e.Name()) {
			l.hidden = append(l.hidden, path.Join(p.Rel, e.Name()))
			continue
		}
		if l.shown == maxListed {
			l.more = true
			return nil
		}
		l.shown++
		l.out.WriteString(indent + l.line(p, e) + "\n")
		if e.IsDir() && depth > 1 {
			below := workspace.Path{Abs: path.Join(p.Abs, e.Name()), Rel: path.Join(p.Rel, e.Name())}
			switch err := l.folder(below, depth-1, indent+"  "); {
			case l.ctx.Err() != nil:
				return err
			case err != nil:
				l.out.WriteString(indent + "  [cannot be listed: " + err.Error() + "]\n")
			}
		}
	}
	l.buffers(p, entries, indent)
	return nil
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

// buffers adds the files of p that exist only in the editor.
func (l *listing) buffers(p workspace.Path, entries []fs.DirEntry, indent string) {
	for _, name := range l.unsaid[p.Rel] {
		if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == name }) {
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
