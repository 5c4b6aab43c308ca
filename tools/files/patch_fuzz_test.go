package files

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// writePatch renders sections as the patch that they came from.
func writePatch(sections []section) string {
	var b strings.Builder
	b.WriteString(beginPatch + "\n")
	for _, s := range sections {
		fmt.Fprintf(&b, "%s %s\n", s.verb, s.path)
		if s.to != "" {
			fmt.Fprintf(&b, "%s %s\n", moveTo, s.to)
		}
		for l := range strings.Lines(s.text) {
			b.WriteString("+" + l)
		}
		writeHunks(&b, s.hunks)
	}
	b.WriteString(endPatch)
	return b.String()
}

func writeHunks(b *strings.Builder, hunks []hunk) {
	for _, h := range hunks {
		if len(h.heads) == 0 {
			b.WriteString("@@\n")
		}
		for _, head := range h.heads {
			b.WriteString("@@ " + head + "\n")
		}
		for _, o := range h.ops {
			b.WriteString(string(o.kind) + o.text + "\n")
		}
		if h.end {
			b.WriteString(endOfFile + "\n")
		}
	}
}

// FuzzPatchParse: whatever the text is, what is read from it is whole and
// bounded, names its lines, and reads the same when it is written again.
func FuzzPatchParse(f *testing.F) {
	f.Add("*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@ x\n@@ y\n a\n-b\n+c\n*** End of File\n*** Add File: c\n+x\n+\n*** Delete File: d\n*** End Patch")
	f.Add("```diff\n*** Begin Patch\n*** Update File: a\n-x\n\n@@ -1,2 +1 @@ f\n+y\n\n*** End Patch\n```\n")
	f.Add("apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: a\n\n*** End Patch\nEOF")
	f.Add("*** Begin Patch\r\n*** Delete File: a\r\n*** End Patch")
	f.Fuzz(func(t *testing.T, text string) {
		sections, _, bad := parse(text)
		if bad != nil {
			if !strings.HasSuffix(bad.Text, "Nothing was written.") || len(bad.Text) > 2000 {
				t.Fatalf("error %q", bad.Text)
			}
			return
		}
		all := strings.Split(text, "\n")
		for _, s := range sections {
			if s.path == "" || s.line < 1 || s.line > len(all) || !strings.HasPrefix(all[s.line-1], s.verb) {
				t.Fatalf("section %+v", s)
			}
			for _, h := range s.hunks {
				if len(h.ops) == 0 || h.line <= s.line || h.line > len(all) {
					t.Fatalf("hunk %+v", h)
				}
			}
		}
		again, _, bad := parse(writePatch(sections))
		if bad != nil {
			t.Fatalf("%q is written as %q: %s", text, writePatch(sections), bad.Text)
		}
		for _, list := range [][]section{sections, again} {
			for i := range list {
				list[i].line = 0
				for j := range list[i].hunks {
					list[i].hunks[j].line = 0
				}
			}
		}
		if d := cmp.Diff(sections, again, cmp.AllowUnexported(section{}, hunk{}, op{})); d != "" {
			t.Fatalf("%q reads differently when written again (-first +again):\n%s", text, d)
		}
	})
}

// plan makes hunks that turn before into what they return, as script says: each
// byte is what happens to a line, and how many lines of context are kept.
func plan(before []string, script []byte) (after []string, hunks []hunk) {
	var ops []op
	for i, l := range before {
		c := byte(0)
		if i < len(script) {
			c = script[i]
		}
		if c&3 == 1 || c&3 == 2 {
			ops = append(ops, op{'-', l})
		}
		if c&3 >= 2 {
			text := fmt.Sprintf("new %d", c>>2&7)
			ops = append(ops, op{'+', text})
			after = append(after, text)
		}
		if c&3 == 0 || c&3 == 3 {
			ops = append(ops, op{' ', l})
			after = append(after, l)
		}
	}
	context := 2
	if len(script) > 0 {
		context = int(script[len(script)-1] & 3)
	}
	keep := make([]bool, len(ops))
	for i, o := range ops {
		if o.kind != ' ' {
			for j := max(0, i-context); j <= min(len(ops)-1, i+context); j++ {
				keep[j] = true
			}
		}
	}
	var h hunk
	for i, o := range ops {
		if keep[i] {
			h.ops = append(h.ops, o)
		}
		if len(h.ops) > 0 && (!keep[i] || i == len(ops)-1) {
			hunks, h = append(hunks, h), hunk{}
		}
	}
	return after, hunks
}

