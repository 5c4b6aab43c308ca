package files

import (
	"context"
	"fmt"
	"strings"

	"github.com/lakecode/lakecode/tools"
	"github.com/lakecode/lakecode/tools/workspace"
)

// maxEdits bounds the edits of one call.
const maxEdits = 100

var editSpec = tools.Spec{
	Name: "edit_file", Aliases: []string{"edit"}, Tier: tools.Write,
	Description: `Replace exact text in one file. Each edit's old must occur exactly once (or set replace_all): copy it from read_file without line numbers, with enough lines around it to be unique. Edits apply in order, all or none.
Line ends are matched and kept by themselves. Only space at line ends is forgiven, when the match is unique. For a new file use write_file.`,
}

type editIn struct {
	Path  string    `json:"path" jsonschema:"relative to the workspace root"`
	Edits []oneEdit `json:"edits"`
}

type oneEdit struct {
	Old string `json:"old" jsonschema:"text to replace, exactly as in the file"`
	New string `json:"new" jsonschema:"text in its place; empty deletes"`
	All bool   `json:"replace_all,omitempty" jsonschema:"replace every occurrence"`
}

func (b *box) edit(ctx context.Context, in editIn, io *tools.IO) (tools.Output, error) {
	if len(in.Edits) == 0 || len(in.Edits) > maxEdits {
		return tools.Output{}, tools.Errorf(tools.BadArguments, "", "Give 1 to %d edits, not %d. Nothing was written.", maxEdits, len(in.Edits))
	}
	p, err := b.w.Resolve(in.Path)
	if err != nil {
		return tools.Output{}, err
	}
	f, err := b.w.Read(ctx, p, workspace.MaxWritable)
	switch {
	case is(err, tools.NotFound):
		return tools.Output{}, nothing(b.missing(ctx, p))
	case err != nil:
		return tools.Output{}, nothing(err)
	}
	if err := settled(p, f); err != nil {
		return tools.Output{}, err
	}
	t, err := editable(p, f)
	if err != nil {
		return tools.Output{}, err
	}
	seen, was := b.w.WasRead(p)
	moved := was && !seen.Is(f.Data)
	after, notes, bad := apply(p, t.s, in.Edits, moved)
	if bad != nil {
		return tools.Output{}, explain(bad, p, f, seen, was, moved)
	}
	if t.bom {
		after = bom + after
	}
	if moved {
		notes = append(notes, "The file had changed since you read it; the edit still applied uniquely.")
	}
	return b.replace(ctx, f, after, "Edited", notes, "edit "+p.Rel, io)
}

// explain adds to a failed match what the model should know of the file.
func explain(bad *tools.Error, p workspace.Path, f workspace.File, seen workspace.Seen, was, moved bool) error {
	switch {
	case bad.Code == tools.BadArguments:
	case moved:
		return tools.Errorf(tools.Stale, "Read it again, then edit what is there now.",
			"%s has changed since you read it. %s%s", p.Rel, bad.Text, since(seen, f))
	case !was:
		return tools.Errorf(bad.Code, "Read the file first. "+bad.Next, "%s", bad.Text)
	}
	return bad
}

// apply makes the edits in their order, each on the result of the one before.
func apply(p workspace.Path, s string, edits []oneEdit, moved bool) (after string, notes []string, bad *tools.Error) {
	after = s
	for i, e := range edits {
		name := "The edit"
		if len(edits) > 1 {
			name = fmt.Sprintf("Edit %d of %d", i+1, len(edits))
		}
		next, note, bad := applyOne(name, after, e, moved)
		if bad != nil {
			bad.Text += " Nothing was written."
			if i > 0 && bad.Code != tools.BadArguments {
				bad.Text += " (Line numbers are those after the edits before it.)"
			}
			return s, nil, bad
		}
		after = next
		if note != "" {
			notes = append(notes, note)
		}
	}
	switch {
	case after == s:
		return s, nil, tools.Errorf(tools.BadArguments, "", "The edits together change nothing in %s. Nothing was written.", p.Rel)
	case strings.TrimSpace(after) == "" && strings.TrimSpace(s) != "":
		return s, nil, tools.Errorf(tools.BadArguments, "Use write_file if it really is to be empty.", "The edits would leave %s empty. Nothing was written.", p.Rel)
	}
	return after, notes, nil
}

func applyOne(name, s string, e oneEdit, moved bool) (after, note string, bad *tools.Error) {
	switch e.Old = strings.TrimPrefix(e.Old, bom); {
	case e.Old == "":
		return "", "", tools.Errorf(tools.BadArguments, "Give text of the file as old; for a new file or a whole one use write_file.", "%s has an empty old.", name)
	case e.Old == e.New:
		return "", "", tools.Errorf(tools.BadArguments, "", "%s has the same text as old and new.", name)
	case strings.ContainsRune(e.New, 0):
		return "", "", tools.Errorf(tools.BadArguments, "", "%s would write a NUL character.", name)
	}
	at, ambiguous := exact(s, e.Old)
	if len(at) == 0 {
		return applyForgiving(name, s, e)
	}
	if ambiguous && (!e.All || moved) {
		why := "Add lines around it to old until it is unique, or set replace_all."
		if e.All {
			why = "Read the file again before replacing all of them."
		}
		return "", "", tools.Errorf(tools.Other, why, "%s is ambiguous: old occurs %s.", name, places(s, at))
	}
	if len(at) > 1 {
		note = fmt.Sprintf("%d occurrences were replaced.", len(at))
	}
	return splice(s, at, e.Old, e.New), note, nil
}

func applyForgiving(name, s string, e oneEdit) (after, note string, bad *tools.Error) {
	at, ambiguous, short := forgiving(s, e.Old)
	switch {
	case len(at) == 0:
		return "", "", tools.Errorf(tools.NotFound, "Copy old from the file as it is now, without line numbers.", "%s does not match: old is not in the file.%s", name, candidates(s, e.Old))
	case ambiguous:
		return "", "", tools.Errorf(tools.Other, "Copy old exactly, with enough lines around it to be unique.",
			"%s does not match exactly, and is ambiguous when space at line ends is ignored: %s.", name, places(s, at))
	}
	if short {
		e.Old, e.New = strings.TrimSuffix(e.Old, "\n"), strings.TrimSuffix(e.New, "\n")
	}
	return splice(s, at, e.Old, e.New), fmt.Sprintf("%s matched except for space at line ends (line %d).", name, lineOf(s, at[0].from)), nil
}

// places says how often and at which lines.
func places(s string, at []span) string {
	const most = 20
	if len(at) == 1 { // overlaps itself
		return fmt.Sprintf("more than once, overlapping, from line %d on", lineOf(s, at[0].from))
	}
	var nums []string
	line, from := 1, 0
	for _, sp := range at[:min(most, len(at))] {
		line += strings.Count(s[from:sp.from], "\n")
		from = sp.from
		nums = append(nums, fmt.Sprint(line))
	}
	more := ""
	if len(at) > most {
		more = " and more"
	}
	return fmt.Sprintf("%d times, at lines %s%s", len(at), strings.Join(nums, ", "), more)
}

func lineOf(s string, at int) int { return 1 + strings.Count(s[:at], "\n") }
