package files

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lakecode/lakecode/tools"
	"github.com/lakecode/lakecode/tools/workspace"
)

// maxWrite bounds what write_file takes, in bytes.
const maxWrite = 1 << 20

// maxMoved bounds the lines that show how a file has changed since it was read.
const maxMoved = 60

var writeSpec = tools.Spec{
	Name: "write_file", Aliases: []string{"write"}, Tier: tools.Write,
	Description: `Create a text file, or replace the whole content of one that you have read. Missing folders are made. At most 1 MiB.
To change a part of a file use edit_file. An existing file keeps its mode, byte order mark and CRLF line ends.`,
}

type writeIn struct {
	Path    string `json:"path" jsonschema:"relative to the workspace root"`
	Content string `json:"content" jsonschema:"the whole new content"`
}

func (b *box) write(ctx context.Context, in writeIn, io *tools.IO) (tools.Output, error) {
	if len(in.Content) > maxWrite {
		return tools.Output{}, tools.Errorf(tools.TooLarge, "Write a smaller file, or create it in parts with edit_file.",
			"The content has %d bytes; the limit is %d. Nothing was written.", len(in.Content), maxWrite)
	}
	if strings.ContainsRune(in.Content, 0) {
		return tools.Output{}, tools.Errorf(tools.BadArguments, "", "The content holds a NUL character and is not text. Nothing was written.")
	}
	p, err := b.w.Resolve(in.Path)
	if err != nil {
		return tools.Output{}, err
	}
	f, err := b.w.Read(ctx, p, workspace.MaxWritable)
	if is(err, tools.NotFound) {
		return b.create(ctx, p, in.Content, io)
	}
	if err != nil {
		return tools.Output{}, nothing(err)
	}
	if err := b.replaceable(p, f); err != nil {
		return tools.Output{}, err
	}
	old, err := editable(p, f)
	if err != nil {
		return tools.Output{}, err
	}
	text, kept := keepForm(in.Content, old, string(f.Data))
	if text == string(f.Data) {
		b.w.MarkRead(p, f.Data)
		return tools.Output{Text: p.Rel + " has this content already; nothing was written."}, nil
	}
	return b.replace(ctx, f, text, "Wrote", kept, "write "+p.Rel, io)
}

func (b *box) create(ctx context.Context, p workspace.Path, text string, io *tools.IO) (tools.Output, error) {
	changed, err := b.w.Commit(ctx, workspace.ChangeSet{
		Call: io.Call.ID, Title: "create " + p.Rel,
		Files: []workspace.FileChange{{Path: p, Data: []byte(text)}},
	})
	if err != nil {
		return tools.Output{}, err
	}
	return tools.Output{Text: fmt.Sprintf("Wrote %s: new file, %d lines.", p.Rel, lines(text)), Changed: changed}, nil
}

// replace commits the new content of an existing file and describes it.
func (b *box) replace(ctx context.Context, f workspace.File, text, verb string, notes []string, title string, io *tools.IO) (tools.Output, error) {
	changed, err := b.w.Commit(ctx, workspace.ChangeSet{
		Call: io.Call.ID, Title: title,
		Files: []workspace.FileChange{{Path: f.Path, Before: &f.Hash, Data: []byte(text)}},
	})
	if err != nil {
		return tools.Output{}, err
	}
	added, removed, diff := compare(string(f.Data), text, maxDiff)
	out := fmt.Sprintf("%s %s: +%d -%d lines.", verb, f.Path.Rel, added, removed)
	for _, n := range notes {
		out += " " + n
	}
	return tools.Output{Text: out + "\n" + diff, Changed: changed}, nil
}

// replaceable refuses to write over what the conversation has not seen
// (decisions, Writing: read before write). An empty file has nothing to lose.
func (b *box) replaceable(p workspace.Path, f workspace.File) error {
	if err := settled(p, f); err != nil {
		return err
	}
	seen, was := b.w.WasRead(p)
	switch {
	case len(f.Data) == 0 || was && seen.Is(f.Data):
		return nil
	case was:
		return tools.Errorf(tools.Stale, "Read it again, then decide.",
			"%s has changed since you read it. Nothing was written.%s", p.Rel, since(seen, f))
	}
	return tools.Errorf(tools.Stale, "Read it first, or use edit_file to change a part of it.",
		"%s exists and you have not read it. Nothing was written.", p.Rel)
}

// settled refuses a file whose text in the editor differs from the disk.
func settled(p workspace.Path, f workspace.File) error {
	switch {
	case f.FromBuffer:
		return workspace.Unsaved(p)
	case f.OutOfStep:
		return tools.Errorf(tools.Stale, "Ask the person to save and reopen it, then read it again.",
			"%s is open in the editor, which shows a text that is not known here. Nothing was written.", p.Rel)
	}
	return nil
}

// since shows what has changed, when the text that was read is still known.
func since(seen workspace.Seen, f workspace.File) string {
	if seen.Text == nil {
		return ""
	}
	added, removed, diff := compare(string(seen.Text), string(f.Data), maxMoved)
	return fmt.Sprintf(" What changed (+%d -%d lines):\n%s", added, removed, diff)
}

// editable refuses what is not UTF-8 text.
func editable(p workspace.Path, f workspace.File) (text, error) {
	t, ok := decode(f.Data)
	switch {
	case !ok:
		return t, tools.Errorf(tools.NotAllowed, "", "%s is binary (%s, %d bytes) and is not changed by this tool. Nothing was written.", p.Rel, binaryKind(f.Data), len(f.Data))
	case t.encoding != "":
		return t, tools.Errorf(tools.NotAllowed, "Tell the person if it has to be converted.",
			"%s is %s; only UTF-8 is edited. Nothing was written.", p.Rel, t.encoding)
	}
	return t, nil
}

// keepForm gives a whole new content the byte order mark and the line ends of
// the old one, and says so.
func keepForm(content string, old text, data string) (string, []string) {
	var notes []string
	if n := strings.Count(data, "\r\n"); n > 0 && n == strings.Count(data, "\n") && !strings.Contains(content, "\r") && strings.Contains(content, "\n") {
		content = strings.ReplaceAll(content, "\n", "\r\n")
		notes = append(notes, "CRLF line ends were kept.")
	}
	if old.bom && !strings.HasPrefix(content, bom) {
		content = bom + content
		notes = append(notes, "The byte order mark was kept.")
	}
	return content, notes
}

// nothing says of an error of a writer's preparation that nothing has changed.
func nothing(err error) error {
	var te *tools.Error
	if errors.As(err, &te) {
		return tools.Errorf(te.Code, te.Next, "%s Nothing was written.", te.Text)
	}
	return err
}