// FuzzPatchMakesWhatWasMeant: hunks that were made from two texts turn the one
// into the other, or are refused because they could be meant otherwise.
func FuzzPatchMakesWhatWasMeant(f *testing.F) {
	f.Add("a\nb\nc\nd\ne\n", []byte{0, 2, 0, 0, 3, 2}, uint8(0))
	f.Add("a\r\nb\r\na\r\nb", []byte{0, 0, 1, 6, 3, 1}, uint8(1))
	f.Add("x\n\nx\n\n\n", []byte{3, 1}, uint8(0))
	f.Add("a \n\ta\nb", []byte{1, 1, 2}, uint8(3))
	f.Fuzz(func(t *testing.T, text string, script []byte, crlf uint8) {
		text = strings.NewReplacer("\r", "", "\x00", "").Replace(text)
		before := newSheet(text).exact
		after, hunks := plan(before, script)
		if len(hunks) == 0 {
			return
		}
		end := "\n"
		if crlf&1 == 1 && strings.Contains(text, "\n") { // else nothing shows which line ends it has
			end, text = "\r\n", strings.ReplaceAll(text, "\n", "\r\n")
		}
		want := strings.Join(after, end)
		if len(after) > 0 && (strings.HasSuffix(text, "\n") || text == "") {
			want += end
		}
		var b strings.Builder
		b.WriteString(beginPatch + "\n" + updateFile + " f\n")
		writeHunks(&b, hunks)
		b.WriteString(endPatch)
		sections, _, bad := parse(b.String())
		if bad != nil {
			t.Fatalf("%q: %s", b.String(), bad.Text)
		}
		got, bad := newSheet(text).patch(t.Context(), sections[0].hunks)
		switch {
		case bad != nil && (strings.Contains(bad.Text, "is ambiguous") || strings.Contains(bad.Text, "has only + lines")):
		case bad != nil:
			t.Fatalf("%q with %s: %s", text, b.String(), bad.Text)
		case got.text != want:
			t.Fatalf("%q with %s\nbecame %q,\nwant   %q", text, b.String(), got.text, want)
		case len(got.notes) > 0:
			t.Fatalf("an exact match has notes: %q", got.notes)
		}
	})
}

// FuzzPatchHunks: hunks that were made for nothing either fail or keep to their
// account: every line of the text is kept, or is one that they take away.
func FuzzPatchHunks(f *testing.F) {
	f.Add("a\nb\nc\n", "@@ a\n b\n-c\n+d\n*** End of File")
	f.Add("f {\n\ta\n}\ng {\n\ta\n}", "@@ f {\n-\ta\n+\tb\n@@ g {\n \ta\n+x")
	f.Add("a \r\nb\r\n", " a\n+x\n@@\n-b")
	f.Fuzz(func(t *testing.T, text, body string) {
		sections, _, bad := parse(beginPatch + "\n" + updateFile + " f\n" + body + "\n" + endPatch)
		if bad != nil || len(sections) != 1 {
			return
		}
		hunks := sections[0].hunks
		got, bad := newSheet(text).patch(t.Context(), hunks)
		if bad != nil {
			if len(bad.Text) > 16<<10 {
				t.Fatalf("an error of %d bytes", len(bad.Text))
			}
			return
		}
		if got.text == "" {
			return
		}
		have, now := newSheet(text).exact, newSheet(got.text).exact
		if text != "" && !strings.HasSuffix(text, "\n") { // an empty last line has no end either
			now = newSheet(got.text + "\n").exact
		}
		if len(now) != len(have)+got.added-got.removed {
			t.Fatalf("%q with %q became %q: %d lines, +%d -%d", text, body, got.text, len(now), got.added, got.removed)
		}
		count := map[string]int{}
		for _, l := range now {
			count[strings.TrimRight(l, " \t\r")]++
		}
		for _, l := range have {
			count[strings.TrimRight(l, " \t\r")]--
		}
		for _, h := range hunks {
			for _, o := range h.ops {
				switch l := strings.TrimRight(o.text, " \t\r"); o.kind {
				case '+':
					count[l]--
				case '-':
					count[l]++
				}
			}
			if made := fresh(h); len(made) > 0 && len(hunks) == 1 && len(find(trimmed(now), trimmed(made))) == 0 {
				t.Fatalf("%q with %q became %q, without the new lines", text, body, got.text)
			}
		}
		for l, n := range count {
			if n != 0 {
				t.Fatalf("%q with %q became %q: %q is there %d times too often", text, body, got.text, l, n)
			}
		}
		if strings.Count(got.text, "\r\r\n") > strings.Count(text, "\r\r\n") {
			t.Fatalf("%q with %q became %q: a CR too many", text, body, got.text)
		}
		if strings.HasSuffix(text, "\n") && !strings.HasSuffix(got.text, "\n") {
			t.Fatalf("%q with %q became %q: the final line end is gone", text, body, got.text)
		}
	})
}

// fresh returns the lines of the text that a hunk makes.
func fresh(h hunk) []string {
	var out []string
	for _, o := range h.ops {
		if o.kind != '-' {
			out = append(out, o.text)
		}
	}
	return out
}

// FuzzFind: the places are those that comparing everywhere finds.
func FuzzFind(f *testing.F) {
	f.Add("aabaabaaab", "aab")
	f.Add("aaaa", "aa")
	f.Fuzz(func(t *testing.T, text, old string) {
		have, want := strings.Split(text, ""), strings.Split(old, "")
		if len(want) == 0 {
			return
		}
		var places []int
		for i := 0; i+len(want) <= len(have); i++ {
			if slices.Equal(have[i:i+len(want)], want) {
				places = append(places, i)
			}
		}
		if d := cmp.Diff(places, find(have, want)); d != "" {
			t.Fatalf("%q in %q (-want +got):\n%s", old, text, d)
		}
	})
}
