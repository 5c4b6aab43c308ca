package workspace

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lakecode/lakecode/lsp/overlay"
)

func TestDirtyNamesWhatACommandDoesNotSee(t *testing.T) {
	root := t.TempDir()
	docs := overlay.NewStore()
	open := func(name, disk, buffer string) {
		path := filepath.Join(root, name)
		if disk != "" {
			if err := os.WriteFile(path, []byte(disk), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		docs.Open(overlay.Doc{URI: "file://" + path, Version: 1, Text: buffer})
	}
	open("same", "a\nb\n", "a\nb\n")
	open("crlf", "\uFEFFa\r\nb\r\n", "a\nb\n")
	open("changed", "a\n", "b\n")
	open("new", "", "not on the disk yet\n")
	open("longer", "a\nand much more than that\n", "a\n")
	docs.Open(overlay.Doc{URI: "untitled:1", Version: 1, Text: "x"})
	docs.Open(overlay.Doc{URI: "file:///somewhere/else", Version: 1, Text: "x"})
	w, err := Open(Config{Root: root, Docs: docs})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	if d := cmp.Diff([]string{"changed", "longer", "new"}, w.Dirty(t.Context())); d != "" {
		t.Errorf("dirty (-want +got):\n%s", d)
	}
}
