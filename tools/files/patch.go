package files

import (
	"context"
	"fmt"
	"strings"

	"github.com/lakecode/lakecode/tools"
	"github.com/lakecode/lakecode/tools/workspace"
)

var patchSpec = tools.Spec{
	Name: "apply_patch", Tier: tools.Write,
	Description: `Change several files at once, all or nothing. The patch:
*** Begin Patch
*** Update File: a.go
*** Move to: b.go
@@ func main() {
 line that stays
-old line
+new line
*** Add File: c.go
+each line
*** Delete File: d.go
*** End Patch
"*** Move to" is optional. The lines of a hunk that begin with space or - must be in the file exactly, at one place below the hunk before. An @@ line may name a line above the place to tell it from others; line numbers are not used. "*** End of File" ends a hunk at the end of the file. Files are taken in order. Read a file before you delete it.`,
}

type patchIn struct {
	Patch string `json:"patch"`
}

func (b *box) patch(ctx context.Context, in patchIn, io *tools.IO) (tools.Output, error) {
	sections, notes, bad := parse(in.Patch)
	if bad != nil {
		return tools.Output{}, bad
	}
	ds := drafts{box: b}
	for _, s := range sections {
		if err := ds.section(ctx, s); err != nil {
			return tools.Output{}, err
		}
	}
	set := workspace.ChangeSet{Call: io.Call.ID, Files: ds.changes()}
	switch n := len(set.Files); n {
	case 0:
		return tools.Output{}, tools.Errorf(tools.BadArguments, "", "The patch changes nothing. Nothing was written.")
	case 1:
		set.Title = "patch " + set.Files[0].Path.Rel
	default:
		set.Title = fmt.Sprintf("patch %s and %d more", set.Files[0].Path.Rel, n-1)
	}
	changed, err := b.w.Commit(ctx, set)
	if err != nil {
		return tools.Output{}, err
	}
	return tools.Output{Text: ds.report(notes), Changed: changed}, nil
}

// section makes the change of one section in the drafts.
func (ds *drafts) section(ctx context.Context, s section) error {
	d, err := ds.open(ctx, s.path)
	if err != nil {
		return ds.at(s, err)
	}
	switch s.verb {
	case addFile:
		err = d.add(s.text)
	case deleteFile:
		err = ds.remove(ctx, d, s.path)
	default:
		err = ds.update(ctx, d, s)
	}
	return ds.at(s, err)
}

func (d *draft) add(text string) error {
	switch {
	case d.data != nil:
		return tools.Errorf(tools.Stale, "Use "+updateFile+" for a part of it, or write_file for the whole.", "%s exists already. Nothing was written.", d.path.Rel)
	case len(text) > maxWrite:
		return tools.Errorf(tools.TooLarge, "", "%s would have %d bytes; the limit is %d. Nothing was written.", d.path.Rel, len(text), maxWrite)
	}
	if d.disk.OnDisk { // it was deleted or moved above, and is written anew
		if old, ok := decode(d.disk.Data); ok && old.encoding == "" {
			var kept []string
			text, kept = keepForm(text, old, string(d.disk.Data))
			d.notes = append(d.notes, kept...)
		}
	}
	d.data, d.origin, d.once = []byte(text), nil, true
	d.added += lines(text)
	return nil
}

// remove deletes a file whose content the conversation has seen, or has written
// in this very patch.
func (ds *drafts) remove(ctx context.Context, d *draft, name string) error {
	if d.data == nil {
		return ds.gone(ctx, d)
	}
	if err := ds.itself(d, name, "delete"); err != nil {
		return err
	}
	if d.origin != nil {
		if err := ds.deletable(d.origin); err != nil {
			return err
		}
	}
	d.data, d.origin, d.notes = nil, nil, nil
	d.added, d.removed = 0, lines(string(d.disk.Data))
	return nil
}

