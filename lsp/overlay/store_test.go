package overlay

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func at(l1, c1, l2, c2 uint32) *Range {
	return &Range{Position{l1, c1}, Position{l2, c2}}
}

func check(t *testing.T, s *Store, uri, want string) {
	t.Helper()
	for _, d := range s.Docs() {
		if d.URI == uri {
			if diff := cmp.Diff(want, d.Text); diff != "" {
				t.Errorf("text of %s (-want +got):\n%s", uri, diff)
			}
			return
		}
	}
	t.Errorf("%s is not open", uri)
}

func TestChangesCountInTheNegotiatedEncoding(t *testing.T) {
	const before = "a😀é漢z\r\nsecond\rthird\n"
	for enc, c := range map[Encoding]uint32{UTF8: 1 + 4 + 2 + 3, UTF16: 1 + 2 + 1 + 1, UTF32: 4} {
		s := NewStore()
		s.SetEncoding(enc)
		s.Open(Doc{URI: "untitled:x", Version: 1, Text: before})
		if err := s.Change("untitled:x", 2, []Change{{at(0, c, 0, c+1), "Z"}, {at(2, 0, 2, 5), "3"}}); err != nil {
			t.Errorf("%s: %v", enc, err)
		}
		check(t, s, "untitled:x", "a😀é漢Z\r\nsecond\r3\n")
	}
}

func TestPositionsOutsideTheTextAreMovedInsideAndReported(t *testing.T) {
	const before = "one\r\n😀\n"
	for _, c := range []struct {
		name string
		r    *Range
		want string
	}{
		{"character beyond the line's end", at(0, 1, 0, 99), "oX\r\n😀\n"},
		{"line beyond the end", at(1, 0, 77, 3), "one\r\nX"},
		{"whole range beyond the end", at(9, 9, 9, 9), "one\r\n😀\nX"},
		{"largest numbers", at(1<<32-1, 1<<32-1, 1<<32-1, 1<<32-1), "one\r\n😀\nX"},
		{"inside a surrogate pair", at(1, 1, 1, 2), "one\r\nX\n"},
		{"end before start", at(0, 2, 0, 1), "oXe\r\n😀\n"},
	} {
		s := NewStore()
		s.Open(Doc{URI: "file:///a", Version: 1, Text: before})
		err := s.Change("file:///a", 2, []Change{{c.r, "X"}})
		var clamped *ClampedError
		if !errors.As(err, &clamped) || len(clamped.Ranges) != 1 || !strings.Contains(err.Error(), "file:///a") {
			t.Errorf("%s: error %v, want a *ClampedError", c.name, err)
		}
		check(t, s, "file:///a", c.want)
		if err := s.Change("file:///a", 3, []Change{{at(0, 0, 0, 0), "+"}}); err != nil {
			t.Errorf("%s: the next change: %v", c.name, err)
		}
	}
	s := NewStore()
	s.Open(Doc{URI: "file:///a", Version: 1, Text: before})
	if err := s.Change("file:///a", 2, []Change{{at(0, 0, 2, 0), "all"}}); err != nil {
		t.Errorf("the line after the last line end is inside the text: %v", err)
	}
}

func TestAnOldVersionMakesTheDocumentUnsureUntilItComesWhole(t *testing.T) {
	s := NewStore()
	s.Open(Doc{URI: "file:///a", Version: 5, Text: "five"})
	unsure := func(want bool) {
		t.Helper()
		if got := s.Docs()[0].Unsure; got != want {
			t.Fatalf("unsure: %v, want %v", got, want)
		}
	}
	var stale *StaleError
	for _, v := range []int32{4, 6, 7} { // once out of step, a new version does not help
		if err := s.Change("file:///a", v, []Change{{at(0, 0, 0, 0), "x"}}); !errors.As(err, &stale) {
			t.Fatalf("version %d: %v, want a *StaleError", v, err)
		}
		unsure(true)
	}
	check(t, s, "file:///a", "five")
	if err := s.Change("file:///a", 3, []Change{{at(0, 0, 9, 0), "lost"}, {Text: "whole"}, {at(0, 0, 0, 0), "the "}}); err != nil {
		t.Fatal(err)
	}
	unsure(false)
	check(t, s, "file:///a", "the whole")

	_ = s.Change("file:///a", 3, nil)
	unsure(true)
	s.Close("file:///a")
	s.Open(Doc{URI: "file:///a", Version: 1, Text: "again"})
	unsure(false)

	_ = s.Change("file:///a", 1, nil)
	unsure(true)
	saved := "saved"
	s.Save("file:///a", &saved)
	unsure(false)
	check(t, s, "file:///a", "saved")
}

