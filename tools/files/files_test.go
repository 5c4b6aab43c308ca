package files

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/lakecode/lakecode/lsp/overlay"
	"github.com/lakecode/lakecode/tools"
	"github.com/lakecode/lakecode/tools/workspace"
)

// desk is a workspace with the four tools behind the runner.
type desk struct {
	t      *testing.T
	w      *workspace.Workspace
	docs   *overlay.Store
	runner *tools.Runner
}

type silent struct{}

func (silent) Started(tools.Call, tools.Spec)                {}
func (silent) Progress(tools.Call, string)                   {}
func (silent) Ended(tools.Call, tools.Result, time.Duration) {}

func open(t *testing.T, files map[string]string) *desk {
	t.Helper()
	root, docs := t.TempDir(), overlay.NewStore()
	for name, text := range files {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
		must(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o644))
	}
	w, err := workspace.Open(workspace.Config{Root: root, Docs: docs, Journal: filepath.Join(t.TempDir(), "j")})
	must(t, err)
	t.Cleanup(func() { must(t, w.Close()) })
	ts, err := Tools(Config{Workspace: w})
	must(t, err)
	var reg tools.Registry
	must(t, reg.Add(ts...))
	return &desk{t, w, docs, tools.NewRunner(tools.Config{View: reg.View(tools.Build), Observer: silent{}, Log: zap.NewNop()})}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (d *desk) abs(name string) string { return filepath.Join(d.w.Root(), name) }

// args are the arguments of a call.
type args = map[string]any

func (d *desk) call(name string, a args) tools.Result {
	d.t.Helper()
	raw, err := json.Marshal(a)
	must(d.t, err)
	return d.runner.Invoke(d.t.Context(), tools.Call{ID: "c1", Name: name, Args: string(raw)})
}

// ok runs a call that must work and whose text must hold all of has.
func (d *desk) ok(name string, a args, has ...string) string {
	d.t.Helper()
	r := d.call(name, a)
	if r.Err != nil {
		d.t.Errorf("%s %v: %s: %s", name, a, r.Err.Code, r.Text())
	}
	d.has(r.Text(), has)
	return r.Text()
}

// bad runs a call that must fail with code; what it says must hold all of has.
func (d *desk) bad(code tools.Code, name string, a args, has ...string) {
	d.t.Helper()
	r := d.call(name, a)
	switch {
	case r.Err == nil:
		d.t.Errorf("%s %v worked: %s", name, a, r.Output.Text)
		return
	case r.Err.Code != code:
		d.t.Errorf("%s %v: code %s, want %s: %s", name, a, r.Err.Code, code, r.Text())
	}
	d.has(r.Text(), has)
}

func (d *desk) has(text string, has []string) {
	d.t.Helper()
	for _, s := range has {
		if !strings.Contains(text, s) {
			d.t.Errorf("lacks %q:\n%.1000s", s, text)
		}
	}
}

