package files

import (
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

const (
	maxDiff  = 200 // lines of a diff that are shown
	maxHunks = 300 // edits that are rendered: the rendering is quadratic in them
)

// compare returns the number of lines added and removed, and a unified diff
// without file names of at most most lines.
func compare(before, after string, most int) (added, removed int, diff string) {
	edits := udiff.Lines(before, after)
	for _, e := range edits {
		added += lines(e.New)
		removed += lines(before[e.Start:e.End])
	}
	few := edits[:min(len(edits), maxHunks)]
	all, err := udiff.ToUnified("", "", before, few, udiff.DefaultContextLines)
	if err != nil {
		return added, removed, fmt.Sprintf("[no diff: %v]", err)
	}
	var out []string
	shown := strings.Split(strings.TrimSuffix(all, "\n"), "\n")
	for _, l := range shown[min(2, len(shown)):] { // without the two lines of names
		if len(out) == most {
			return added, removed, strings.Join(out, "\n") + fmt.Sprintf("\n[diff cut after %d lines]", most)
		}
		out = append(out, short(strings.TrimSuffix(l, "\r")))
	}
	if len(few) < len(edits) {
		out = append(out, fmt.Sprintf("[diff cut after %d of %d places]", len(few), len(edits)))
	}
	return added, removed, strings.Join(out, "\n")
}

// maxShort bounds a line of a diff or an example, in bytes.
const maxShort = 400

func short(s string) string {
	if len(s) <= maxShort {
		return s
	}
	return fmt.Sprintf("%s [line cut: %d bytes]", strings.ToValidUTF8(s[:maxShort], ""), len(s))
}
