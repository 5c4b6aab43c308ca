package files

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/lakecode/lakecode/tools"
)

func edits(pairs ...string) []args {
	var out []args
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, args{"old": pairs[i], "new": pairs[i+1]})
	}
	return out
}

// covers TOOL-13 partly
func TestEditChangesOnlyWhatDiffers(t *testing.T) {
	for name, c := range map[string]struct {
		file  string
		edits []args
		want  string
		says  string
	}{
		"one":                  {"a\nb\nc\n", edits("b", "B"), "a\nB\nc\n", "+1 -1 lines"},
		"in order":             {"a\nb\n", edits("a", "x", "x\nb", "y"), "y\n", "+1 -2 lines"},
		"delete lines":         {"a\nb\nc\n", edits("b\n", ""), "a\nc\n", "+0 -1 lines"},
		"all":                  {"x x\nx\n", []args{{"old": "x", "new": "yy", "replace_all": true}}, "yy yy\nyy\n", "3 occurrences"},
		"no final newline":     {"a\nb", edits("b", "c"), "a\nc", ""},
		"BOM":                  {"\uFEFFa\nb\n", edits("\uFEFFa", "A"), "\uFEFFA\nb\n", ""},
		"CRLF":                 {"a\r\nb\r\nc\r\n", edits("a\nb", "A\nnew\nb"), "A\r\nnew\r\nb\r\nc\r\n", "+2 -1 lines"},
		"CRLF given":           {"a\r\nb\r\n", edits("a\r\nb\r\n", "A\r\nb\r\n"), "A\r\nb\r\n", ""},
		"CRLF append":          {"a\r\nb", edits("b", "b\nc\nd"), "a\r\nb\r\nc\r\nd", ""},
		"CRLF delete":          {"a\r\nb\r\nc\r\n", edits("b\n", ""), "a\r\nc\r\n", ""},
		"CRLF from line end":   {"a\r\nb\r\nc", edits("\nb", "\nB\nx"), "a\r\nB\r\nx\r\nc", ""},
		"CRLF all":             {"a\r\nb\r\na\r\nb\r\n", []args{{"old": "a\nb", "new": "c\nd", "replace_all": true}}, "c\r\nd\r\nc\r\nd\r\n", ""},
		"CRLF shrink":          {"a\r\nb\r\nc\r\n", edits("a\nb\nc", "a"), "a\r\n", ""},
		"mixed keeps":          {"a\r\nb\nc\r\nd\n", edits("a\nb\nc\nd\n", "a\nb\nC\nd\n"), "a\r\nb\nC\nd\n", ""},
		"lone CR":              {"a\rb\rc", edits("b", "B"), "a\rB\rc", ""},
		"new CRLF in LF file":  {"a\nb\n", edits("a", "a\r"), "a\r\nb\n", ""},
		"space at line end":    {"f() {  \n\tg()\t\n}\n", edits("f() {\n\tg()\n}", "f() {\n\th()\n}"), "f() {  \n\th()\n}\n", "except for space at line ends (line 1)"},
		"space in old":         {"a\nb\nc\n", edits("a  \nb", "a  \nB"), "a\nB\nc\n", "except for space at line ends"},
		"CRLF in old":          {"a\nb\nc\n", edits("a\r\nb\r\n", "a\r\nB\r\n"), "a\nB\nc\n", "except for space"},
		"CRLF and space":       {"a \r\nb\r\n", edits("a\nb", "a\nB"), "a \r\nB\r\n", "except for space"},
		"newline at the end":   {"a\nb", edits("b\n", "c\n"), "a\nc", "except for space"},
		"exact before similar": {"b \nb\n", edits("b\n", "c\n"), "b \nc\n", ""},
		"only space":           {"a\n\n\nb\n", edits("a\n\n\nb", "a\n\nb"), "a\n\nb\n", ""},
		"unicode":              {"größe 漢😀\n", edits("漢😀", "漢"), "größe 漢\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t, map[string]string{"f": c.file})
			d.ok("read_file", args{"path": "f"})
			d.ok("edit_file", args{"path": "f", "edits": c.edits}, "Edited f: ", c.says)
			d.check("f", c.want)
		})
	}
}

