package search

import (
	"strings"
	"testing"

	"github.com/lakecode/lakecode/lsp/overlay"
	"github.com/lakecode/lakecode/tools"
)

// covers TOOL-4 partly
func TestUnsavedTextIsSearchedInsteadOfTheDisk(t *testing.T) {
	f := repository(t, map[string]string{
		".gitignore": "*.log\n",
		"a.go":       "old needle\n",
		"clean.go":   "\uFEFFneedle\r\nb\r\n",
		"sub/b.go":   "needle on disk\n",
		"noise.log":  "needle\n",
		"shown.log":  "needle\n",
		"lost.go":    "needle on disk\n",
	})
	f.open("a.go", "first\nnew needle, not saved\n")
	f.open("clean.go", "needle\nb")
	f.open("sub/b.go", "nothing here any more\n")
	f.open("sub/new.go", "needle in a file that is not there yet\n")
	f.open("fresh/new.go", "needle in a folder that is not there yet\n")
	f.open("shown.log", "needle\n")
	f.open("lost.go", "text\n")
	f.docs.Open(overlay.Doc{URI: "file:///elsewhere/x.go", Version: 1, Text: "needle outside"})
	f.docs.Open(overlay.Doc{URI: "untitled:1", Version: 1, Text: "needle nowhere"})
	if err := f.docs.Change(overlay.FileURI(f.path("lost.go")), 1, nil); err == nil {
		t.Fatal("the document is still in step")
	}
	f.check(textArgs{Pattern: "needle"}, `6 matching lines in 6 files (8 files searched)
The editor's text of lost.go is not known at the moment; the file on the disk was searched.

a.go (unsaved editor text)
2:new needle, not saved

clean.go
1:needle

fresh/new.go (unsaved editor text)
1:needle in a folder that is not there yet

lost.go
1:needle on disk

shown.log
1:needle

sub/new.go (unsaved editor text)
1:needle in a file that is not there yet
`)
	f.check(textArgs{Pattern: "needle", Path: "sub"}, "1 matching line in 1 file (2 files searched)\n\nsub/new.go (unsaved editor text)\n1:needle in a file that is not there yet\n")
	f.check(textArgs{Pattern: "needle", Path: "sub/b.go"}, "No match for \"needle\" in 1 file (sub/b.go).\n")
	f.check(textArgs{Pattern: "needle", Path: "fresh/new.go"}, "1 matching line in 1 file (1 file searched)\n\nfresh/new.go (unsaved editor text)\n1:needle in a folder that is not there yet\n")
	f.check(textArgs{Pattern: "needle", Glob: "*.log"}, "1 matching line in 1 file (1 file searched)\n\nshown.log\n1:needle\n")
	f.refused(textArgs{Pattern: "needle", Path: "fresh/other.go"}, tools.NotFound, "does not exist")
}

func TestADocumentReachedByALinkIsSearchedOnce(t *testing.T) {
	f := newFixture(t, map[string]string{"real/a": "old\n"})
	f.link("real", "via")
	f.docs.Open(overlay.Doc{URI: overlay.FileURI(f.path("via/a")), Version: 1, Text: "needle\n"})
	got, _ := f.search(textArgs{Pattern: "needle|old", Regex: true})
	if !strings.HasPrefix(got, "1 matching line in 1 file (1 file searched; skipped: 1 link)\n\nreal/a (unsaved editor text)\n1:needle\n") {
		t.Errorf("got %s", got)
	}
}