func TestADocumentThatIsNotOpenIsAnErrorAndNothingElse(t *testing.T) {
	s := NewStore()
	if err := s.Change("file:///nope", 1, []Change{{Text: "x"}}); !errors.Is(err, ErrNotOpen) {
		t.Errorf("change: %v", err)
	}
	s.Save("file:///nope", nil)
	s.Close("file:///nope")
	if d := s.Docs(); len(d) != 0 {
		t.Errorf("documents: %v", d)
	}
}

func TestLookupFindsOneDocumentByURIAndRealPath(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	real := filepath.Join(dir, "with space", "ünï#c?.go")
	if err := os.MkdirAll(filepath.Dir(real), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(real, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(real), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, uri := range []string{
		FileURI(real),
		"file://localhost" + dir + "/with%20space/ünï%23c%3F.go",
		"FILE://" + dir + "/with space/%C3%BCn%C3%AF#c?.go",
		"file:" + dir + "/link/../link/ünï#c?.go",
	} {
		s := NewStore()
		s.Open(Doc{URI: uri, Version: 1, Language: "go", Text: "x"})
		want := Doc{URI: uri, Path: real, Language: "go", Version: 1, Text: "x"}
		got, ok := s.Lookup(real)
		if diff := cmp.Diff(want, got); !ok || diff != "" {
			t.Errorf("%s: found %v (-want +got):\n%s", uri, ok, diff)
		}
	}
	s := NewStore()
	s.Open(Doc{URI: FileURI(dir + "/link/new/file.go"), Text: "n"})
	if _, ok := s.Lookup(dir + "/with space/new/file.go"); !ok {
		t.Error("a new file in a linked folder is not found by its real path")
	}
}

func TestSpellingsOfAURIAreOneDocument(t *testing.T) {
	s := NewStore()
	s.Open(Doc{URI: "file:///w/a%3Ab.go", Version: 1, Text: "x"})
	if err := s.Change("file:///w/a:b.go", 2, []Change{{Text: "y"}}); err != nil {
		t.Fatal(err)
	}
	s.Close("file://localhost/w/a%3ab.go")
	if len(s.Docs()) != 0 {
		t.Error("still open")
	}
}

func TestTheBufferTouchedLastStandsForAFileOpenTwice(t *testing.T) {
	dir, _ := filepath.EvalSymlinks(t.TempDir())
	if err := os.WriteFile(dir+"/a", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a", dir+"/b"); err != nil {
		t.Fatal(err)
	}
	s := NewStore()
	s.Open(Doc{URI: FileURI(dir + "/a"), Version: 1, Text: "a"})
	s.Open(Doc{URI: FileURI(dir + "/b"), Version: 1, Text: "b"})
	for v, uri := range []string{FileURI(dir + "/a"), FileURI(dir + "/b"), FileURI(dir + "/a")} {
		if err := s.Change(uri, int32(v+2), []Change{{Text: fmt.Sprint(v)}}); err != nil {
			t.Fatal(err)
		}
		if d, _ := s.Lookup(dir + "/a"); d.Text != fmt.Sprint(v) {
			t.Errorf("after change %d: %q", v, d.Text)
		}
	}
}

func TestURIsThatNameNoFileHereHaveNoPath(t *testing.T) {
	for _, uri := range []string{"untitled:Untitled-1", "git:/w/a.go?x", "http://localhost/a", "file://server/share/a", "file://", "file:relative", "", "file:///a%00b"} {
		if p, ok := FilePath(uri); ok {
			t.Errorf("%q: path %q", uri, p)
		}
		s := NewStore()
		s.Open(Doc{URI: uri, Text: "x", Path: "/made/up"})
		if d := s.Docs()[0]; d.Path != "" || d.Text != "x" {
			t.Errorf("%q: %+v", uri, d)
		}
		if _, ok := s.Lookup(""); ok {
			t.Errorf("%q is found by the empty path", uri)
		}
	}
	if p, _ := FilePath("file:///a%zz%4"); p != "/a%zz%4" {
		t.Errorf("escapes that are none: %q", p)
	}
}

func TestReadersAndChangesTogether(t *testing.T) {
	s := NewStore()
	s.Open(Doc{URI: "file:///nowhere/a", Version: 0, Text: "0\n"})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				if d, ok := s.Lookup("/nowhere/a"); !ok || d.Text != fmt.Sprintf("%d\n", d.Version) {
					t.Errorf("version %d has text %q", d.Version, d.Text)
					return
				}
			}
		})
	}
	for v := range int32(200) {
		if err := s.Change("file:///nowhere/a", v+1, []Change{{at(0, 0, 0, uint32(len(fmt.Sprint(v)))), fmt.Sprint(v + 1)}}); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
}
