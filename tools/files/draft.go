package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/lakecode/lakecode/tools"
	"github.com/lakecode/lakecode/tools/workspace"
)

// Bounds of the work of one patch.
const (
	maxDrafts = 64 << 20   // bytes of the files that are held in memory
	maxLooked = 20_000_000 // lines that are looked at: those of a file once for each @@ line and hunk
)

// draft is one path on its way through a patch.
type draft struct {
	path workspace.Path
	disk workspace.File // what is there before; OnDisk is false for nothing
	data []byte         // what is there now; nil: nothing
	mode fs.FileMode
	// origin is the draft with whose file on the disk the content began, through
	// moves; nil: the patch made it.
	origin  *draft
	once    bool // something is or was here
	touched bool // by hunks

	added, removed int
	notes          []string
}

// drafts are the paths of a patch, in the order in which it names them. Sections
// apply to what those before them have made, so the same path may come again.
type drafts struct {
	box    *box
	all    []*draft
	size   int // see maxDrafts
	looked int // see maxLooked
}

// open returns the draft of a path. What is on the disk is looked at once.
func (ds *drafts) open(ctx context.Context, name string) (*draft, error) {
	p, err := ds.box.w.Resolve(name)
	if err != nil {
		return nil, nothing(err)
	}
	for _, d := range ds.all {
		if d.path.Abs == p.Abs {
			return d, nil
		}
	}
	d := &draft{path: p}
	d.disk, err = ds.box.w.Read(ctx, p, workspace.MaxWritable)
	switch {
	case is(err, tools.NotFound):
	case err != nil:
		return nil, nothing(err)
	default:
		if err := settled(p, d.disk); err != nil {
			return nil, err
		}
		d.data, d.mode, d.origin, d.once = d.disk.Data, d.disk.Mode.Perm(), d, true
	}
	if ds.size += len(d.data); ds.size > maxDrafts {
		return nil, tools.Errorf(tools.TooLarge, "Split the patch.", "The files of the patch have more than %d bytes together. Nothing was written.", maxDrafts)
	}
	ds.all = append(ds.all, d)
	return d, nil
}

// gone is the error for a path where nothing is.
func (ds *drafts) gone(ctx context.Context, d *draft) error {
	if d.once {
		return tools.Errorf(tools.BadArguments, "", "%s has been deleted or moved away above in the patch. Nothing was written.", d.path.Rel)
	}
	return nothing(ds.box.missing(ctx, d.path))
}

// itself refuses a name that is a link: what it leads to would be taken away
// and the link left. Links of folders on the way do not matter.
func (ds *drafts) itself(d *draft, name, what string) error {
	dir, err := ds.box.w.Resolve(path.Dir(path.Clean(name)))
	if err != nil {
		return nothing(err)
	}
	if path.Join(dir.Abs, path.Base(path.Clean(name))) != d.path.Abs {
		return tools.Errorf(tools.NotAllowed, "Name the file itself.", "%s is a link to %s; this tool does not %s links. Nothing was written.", name, d.path.Rel, what)
	}
	return nil
}

// at names the section where an error came about, and its file.
func (ds *drafts) at(s section, err error) error {
	var te *tools.Error
	if !errors.As(err, &te) || te.Code == tools.Cancelled {
		return err
	}
	e := *te
	e.Text = fmt.Sprintf("%s %s (line %d of the patch): %s", strings.TrimSuffix(strings.TrimPrefix(s.verb, "*** "), ":"), s.path, s.line, te.Text)
	return &e
}

// changes are the paths that are to be different.
func (ds *drafts) changes() []workspace.FileChange {
	var out []workspace.FileChange
	for _, d := range ds.all {
		c := workspace.FileChange{Path: d.path, Data: d.data, Mode: d.mode}
		switch {
		case d.disk.OnDisk:
			if d.data != nil && bytes.Equal(d.data, d.disk.Data) {
				continue
			}
			c.Before = &d.disk.Hash
		case d.data == nil:
			continue
		}
		out = append(out, c)
	}
	return out
}

// report says what has become of each file.
func (ds *drafts) report(notes []string) string {
	gone := map[*draft]bool{} // whose content is elsewhere now
	for _, d := range ds.all {
		if d.origin != nil && d.origin != d {
			gone[d.origin] = true
		}
	}
	var list strings.Builder
	files, added, removed := 0, 0, 0
	for _, d := range ds.all {
		what := "Updated " + d.path.Rel
		switch {
		case d.data == nil && (!d.disk.OnDisk || gone[d]):
			continue // never was, or its new place says it
		case d.data == nil:
			what, d.added, d.removed = "Deleted "+d.path.Rel, 0, lines(string(d.disk.Data))
		case d.origin != nil && d.origin != d:
			what = fmt.Sprintf("Moved %s to %s", d.origin.path.Rel, d.path.Rel)
		case !d.disk.OnDisk:
			what = "Added " + d.path.Rel
		case bytes.Equal(d.data, d.disk.Data):
			what = "Unchanged " + d.path.Rel
		}
		files, added, removed = files+1, added+d.added, removed+d.removed
		fmt.Fprintf(&list, "\n%s: +%d -%d lines.", what, d.added, d.removed)
		for _, n := range d.notes {
			list.WriteString(" " + n)
		}
	}
	noun := "files"
	if files == 1 {
		noun = "file"
	}
	out := fmt.Sprintf("Patched %d %s: +%d -%d lines.", files, noun, added, removed)
	for _, n := range notes {
		out += " " + n
	}
	return out + list.String()
}
