package workspace

import (
	"context"
	"slices"
)

// Dirty lists the open files inside the root whose text in the editor is not
// the one on disk, or not known, relative to the root and sorted: what a
// command does not see. A document without a file counts too.
func (w *Workspace) Dirty(ctx context.Context) []string {
	var out []string
	for _, d := range w.Docs() {
		p, ok := w.Locate(d.Path)
		if !ok {
			continue
		}
		// Carriage returns at most double a text; a longer file differs.
		disk, _, err := w.readDisk(ctx, p, 2*int64(len(d.Text))+int64(len(bom))+2)
		if err != nil || d.Unsure || !clean(d.Text, disk) {
			out = append(out, p.Rel)
		}
	}
	slices.Sort(out)
	return out
}