// covers TOOL-13 partly
func TestEditThatCannotBeMadeWritesNothing(t *testing.T) {
	const file = "func a() {\n\treturn 1\n}\n\nfunc b() {\n\treturn 1\n}\n"
	for name, c := range map[string]struct {
		edits []args
		code  tools.Code
		says  []string
	}{
		"ambiguous": {edits("\treturn 1", "x"), tools.Other, []string{"old occurs 2 times, at lines 2, 6", "replace_all"}},
		"absent": {
			edits("func a() {\n    return 1\n}", "x"), tools.NotFound,
			[]string{"old is not in the file", "Nearest:\n1\tfunc a() {\n2\t\treturn 1\n3\t}", `First difference at line 2: the file has "\treturn 1", old has "    return 1"`},
		},
		"resembles":      {edits("func aa() {", "x"), tools.NotFound, []string{"Nearest:\n1\tfunc a() {"}},
		"nothing near":   {edits("zzzzzz", "x"), tools.NotFound, []string{"old is not in the file. Nothing was written."}},
		"second of two":  {edits("func a", "func c", "nope nope", "x"), tools.NotFound, []string{"Edit 2 of 2 does not match", "after the edits before it"}},
		"empty old":      {edits("", "x"), tools.BadArguments, []string{"empty old"}},
		"same":           {edits("func a", "func a"), tools.BadArguments, []string{"same text"}},
		"undoes itself":  {edits("func a", "func c", "func c", "func a"), tools.BadArguments, []string{"change nothing"}},
		"empties":        {edits(file, "\n"), tools.BadArguments, []string{"would leave f empty"}},
		"NUL":            {edits("func a", "\x00"), tools.BadArguments, []string{"NUL"}},
		"none":           {nil, tools.BadArguments, nil},
		"spaces, unsure": {edits("return 1 \n}", "x"), tools.Other, []string{"ambiguous when space at line ends is ignored: 2 times, at lines 2, 6"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t, map[string]string{"f": file})
			d.ok("read_file", args{"path": "f"})
			d.bad(c.code, "edit_file", args{"path": "f", "edits": c.edits}, c.says...)
			if c.edits != nil {
				d.bad(c.code, "edit_file", args{"path": "f", "edits": c.edits}, "Nothing was written.")
			}
			d.check("f", file)
		})
	}
	d := open(t, map[string]string{"f": "aXaXa"})
	d.bad(tools.Other, "edit_file", args{"path": "f", "edits": edits("aXa", "b")}, "overlapping")
	d.bad(tools.NotFound, "edit_file", args{"path": "f", "edits": edits("b", "c")}, "Read the file first")
}

// covers TOOL-13 partly
func TestEditOfAFileThatHasMovedOn(t *testing.T) {
	const file = "one\ntwo\nthree\n"
	d := open(t, map[string]string{"f": file})
	d.ok("read_file", args{"path": "f"})
	must(t, os.WriteFile(d.abs("f"), []byte("zero\none\n2\nthree\nthree\n"), 0o644))
	d.bad(tools.Stale, "edit_file", args{"path": "f", "edits": edits("two", "TWO")},
		"f has changed since you read it", "old is not in the file", "What changed (+3 -1 lines):", "+zero", "-two", "Nothing was written")
	d.bad(tools.Stale, "edit_file", args{"path": "f", "edits": []args{{"old": "three", "new": "3", "replace_all": true}}}, "ambiguous", "at lines 4, 5", "Read it again")
	d.ok("edit_file", args{"path": "f", "edits": edits("one", "1")}, "had changed since you read it; the edit still applied uniquely")
	d.check("f", "zero\n1\n2\nthree\nthree\n")
	text := d.ok("edit_file", args{"path": "f", "edits": edits("zero", "0")})
	if strings.Contains(text, "had changed") {
		t.Errorf("our own write counts as read: %s", text)
	}
}

func TestEditShowsABoundedDiff(t *testing.T) {
	var old, new strings.Builder
	for i := range 400 {
		fmt.Fprintf(&old, "line %d\n", i)
		fmt.Fprintf(&new, "LINE %d\n", i)
	}
	d := open(t, map[string]string{"f": old.String(), "g": "1\n2\n3\n4\n5\n6\n7\n"})
	text := d.ok("edit_file", args{"path": "f", "edits": edits(old.String(), new.String())}, "+400 -400 lines", "[diff cut after 200 lines]")
	if n := strings.Count(text, "\n"); n > 203 {
		t.Errorf("%d lines", n)
	}
	if got, want := d.ok("edit_file", args{"path": "g", "edits": edits("4", "four")}), "Edited g: +1 -1 lines.\n@@ -1,7 +1,7 @@\n 1\n 2\n 3\n-4\n+four\n 5\n 6\n 7"; got != want {
		t.Errorf("%q", got)
	}
	many := strings.Repeat("a\nb\n", 1000)
	must(t, os.WriteFile(d.abs("h"), []byte(many), 0o644))
	d.ok("edit_file", args{"path": "h", "edits": []args{{"old": "a", "new": "A", "replace_all": true}}}, "1000 occurrences", "[diff cut after 200 lines]")
}