// deletable refuses a file that the conversation has not seen as it is
// (decisions, Writing: read before write).
func (ds *drafts) deletable(d *draft) error {
	seen, was := ds.box.w.WasRead(d.path)
	if len(d.disk.Data) == 0 || was && seen.Is(d.disk.Data) {
		return nil
	}
	if _, ok := decode(d.disk.Data); !ok {
		return tools.Errorf(tools.NotAllowed, "Use bash if it has to go.", "%s is binary and cannot be read before it is deleted. Nothing was written.", d.path.Rel)
	}
	const next = "Read it, then decide whether it can be deleted."
	if was {
		return tools.Errorf(tools.Stale, next, "%s has changed since you read it. Nothing was written.%s", d.path.Rel, since(seen, d.disk))
	}
	return tools.Errorf(tools.Stale, next, "You have not read %s. Nothing was written.", d.path.Rel)
}

func (ds *drafts) update(ctx context.Context, d *draft, s section) error {
	if d.data == nil {
		return ds.gone(ctx, d)
	}
	if len(s.hunks) > 0 {
		if err := ds.change(ctx, d, s.hunks); err != nil {
			return err
		}
	}
	if s.to == "" {
		return nil
	}
	if err := ds.itself(d, s.path, "move"); err != nil {
		return err
	}
	to, err := ds.open(ctx, s.to)
	switch {
	case err != nil:
		return err
	case to == d:
		return tools.Errorf(tools.BadArguments, "Leave out \""+moveTo+"\".", "%s would be moved to itself. Nothing was written.", d.path.Rel)
	case to.data != nil:
		return tools.Errorf(tools.Stale, "Choose another name.", "%s cannot be moved to %s, which exists already. Nothing was written.", d.path.Rel, to.path.Rel)
	}
	to.data, to.origin, to.mode, to.once, to.touched = d.data, d.origin, d.mode, true, d.touched
	to.added, to.removed, to.notes = to.added+d.added, to.removed+d.removed, append(to.notes, d.notes...)
	d.data, d.origin, d.added, d.removed, d.notes = nil, nil, 0, 0, nil
	return nil
}

// change applies hunks to the text of a draft. As with edit_file, a unique
// match shows that the text is known; the file need not have been read.
func (ds *drafts) change(ctx context.Context, d *draft, hunks []hunk) error {
	f := workspace.File{Path: d.path, Data: d.data}
	t, err := editable(d.path, f)
	if err != nil {
		return err
	}
	var seen workspace.Seen
	known, moved := true, false // a file that this patch has made is known
	if o := d.origin; o != nil {
		f = o.disk
		seen, known = ds.box.w.WasRead(o.path)
		moved = known && !seen.Is(f.Data)
	}
	sheet := newSheet(t.s)
	if ds.looked += sheet.cost(hunks); ds.looked > maxLooked {
		return tools.Errorf(tools.TooLarge, "Split the patch.", "The patch has too many hunks for files as long as %s, which has %d lines. Nothing was written.", d.path.Rel, len(sheet.lines))
	}
	p, bad := sheet.patch(ctx, hunks)
	if bad == nil && strings.TrimSpace(p.text) == "" && strings.TrimSpace(t.s) != "" {
		bad = tools.Errorf(tools.BadArguments, "Use \""+deleteFile+"\", or write_file if it really is to be empty.", "The hunks would leave it empty. Nothing was written.")
	}
	if bad != nil && bad.Code == tools.Cancelled {
		return bad
	}
	if bad != nil {
		if d.touched && bad.Code != tools.BadArguments {
			bad.Text += " (Line numbers are those after the changes above it in the patch.)"
		}
		return explain(bad, d.path, f, seen, known, moved)
	}
	if t.bom {
		p.text = bom + p.text
	}
	if moved {
		p.notes = append(p.notes, "The file had changed since you read it; the patch still applied uniquely.")
	}
	d.data, d.touched = []byte(p.text), true
	d.added, d.removed, d.notes = d.added+p.added, d.removed+p.removed, append(d.notes, p.notes...)
	return nil
}
