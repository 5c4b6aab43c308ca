package workspace

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lakecode/lakecode/lsp/overlay"
	"github.com/lakecode/lakecode/session/durable"
	"github.com/lakecode/lakecode/tools"
)

func TestResolve(t *testing.T) {
	b := open(t, map[string]string{"a/b/file": "x", "top": "y"})
	outside := t.TempDir()
	for link, to := range map[string]string{
		"rel": "a/b", "abs": b.abs("a"), "a/up": "../top", "chain": "rel/file", "dangling": "a/nothing",
		"out": outside, "a/outrel": "../../..", "etc": "/etc/passwd", "loop1": "loop2", "loop2": "loop1",
		"back": "../" + filepath.Base(b.Root()) + "/top",
	} {
		must(t, os.Symlink(to, b.abs(link)))
	}
	for name, want := range map[string]string{
		".": ".", "a": "a", "./a//b/": "a/b", "a/../top": "top", "rel/file": "a/b/file", "abs/b/file": "a/b/file",
		"a/up": "top", "chain": "a/b/file", "dangling": "a/nothing", "new/deep/file": "new/deep/file", "rel/new": "a/b/new",
		"back": "top", b.Root(): ".", b.abs("a/b"): "a/b", b.abs("rel"): "a/b", "üñ ï#?%20": "üñ ï#?%20", "...": "...", "..a": "..a",
	} {
		got, err := b.Resolve(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(Path{Abs: b.abs(want), Rel: want}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for name, c := range map[string]struct {
		code tools.Code
		text string
	}{
		"..":                     {tools.OutsideRoot, ".. is outside"},
		"../x":                   {tools.OutsideRoot, "outside the workspace"},
		"a/../../x":              {tools.OutsideRoot, "outside the workspace"},
		"/etc/passwd":            {tools.OutsideRoot, "/etc/passwd is outside"},
		b.Root() + "x/a":         {tools.OutsideRoot, "outside"},
		"out":                    {tools.OutsideRoot, "out is a link to " + outside},
		"out/new":                {tools.OutsideRoot, "out is a link to"},
		"a/outrel/etc":           {tools.OutsideRoot, "a/outrel is a link to ../../.."},
		"etc":                    {tools.OutsideRoot, "etc is a link to /etc/passwd"},
		"loop1":                  {tools.NotFound, "too many links"},
		"top/x":                  {tools.NotFound, "top is a file"},
		"":                       {tools.BadArguments, `""`},
		"a\x00b":                 {tools.BadArguments, "cannot be used"},
		strings.Repeat("x", 300): {tools.BadArguments, "too long"},
	} {
		_, err := b.Resolve(name)
		refused(t, err, c.code, c.text)
	}
}

func TestTheRootMayBeNamedThroughALink(t *testing.T) {
	dir, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	put(t, filepath.Join(dir, "a"), "x")
	must(t, os.Symlink(dir, link))
	w, err := Open(Config{Root: link})
	must(t, err)
	defer w.Close()
	real, err := filepath.EvalSymlinks(dir)
	must(t, err)
	if w.Root() != real {
		t.Errorf("root %s, want %s", w.Root(), real)
	}
	if p, err := w.Resolve(filepath.Join(link, "a")); err != nil || p.Rel != "a" {
		t.Errorf("%+v, %v", p, err)
	}
	for _, bad := range []string{filepath.Join(dir, "nope"), filepath.Join(dir, "a")} {
		if _, err := Open(Config{Root: bad}); err == nil {
			t.Errorf("opened %s", bad)
		}
	}
}

// A folder that is swapped for a link to the outside between the check and the
// use leads nowhere.
func TestAPathThatIsSwappedForALinkIsNotFollowedOutside(t *testing.T) {
	b := open(t, map[string]string{"dir/file": "inside"})
	out := t.TempDir()
	put(t, filepath.Join(out, "file"), "outside")
	p := b.path("dir/file")
	fc := b.change("dir/file", "new")
	must(t, os.Rename(b.abs("dir"), b.abs("moved")))
	must(t, os.Symlink(out, b.abs("dir")))
	if f, err := b.Read(t.Context(), p, 100); err == nil {
		t.Errorf("read %q", f.Data)
	}
	if _, err := b.Commit(t.Context(), ChangeSet{Files: []FileChange{fc}}); err == nil {
		t.Error("written")
	}
	if _, _, err := b.ReadDir(t.Context(), Path{Abs: b.abs("dir"), Rel: "dir"}); err == nil {
		t.Error("listed")
	}
	if data, err := os.ReadFile(filepath.Join(out, "file")); err != nil || string(data) != "outside" {
		t.Errorf("outside: %q, %v", data, err)
	}
}

func TestReadTakesRegularFilesOnlyAndNeverWaits(t *testing.T) {
	b := open(t, map[string]string{"text": "hello", "sub/x": ""})
	must(t, syscall.Mkfifo(b.abs("pipe"), 0o600))
	must(t, syscall.Mknod(b.abs("zero"), syscall.S_IFCHR|0o600, 1<<8|5))
	must(t, syscall.Mknod(b.abs("socket"), syscall.S_IFSOCK|0o600, 0))
	must(t, os.WriteFile(b.abs("huge"), nil, 0o600))
	must(t, os.Truncate(b.abs("huge"), 1<<30))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for name, c := range map[string]struct {
			code tools.Code
			text string
		}{
			"pipe": {tools.Other, "pipe is a named pipe"}, "zero": {tools.Other, "zero is a device"},
			"socket": {tools.Other, "socket is a socket"}, "sub": {tools.Other, "list_directory"},
			"huge": {tools.TooLarge, "1073741824 bytes"}, "missing": {tools.NotFound, "missing does not exist"},
			"text/x": {tools.NotFound, "not a folder"}, "text": {tools.TooLarge, "5 bytes; the limit is 4"},
		} {
			p := Path{Abs: b.abs(name), Rel: name}
			_, err := b.Read(t.Context(), p, 4)
			refused(t, err, c.code, c.text)
		}
	}()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("a read is waiting")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := b.Read(ctx, b.path("text"), 100)
	refused(t, err, tools.Cancelled)
}

// covers TOOL-4 partly
func TestReadSeesTheEditorsTextWhereItDiffers(t *testing.T) {
	for name, c := range map[string]struct {
		disk, buffer string
		want         string
		fromBuffer   bool
	}{
		"unsaved":         {"disk\n", "typed\n", "typed\n", true},
		"same":            {"disk\n", "disk\n", "disk\n", false},
		"CR LF on disk":   {"\uFEFFa\r\nb", "a\nb\n", "\uFEFFa\r\nb", false},
		"not on the disk": {"", "new file\n", "new file\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, map[string]string{"other": ""})
			if c.disk != "" {
				put(t, b.abs("a"), c.disk)
			}
			must(t, os.Symlink("a", b.abs("link")))
			b.docs.Open(overlay.Doc{URI: overlay.FileURI(b.abs("a")), Version: 7, Text: c.buffer})
			for _, name := range []string{"a", "link"} {
				f, err := b.Read(t.Context(), b.path(name), 100)
				must(t, err)
				if string(f.Data) != c.want || f.FromBuffer != c.fromBuffer || f.FromBuffer && f.Version != 7 || f.OnDisk != (c.disk != "") {
					t.Errorf("%s: %+v", name, f)
				}
			}
			_, err := b.Read(t.Context(), b.path("a"), 3)
			refused(t, err, tools.TooLarge, "limit is 3")
		})
	}
	b := open(t, map[string]string{"a": "disk"})
	uri := overlay.FileURI(b.abs("a"))
	b.docs.Open(overlay.Doc{URI: uri, Version: 2, Text: "typed"})
	_ = b.docs.Change(uri, 1, nil)
	f, err := b.Read(t.Context(), b.path("a"), 100)
	must(t, err)
	if string(f.Data) != "disk" || !f.OutOfStep || f.FromBuffer {
		t.Errorf("a buffer that is out of step: %+v", f)
	}
}

func TestDocsAreThoseInsideTheRoot(t *testing.T) {
	b := open(t, map[string]string{"a": ""})
	for _, uri := range []string{overlay.FileURI(b.abs("a")), overlay.FileURI(b.Root() + "x"), "untitled:1", "file:///etc/passwd"} {
		b.docs.Open(overlay.Doc{URI: uri, Text: "x"})
	}
	var got []string
	for _, d := range b.Docs() {
		p, ok := b.Locate(d.Path)
		if !ok {
			t.Errorf("%s is not located", d.Path)
		}
		got = append(got, p.Rel)
	}
	if !slices.Equal(got, []string{"a"}) {
		t.Errorf("documents: %v", got)
	}
}

func TestWhatWasReadIsRememberedAlsoByTheNextProcess(t *testing.T) {
	b := open(t, map[string]string{"a": "one", "b": "two"})
	if _, ok := b.WasRead(b.path("a")); ok {
		t.Error("read before it was")
	}
	b.MarkRead(b.path("a"), []byte("zero"))
	b.MarkRead(b.path("a"), []byte("one"))
	_, err := b.Commit(t.Context(), ChangeSet{Files: []FileChange{b.change("b", "2")}})
	must(t, err)
	again, err := Open(Config{Root: b.Root(), Journal: b.journal.dir})
	must(t, err)
	defer again.Close()
	for name, text := range map[string]string{"a": "one", "b": "2"} {
		s, ok := b.WasRead(b.path(name))
		if !ok || string(s.Text) != text {
			t.Errorf("%s: %q, %v", name, s.Text, ok)
		}
		s2, ok := again.WasRead(b.path(name))
		if !ok || s2.Hash != s.Hash || s2.Text != nil {
			t.Errorf("%s in the next process: %v", name, ok)
		}
	}
}

func TestTheMemoryOfReadTextsIsBounded(t *testing.T) {
	b := open(t, nil)
	big := make([]byte, maxSeenText)
	for i := range 40 {
		b.MarkRead(Path{Abs: b.abs(string(rune('A' + i)))}, big)
	}
	b.MarkRead(Path{Abs: b.abs("large")}, make([]byte, maxSeenText+1))
	kept := 0
	for _, s := range b.reads.seen {
		kept += len(s.Text)
	}
	if kept != maxSeenTotal || b.reads.total != kept || len(b.reads.seen) != 41 {
		t.Errorf("%d bytes kept, counted %d, of %d files", kept, b.reads.total, len(b.reads.seen))
	}
	if s, ok := b.WasRead(Path{Abs: b.abs("large")}); !ok || s.Text != nil {
		t.Error("the large one")
	}
}

func TestARecordOfReadsThatIsDamagedOrNewerIsNoObstacle(t *testing.T) {
	for _, text := range []string{"", "lakecode reads 2\nx", readsHeader + "\nzz /a\nabc\n\n" + strings.Repeat("x", 100_000)} {
		b := open(t, map[string]string{"a": ""})
		put(t, filepath.Join(b.journal.dir, readsName), text)
		w, err := Open(Config{Root: b.Root(), Journal: b.journal.dir})
		must(t, err)
		w.MarkRead(b.path("a"), []byte("x"))
		if _, ok := w.WasRead(b.path("a")); !ok {
			t.Errorf("%.20q: not remembered", text)
		}
		must(t, w.Close())
		got, err := durable.ReadFile(filepath.Join(b.journal.dir, readsName), 1<<20)
		must(t, err)
		if !strings.HasPrefix(string(got), text) {
			t.Errorf("%.20q was overwritten", text)
		}
	}
}

// A conversation belongs to the folder it was opened for; a command must not run
// in whatever has taken its place.
func TestRootThatWasReplacedIsRefused(t *testing.T) {
	for name, replace := range map[string]func(t *testing.T, root string){
		"removed": func(t *testing.T, root string) { must(t, os.RemoveAll(root)) },
		"renamed": func(t *testing.T, root string) { must(t, os.Rename(root, root+"2")) },
		"a new folder": func(t *testing.T, root string) {
			must(t, os.Rename(root, root+"2"))
			must(t, os.Mkdir(root, 0o755))
		},
		"a link": func(t *testing.T, root string) {
			must(t, os.Rename(root, root+"2"))
			must(t, os.Symlink(root+"2", root))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, map[string]string{"file": "x"})
			replace(t, b.Root())
			for _, p := range []string{".", "file", b.abs("file")} {
				_, err := b.Resolve(p)
				refused(t, err, tools.Stale, b.Root()+" was removed")
			}
		})
	}
}