// covers TOOL-13 partly
func TestWrite(t *testing.T) {
	d := open(t, map[string]string{"crlf": "\uFEFFa\r\nb\r\n", "full": "text\n", "empty": "", "run": "#!\n"})
	must(t, os.Chmod(d.abs("run"), 0o755))
	d.ok("write_file", args{"path": "new/dir/a.go", "content": "package a\n"}, "Wrote new/dir/a.go: new file, 1 lines.")
	d.check("new/dir/a.go", "package a\n")
	d.ok("write_file", args{"path": "new/dir/a.go", "content": "package b\n"}, "+1 -1 lines", "-package a\n+package b")
	d.bad(tools.Stale, "write_file", args{"path": "full", "content": "x"}, "full exists and you have not read it", "Nothing was written", "Read it first")
	d.ok("read_file", args{"path": "full"})
	must(t, os.WriteFile(d.abs("full"), []byte("theirs\n"), 0o644))
	d.bad(tools.Stale, "write_file", args{"path": "full", "content": "x"}, "has changed since you read it", "-text\n+theirs")
	d.check("full", "theirs\n")
	d.ok("read_file", args{"path": "full"})
	d.ok("write_file", args{"path": "full", "content": "theirs\n"}, "has this content already")
	d.ok("write_file", args{"path": "full", "content": ""}, "+0 -1 lines")
	d.check("full", "")
	d.ok("write_file", args{"path": "empty", "content": "x"}, "+1 -0 lines")
	d.ok("read_file", args{"path": "crlf"})
	d.ok("write_file", args{"path": "crlf", "content": "a\nc\n"}, "CRLF line ends were kept. The byte order mark was kept.")
	d.check("crlf", "\uFEFFa\r\nc\r\n")
	d.ok("read_file", args{"path": "run"})
	d.ok("write_file", args{"path": "run", "content": "#!/bin/sh\n"})
	if info, err := os.Stat(d.abs("run")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	d.ok("write_file", args{"path": "limit", "content": strings.Repeat("x", 1<<20)})
	d.bad(tools.TooLarge, "write_file", args{"path": "over", "content": strings.Repeat("x", 1<<20+1)}, "1048577 bytes; the limit is 1048576", "Nothing was written")
	d.bad(tools.BadArguments, "write_file", args{"path": "nul", "content": "a\x00"}, "NUL")
	d.bad(tools.Other, "write_file", args{"path": "new", "content": "x"}, "new is a folder", "Nothing was written")
	d.bad(tools.NotFound, "write_file", args{"path": "run/x", "content": "x"}, "run is a file")
}

// FuzzEdit: whatever old and new are, an edit that works changes one exact or
// nearly exact place and keeps the bytes around it.
func FuzzEdit(f *testing.F) {
	f.Add("a\r\nb\nc", "b", "x\ny", false)
	f.Add("a  \nb\t\n", "a\nb\n", "a\nc\n", false)
	f.Add("aXaXa", "aXa", "", true)
	f.Add("a\r\n\r\nb", "\n", "", true)
	f.Add("a\nb", "b\n", "\n", false)
	f.Fuzz(func(t *testing.T, s, old, new string, all bool) {
		after, note, bad := applyOne("The edit", s, oneEdit{Old: old, New: new, All: all}, false)
		if bad != nil {
			return
		}
		old = strings.TrimPrefix(old, bom)
		at, _ := exact(s, old)
		if len(at) == 0 {
			if at, _, _ = forgiving(s, old); len(at) != 1 || !strings.Contains(note, "except for space") {
				t.Fatalf("applied at %v with note %q", at, note)
			}
		}
		last := 0
		for _, sp := range at {
			if sp.from < last || sp.to < sp.from || sp.to > len(s) {
				t.Fatalf("spans %v of %q", at, s)
			}
			last = sp.to
		}
		if !strings.HasPrefix(after, s[:at[0].from]) || !strings.HasSuffix(after, s[last:]) {
			t.Fatalf("%q became %q: the text around %v has changed", s, after, at)
		}
		if !strings.Contains(s, "\r") && !strings.Contains(old+new, "\r") && note == "" {
			if want := strings.Replace(s, old, new, 1); after != want {
				t.Fatalf("got %q, want %q", after, want)
			}
		}
		if strings.Count(after, "\r\r\n") > strings.Count(s+strings.Repeat(new, len(at)), "\r\r") {
			t.Fatalf("%q became %q: a CR too many", s, after)
		}
	})
}
