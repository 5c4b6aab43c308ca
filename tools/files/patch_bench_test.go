package files

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/lakecode/lakecode/tools"
	"github.com/lakecode/lakecode/tools/workspace"
)

// Hunks at the end of files of some 1 000 lines, without the commit.
func BenchmarkPatchPlan(b *testing.B) {
	var file strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&file, "\tline %d of a file as they are\n", i)
	}
	patch := beginPatch + "\n" + updateFile + " f\n@@\n \tline 998 of a file as they are\n-\tline 999 of a file as they are\n+x\n" + endPatch
	for b.Loop() {
		sections, _, bad := parse(patch)
		if bad != nil {
			b.Fatal(bad)
		}
		if _, bad := newSheet(file.String()).patch(b.Context(), sections[0].hunks); bad != nil {
			b.Fatal(bad)
		}
	}
}

// The worst that the limits let through: as much as may be in the largest file,
// of the shortest lines, which are all alike.
func BenchmarkPatchWorst(b *testing.B) {
	text := strings.Repeat("a\n", workspace.MaxWritable/2-1) + "b\n"
	for name, body := range map[string]string{
		"absent": "@@ b\n" + strings.Repeat(" a\n", maxPatch/3-20_000) + "-c\n",
		"heads":  strings.Repeat("@@ a\n@@ a\n b\n", maxLooked/workspace.MaxWritable*2/3),
	} {
		b.Run(name, func(b *testing.B) {
			sections, _, bad := parse(beginPatch + "\n" + updateFile + " f\n" + body + endPatch)
			if bad != nil {
				b.Fatal(bad)
			}
			for b.Loop() {
				s := newSheet(text)
				if n := s.cost(sections[0].hunks); n > maxLooked {
					b.Fatal("beyond the limit: ", n)
				}
				if _, bad := s.patch(b.Context(), sections[0].hunks); bad != nil && bad.Code != tools.NotFound {
					b.Fatal(bad)
				}
			}
		})
	}
}

func TestPatchLooksAtABoundedNumberOfLines(t *testing.T) {
	file := strings.Repeat("a\n", 1<<20) + "b\n"
	d := open(t, map[string]string{"long": file})
	body := strings.Repeat("\n@@ a\n b", 9) + "\n@@\n-b\n+c" // 19 times the file: within the limit
	d.bad(tools.TooLarge, "apply_patch", wrap(updateFile+" long\n@@\n-b"+body), "too many hunks for files as long as long, which has 1048577 lines", "Nothing was written.")
	d.check("long", file)
}

func TestPatchStopsBetweenHunks(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(fmt.Errorf("the person stopped it"))
	_, bad := newSheet("a\n").patch(ctx, []hunk{{ops: []op{{'-', "a"}}}})
	if bad == nil || bad.Code != tools.Cancelled || bad.Text != "Stopped: the person stopped it. Nothing was written." {
		t.Errorf("got %+v", bad)
	}
}