// check compares what is on the disk.
func (d *desk) check(name, want string) {
	d.t.Helper()
	got, err := os.ReadFile(d.abs(name))
	must(d.t, err)
	if diff := cmp.Diff(want, string(got)); diff != "" {
		d.t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func (d *desk) buffer(name, text string) {
	d.docs.Open(overlay.Doc{URI: overlay.FileURI(d.abs(name)), Version: 7, Text: text})
}

func TestWhatTheModelSeesOfTheToolsIsShort(t *testing.T) {
	d := open(t, nil)
	total := 0
	for _, s := range d.runner.View().Specs() {
		raw, err := json.Marshal(map[string]any{"type": "function", "function": map[string]any{
			"name": s.Name, "description": s.Description, "parameters": s.Schema,
		}})
		must(t, err)
		t.Logf("%s: %d bytes", s.Name, len(raw))
		if len(raw) > 1126 {
			t.Errorf("%s has %d bytes", s.Name, len(raw))
		}
		total += len(raw)
	}
	t.Logf("together %d bytes", total)
}

func TestAliases(t *testing.T) {
	d := open(t, map[string]string{"a": "x\n"})
	d.ok("read", args{"path": "a"}, "1\tx")
	d.ok("edit", args{"path": "a", "edits": []args{{"old": "x", "new": "y"}}}, "Edited a: +1 -1 lines.")
	d.ok("write", args{"path": "b", "content": "z"}, "new file")
}

func TestReadNumbersLines(t *testing.T) {
	d := open(t, map[string]string{"dir/a.go": "one\ntwo\n\nfour", "crlf": "a\r\nb\r\n", "mixed": "a\r\nb\n", "bom": "\uFEFFx\n", "empty": ""})
	for _, c := range []struct {
		in   args
		want string
	}{
		{args{"path": "dir/a.go"}, "dir/a.go lines 1-4 of 4\n1\tone\n2\ttwo\n3\t\n4\tfour"},
		{args{"path": d.abs("dir/a.go"), "offset": 2, "limit": 1}, "dir/a.go lines 2-2 of 4\n2\ttwo\n[cut after 1 lines: lines 2-2 of 4 shown; next: read_file {\"path\":\"dir/a.go\",\"offset\":3}]"},
		{args{"path": "./dir/../dir/a.go", "offset": 4}, "dir/a.go lines 4-4 of 4\n4\tfour"},
		{args{"path": "crlf"}, "crlf lines 1-2 of 2, CRLF line ends\n1\ta\n2\tb"},
		{args{"path": "mixed"}, "mixed lines 1-2 of 2, mixed line ends (1 CRLF, 1 LF)\n1\ta\n2\tb"},
		{args{"path": "bom"}, "bom lines 1-1 of 1, UTF-8 with byte order mark\n1\tx"},
		{args{"path": "empty"}, "empty is empty (0 bytes)."},
	} {
		if diff := cmp.Diff(c.want, d.ok("read_file", c.in)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c.in, diff)
		}
	}
	d.bad(tools.BadArguments, "read_file", args{"path": "dir/a.go", "offset": 5}, "has 4 lines", "line 5 is beyond", "from 1 to 4")
	d.bad(tools.BadArguments, "read_file", args{"path": "dir/a.go", "offset": -1}, "negative")
	d.bad(tools.Other, "read_file", args{"path": "dir"}, "is a folder", "list_directory")
}

func TestReadSaysWhereItCut(t *testing.T) {
	d := open(t, map[string]string{
		"lines": strings.Repeat("x\n", 2500),
		"bytes": strings.Repeat(strings.Repeat("y", 999)+"\n", 100),
		"long":  "short\n" + strings.Repeat("漢", 2001) + "\n" + strings.Repeat("é", 2000) + "\n",
		"one":   strings.Repeat("z", 1<<20),
	})
	d.ok("read_file", args{"path": "lines", "limit": 9999}, "lines 1-2000 of 2500\n", "[cut after 2000 lines: lines 1-2000 of 2500 shown; next: read_file {\"path\":\"lines\",\"offset\":2001}]")
	d.ok("read_file", args{"path": "lines", "offset": 2001}, "lines 2001-2500 of 2500\n", "2500\tx")
	text := d.ok("read_file", args{"path": "bytes"}, "lines 1-51 of 100\n", "[cut after 50 KiB: lines 1-51 of 100 shown", `"offset":52}`)
	if len(text) > maxBytes+300 {
		t.Errorf("%d bytes", len(text))
	}
	text = d.ok("read_file", args{"path": "long"}, "漢 [line cut: 2000 of 2001 characters shown]\n3\té")
	if strings.Count(text, "漢") != 2000 || strings.Count(text, "é") != 2000 {
		t.Errorf("%d and %d characters", strings.Count(text, "漢"), strings.Count(text, "é"))
	}
	d.ok("read_file", args{"path": "one"}, "lines 1-1 of 1", "[line cut: 2000 of 1048576 characters shown]")
}

func TestReadRefusesBinaryAndNamesEncodings(t *testing.T) {
	d := open(t, map[string]string{
		"png":     "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
		"elf":     "\x7fELF\x00\x01",
		"u16":     "h\x00e\x00l\x00l\x00o\x00 \x00y\x00o\x00u\x00",
		"le":      "\xff\xfeh\x00\xe9\x00\n\x00",
		"be":      "\xfe\xff\x00h\x00\xe9",
		"u32":     "\xff\xfe\x00\x00h\x00\x00\x00\x00\xf6\x01\x00",
		"latin":   "caf\xe9\n",
		"damaged": "漢漢漢\xff\n",
	})
	d.bad(tools.Other, "read_file", args{"path": "png"}, "png is binary (image/png, 16 bytes)")
	d.bad(tools.Other, "read_file", args{"path": "elf"}, "is binary")
	d.bad(tools.Other, "read_file", args{"path": "u16"}, "UTF-16 without a byte order mark")
	for name, want := range map[string]string{
		"le":      "UTF-16 (little endian), cannot be edited\n1\thé",
		"be":      "UTF-16 (big endian), cannot be edited\n1\thé",
		"u32":     "UTF-32, cannot be edited\n1\th\U0001F600",
		"latin":   "not UTF-8 (shown as ISO-8859-1), cannot be edited\n1\tcafé",
		"damaged": "damaged UTF-8, cannot be edited\n1\t漢漢漢\uFFFD",
	} {
		d.ok("read_file", args{"path": name}, want)
		before, _ := os.ReadFile(d.abs(name))
		d.bad(tools.NotAllowed, "edit_file", args{"path": name, "edits": []args{{"old": "h", "new": "j"}}}, "only UTF-8 is edited", "Nothing was written")
		d.bad(tools.NotAllowed, "write_file", args{"path": name, "content": "new"}, "only UTF-8 is edited", "Nothing was written")
		d.check(name, string(before))
	}
	for _, name := range []string{"png", "u16"} {
		d.bad(tools.NotAllowed, "edit_file", args{"path": name, "edits": []args{{"old": "h", "new": "j"}}}, "binary", "Nothing was written")
	}
}

func TestReadLooksAtLargeFilesOnlyWhereItIsAsked(t *testing.T) {
	d := open(t, nil)
	f, err := os.Create(d.abs("log"))
	must(t, err)
	line := strings.Repeat("0123456789", 10) + "\n"
	for range 10 {
		_, err = f.WriteString(strings.Repeat(line, 10_000))
		must(t, err)
	}
	must(t, f.Close())
	d.ok("read_file", args{"path": "log", "offset": 99_999, "limit": 1}, "lines 99999-99999 of 100000, 10100000 bytes, as saved on the disk, too large to be edited\n99999\t0123", `"offset":100000}`)
	must(t, os.WriteFile(d.abs("huge"), nil, 0o600))
	must(t, os.Truncate(d.abs("huge"), 1<<30))
	d.bad(tools.TooLarge, "read_file", args{"path": "huge"}, "1073741824 bytes", "search_text")
	d.bad(tools.TooLarge, "edit_file", args{"path": "huge", "edits": []args{{"old": "0", "new": "1"}}}, "Nothing was written")
	must(t, os.Truncate(d.abs("huge"), 100<<20))
	d.bad(tools.Other, "read_file", args{"path": "huge"}, "binary")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (&box{w: d.w}).read(ctx, readIn{Path: "log"}, nil); err == nil {
		t.Error("read after the end of its context")
	}
}

func TestMissingFilesComeWithTheNearestNames(t *testing.T) {
	d := open(t, map[string]string{"cmd/main.go": "", "cmd/main_test.go": "", "cmd/other.txt": "", "README.md": ""})
	d.bad(tools.NotFound, "read_file", args{"path": "cmd/mian.go"}, "cmd/mian.go does not exist. Near it in cmd: main.go")
	d.bad(tools.NotFound, "read_file", args{"path": "readme.md"}, "Near it in .: README.md")
	d.bad(tools.NotFound, "read_file", args{"path": "cmdd/main.go"}, "Near it in .: cmd")
	d.bad(tools.NotFound, "read_file", args{"path": "x/y/z"}, "x/y/z does not exist", "The folder x does not exist either")
	d.bad(tools.NotFound, "list_directory", args{"path": "cnd"}, "Near it in .: cmd")
	d.bad(tools.NotFound, "edit_file", args{"path": "README", "edits": []args{{"old": "0", "new": "1"}}}, "README.md", "Nothing was written")
}

// covers TOOL-4 partly
func TestToolsSeeTheEditorsUnsavedText(t *testing.T) {
	d := open(t, map[string]string{"a": "disk\n"})
	d.buffer("a", "typed\n")
	d.buffer("new", "never saved\n")
	d.ok("read_file", args{"path": "a"}, "a lines 1-1 of 1, unsaved editor text, version 7\n1\ttyped")
	d.ok("read_file", args{"path": "new"}, "unsaved editor text, version 7, no file on the disk yet\n1\tnever saved")
	d.ok("list_directory", args{}, "new  (only in the editor, not saved)")
	d.bad(tools.Stale, "edit_file", args{"path": "a", "edits": []args{{"old": "typed", "new": "x"}}}, "unsaved changes in the editor", "Nothing was written", "Ask the person to save it")
	d.bad(tools.Stale, "write_file", args{"path": "new", "content": "x"}, "unsaved changes in the editor")
	d.bad(tools.Stale, "write_file", args{"path": "a", "content": "x"}, "unsaved changes in the editor")
	d.check("a", "disk\n")
	must(t, os.WriteFile(d.abs("a"), []byte("typed\r\n"), 0o644)) // the person saves it
	d.ok("write_file", args{"path": "a", "content": "disk\n"}, "CRLF line ends were kept")
	must(t, os.WriteFile(d.abs("a"), []byte("disk\n"), 0o644))
	uri := overlay.FileURI(d.abs("a"))
	_ = d.docs.Change(uri, 1, nil)
	d.ok("read_file", args{"path": "a"}, "what the editor shows is not known\n1\tdisk")
	d.bad(tools.Stale, "edit_file", args{"path": "a", "edits": []args{{"old": "disk", "new": "x"}}}, "not known here")
}

func TestListShowsFoldersFirstAndNamesWhatItLeavesOut(t *testing.T) {
	d := open(t, map[string]string{
		"z/b/c/deep": "1", "a.txt": "12345", ".hidden": "", ".git/config": "", "z/node_modules/x": "", "bin/tool": "", "odd\nname": "",
		".lakecode-tmp-ABC": "",
	})
	must(t, os.Symlink("a.txt", d.abs("link")))
	must(t, os.Symlink("/nowhere", d.abs("out")))
	for _, c := range []struct {
		in   args
		want string
	}{
		{args{}, ".: 6 entries (not shown: .git, bin)\nz/\n.hidden  0\na.txt  5\nlink -> a.txt\n\"odd\\nname\"  0\nout -> /nowhere"},
		{args{"path": "z", "depth": 2}, "z: 2 entries (not shown: z/node_modules)\nb/\n  c/"},
		{args{"path": "bin"}, "bin: 1 entries\ntool  0"},
		{args{"path": ".git"}, ".git: 1 entries\nconfig  0"},
	} {
		if diff := cmp.Diff(c.want, d.ok("list_directory", c.in)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c.in, diff)
		}
	}
	must(t, os.Mkdir(d.abs("none"), 0o755))
	if got := d.ok("list_directory", args{"path": "none"}); got != "none is empty" {
		t.Errorf("%q", got)
	}
	d.bad(tools.Other, "list_directory", args{"path": "a.txt"}, "not a folder", "read_file")
	d.bad(tools.OutsideRoot, "list_directory", args{"path": "out"}, "out is a link to /nowhere")
	d.bad(tools.BadArguments, "list_directory", args{"depth": 6}, "1 to 5")
}

func TestListIsBounded(t *testing.T) {
	d := open(t, nil)
	for i := range 600 {
		must(t, os.WriteFile(d.abs(fmt.Sprintf("f%03d", i)), nil, 0o644))
	}
	text := d.ok("list_directory", args{}, ".: 500 entries\n", "f499  0\n[cut after 500 entries")
	if strings.Contains(text, "f500") {
		t.Error("more than 500")
	}
}
