package files

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/lakecode/lakecode/tools"
	"github.com/lakecode/lakecode/tools/workspace"
)

// A file up to maxWhole bytes is read into memory; a larger one, up to
// maxStream, is gone through for the lines that were asked for.
const (
	maxWhole  = workspace.MaxWritable
	maxStream = 512 << 20
)

var readSpec = tools.Spec{
	Name: "read_file", Aliases: []string{"read"}, Tier: tools.Read,
	Description: `Read a text file as numbered lines ("41<tab>text"; the number and tab are not part of the file). Shows the editor's unsaved text where there is some, and says so.
At most 2000 lines, 50 KiB and 2000 characters a line; when cut, the result names the next call. Read several files in one answer. To find text use search_text; for a folder list_directory.`,
}

type readIn struct {
	Path   string `json:"path" jsonschema:"relative to the workspace root"`
	Offset int    `json:"offset,omitempty" jsonschema:"first line, from 1"`
	Limit  int    `json:"limit,omitempty" jsonschema:"number of lines, at most 2000"`
}

func (b *box) read(ctx context.Context, in readIn, _ *tools.IO) (tools.Output, error) {
	if in.Offset < 0 || in.Limit < 0 {
		return tools.Output{}, tools.Errorf(tools.BadArguments, "Lines count from 1.", "offset and limit cannot be negative.")
	}
	in.Offset = max(1, in.Offset)
	if in.Limit == 0 || in.Limit > maxLines {
		in.Limit = maxLines
	}
	p, err := b.w.Resolve(in.Path)
	if err != nil {
		return tools.Output{}, err
	}
	f, err := b.w.Read(ctx, p, maxWhole)
	switch {
	case is(err, tools.TooLarge):
		return b.stream(ctx, p, in)
	case is(err, tools.NotFound):
		return tools.Output{}, b.missing(ctx, p)
	case err != nil:
		return tools.Output{}, err
	}
	t, ok := decode(f.Data)
	if !ok {
		return tools.Output{}, notText(p, int64(len(f.Data)), f.Data)
	}
	pg, err := number(ctx, bufio.NewReader(strings.NewReader(t.s)), in.Offset, in.Limit)
	if err != nil {
		return tools.Output{}, tools.Errorf(tools.Cancelled, "", "Stopped: %v.", err)
	}
	b.w.MarkRead(p, f.Data)
	notes := origin(f)
	if len(f.Data) == 0 {
		return tools.Output{Text: join(p.Rel+" is empty (0 bytes)", notes) + "."}, nil
	}
	if t.encoding != "" {
		notes = append(notes, t.encoding+", cannot be edited")
	} else if t.bom {
		notes = append(notes, "UTF-8 with byte order mark")
	}
	if e := ends(t.s); e != "" {
		notes = append(notes, e)
	}
	return show(p, pg, in, notes)
}

// origin says where the text is from when that is not simply the disk.
func origin(f workspace.File) []string {
	switch {
	case f.FromBuffer && !f.OnDisk:
		return []string{fmt.Sprintf("unsaved editor text, version %d, no file on the disk yet", f.Version)}
	case f.FromBuffer:
		return []string{fmt.Sprintf("unsaved editor text, version %d", f.Version)}
	case f.OutOfStep:
		return []string{"as saved on the disk: what the editor shows is not known"}
	}
	return nil
}

// stream shows lines of a file that is too large to be read whole.
func (b *box) stream(ctx context.Context, p workspace.Path, in readIn) (tools.Output, error) {
	f, err := b.w.OpenDisk(p)
	if err != nil {
		return tools.Output{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return tools.Output{}, err
	}
	if info.Size() > maxStream {
		return tools.Output{}, tools.Errorf(tools.TooLarge, "Use search_text to find what you need in it.",
			"%s has %d bytes; files over %d are not read.", p.Rel, info.Size(), maxStream)
	}
	r := bufio.NewReaderSize(f, 64<<10)
	head, _ := r.Peek(sniff) // an error comes again below
	if bytes.IndexByte(head, 0) >= 0 {
		return tools.Output{}, notText(p, info.Size(), head)
	}
	pg, err := number(ctx, r, in.Offset, in.Limit)
	if ctx.Err() != nil {
		return tools.Output{}, tools.Errorf(tools.Cancelled, "", "Stopped: %v.", context.Cause(ctx))
	}
	if err != nil {
		return tools.Output{}, tools.Errorf(tools.Other, "", "Could not read %s to its end.", p.Rel)
	}
	return show(p, pg, in, []string{fmt.Sprintf("%d bytes, as saved on the disk, too large to be edited", info.Size())})
}

func notText(p workspace.Path, size int64, head []byte) *tools.Error {
	return tools.Errorf(tools.Other, "", "%s is binary (%s, %d bytes) and is not shown.", p.Rel, binaryKind(head), size)
}

// show puts header, lines and marks together.
func show(p workspace.Path, pg page, in readIn, notes []string) (tools.Output, error) {
	if pg.last < pg.first && !pg.full {
		return tools.Output{}, tools.Errorf(tools.BadArguments, fmt.Sprintf("Use an offset from 1 to %d.", pg.total),
			"%s has %d lines; line %d is beyond its end.", p.Rel, pg.total, in.Offset)
	}
	out := join(fmt.Sprintf("%s lines %d-%d of %d", p.Rel, pg.first, pg.last, pg.total), notes) + "\n" + pg.text
	if pg.last < pg.total {
		why := fmt.Sprintf("%d lines", in.Limit)
		if pg.full {
			why = "50 KiB"
		}
		next, err := json.Marshal(readIn{Path: p.Rel, Offset: pg.last + 1})
		if err != nil {
			return tools.Output{}, err
		}
		out += fmt.Sprintf("[cut after %s: lines %d-%d of %d shown; next: read_file %s]", why, pg.first, pg.last, pg.total, next)
	}
	return tools.Output{Text: strings.TrimSuffix(out, "\n")}, nil
}

func join(head string, notes []string) string {
	return strings.Join(append([]string{head}, notes...), ", ")
}
