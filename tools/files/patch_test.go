package files

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lakecode/lakecode/tools"
)

// wrap makes the arguments of a patch of the lines between its marks.
func wrap(body string) args {
	return args{"patch": beginPatch + "\n" + body + "\n" + endPatch}
}

// tree reads all files.
func (d *desk) tree() map[string]string {
	d.t.Helper()
	out := map[string]string{}
	var walk func(dir string)
	walk = func(dir string) {
		entries, err := os.ReadDir(d.abs(dir))
		must(d.t, err)
		for _, e := range entries {
			name := strings.TrimPrefix(dir+"/"+e.Name(), "./")
			if e.IsDir() {
				walk(name)
				continue
			}
			data, err := os.ReadFile(d.abs(name))
			must(d.t, err)
			out[name] = string(data)
		}
	}
	walk(".")
	return out
}

func (d *desk) checkTree(want map[string]string) {
	d.t.Helper()
	if diff := cmp.Diff(want, d.tree()); diff != "" {
		d.t.Errorf("files (-want +got):\n%s", diff)
	}
}

// covers TOOL-13 partly
func TestPatchChangesSeveralFiles(t *testing.T) {
	d := open(t, map[string]string{"a.go": "package a\n\nvar x = 1\n", "dir/old.txt": "one\ntwo\n", "gone": "1\n2\n", "bin": "\x00\x01"})
	must(t, os.Chmod(d.abs("dir/old.txt"), 0o755))
	d.ok("read_file", args{"path": "gone"})
	r := d.call("apply_patch", wrap(`*** Update File: a.go
@@
-var x = 1
+var x = 2
+var y = 3
*** Add File: new/b.go
+package b
+
*** Update File: dir/old.txt
*** Move to: dir/new.txt
@@
 one
-two
*** Update File: bin
*** Move to: new/bin
*** Delete File: gone`))
	want := `Patched 5 files: +4 -4 lines.
Updated a.go: +2 -1 lines.
Added new/b.go: +2 -0 lines.
Moved dir/old.txt to dir/new.txt: +0 -1 lines.
Moved bin to new/bin: +0 -0 lines.
Deleted gone: +0 -2 lines.`
	if diff := cmp.Diff(want, r.Text()); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	d.checkTree(map[string]string{"a.go": "package a\n\nvar x = 2\nvar y = 3\n", "new/b.go": "package b\n\n", "dir/new.txt": "one\n", "new/bin": "\x00\x01"})
	if info, err := os.Stat(d.abs("dir/new.txt")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("mode of the moved file: %v, %v", info.Mode(), err)
	}
	var changed []string
	for _, c := range r.Output.Changed {
		changed = append(changed, fmt.Sprintf("%s %t %t", c.Rel, c.Before != nil, c.After != nil))
	}
	if diff := cmp.Diff([]string{
		"a.go true true", "new/b.go false true", "dir/old.txt true false", "dir/new.txt false true",
		"bin true false", "new/bin false true", "gone true false",
	}, changed); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

const twoFuncs = "func a() {\n\treturn 1\n}\n\nfunc b() {\n\treturn 1\n}\n"

// covers TOOL-13 partly
func TestPatchFindsTheOnePlaceOfAHunk(t *testing.T) {
	classes := "class A(Base):\n    def run(self):\n        pass\n\n    def stop(self):\n        pass\n\nclass B:\n    def run(self):\n        pass\n"
	for name, c := range map[string]struct {
		file, hunks, want string
		says              string
	}{
		"plain":               {"a\nb\nc\n", "@@\n a\n-b\n+B\n c", "a\nB\nc\n", "f: +1 -1 lines."},
		"without @@":          {"a\nb\n", "-b\n+c", "a\nc\n", ""},
		"several":             {"a\nb\nc\nd\ne\n", "@@\n-a\n+A\n@@\n c\n+x\n@@\n-e", "A\nb\nc\nx\nd\n", "+2 -2 lines"},
		"insert above":        {"a\nb\n", "@@\n+x\n a", "x\na\nb\n", ""},
		"only whole lines":    {"xa\na\nax\n", "@@\n-a\n+b", "xa\nb\nax\n", ""},
		"below the last hunk": {"x\nb\na\nb\n", "@@\n-a\n+A\n@@\n-b\n+B", "x\nb\nA\nB\n", ""},
		"context shared":      {"a\nb\nc\n", "@@\n-a\n+A\n b\n@@\n b\n-c\n+C", "A\nb\nC\n", ""},
		"anchor only":         {"a\nb\nx\nb\n", "@@\n x\n@@\n-b\n+B", "a\nb\nx\nB\n", ""},
		"head":                {twoFuncs, "@@ func b() {\n-\treturn 1\n+\treturn 2", strings.Replace(twoFuncs, "}\n\nfunc b() {\n\treturn 1", "}\n\nfunc b() {\n\treturn 2", 1), ""},
		"head, first block":   {twoFuncs, "@@ func a() {\n-\treturn 1\n+\treturn 2", strings.Replace(twoFuncs, "return 1", "return 2", 1), ""},
		"head's own bracket":  {twoFuncs, "@@ func a() {\n }\n+// after a", strings.Replace(twoFuncs, "}\n", "}\n// after a\n", 1), ""},
		"head repeated":       {twoFuncs, "@@ func a() {\n func a() {\n-\treturn 1\n+\treturn 2", strings.Replace(twoFuncs, "return 1", "return 2", 1), ""},
		"head twice":          {"f {\n\ta\n\tb\n\tc\n}\n", "@@ f {\n-\ta\n+\tA\n@@ f {\n-\tc\n+\tC", "f {\n\tA\n\tb\n\tC\n}\n", ""},
		"below the block":     {twoFuncs, "@@ func a() {\n \n func b() {\n-\treturn 1\n+\treturn 2", strings.TrimSuffix(twoFuncs, "1\n}\n") + "2\n}\n", "The hunk at line 3 of the patch is at line 4, below the block of its @@ line (lines 1-3)."},
		"below a heading":     {"# A\n\ntext\n\n# B\n\ntext\n", "@@ # B\n-text\n+TEXT", "# A\n\ntext\n\n# B\n\nTEXT\n", ""},
		"long head":           {"func a(\n\tx int,\n) error {\n\treturn x\n}\n\nvoid b()\n{\n\treturn x\n}\n\treturn x\n", "@@ func a(\n-\treturn x\n+\treturn y\n@@ void b()\n-\treturn x\n+\treturn z", "func a(\n\tx int,\n) error {\n\treturn y\n}\n\nvoid b()\n{\n\treturn z\n}\n\treturn x\n", ""},
		"head, @@ again":      {twoFuncs, "@@ func a() { @@\n-\treturn 1\n+\treturn 2", strings.Replace(twoFuncs, "return 1", "return 2", 1), ""},
		"two heads":           {classes, "@@ class B\n@@ def run(self):\n-        pass\n+        go()", strings.TrimSuffix(classes, "pass\n") + "go()\n", ""},
		"two heads, nested":   {classes, "@@ class A\n@@ def run(self):\n-        pass\n+        go()", strings.Replace(classes, "pass", "go()", 1), ""},
		"unified numbers":     {"a\nb\n", "@@ -1,2 +1,2 @@ func\n a\n-b\n+c", "a\nc\n", "line numbers of @@ lines were ignored"},
		"end of file":         {"b\na\nb\n", "@@\n-b\n+c\n*** End of File", "b\na\nc\n", ""},
		"append":              {"a\n", "@@\n+b\n*** End of File", "a\nb\n", "+1 -0"},
		"append without end":  {"a", "@@\n+b\n*** End of File", "a\nb", ""},
		"add the line end":    {"a", "@@\n a\n+\n*** End of File", "a\n", ""},
		"fill an empty file":  {"", "@@\n+a", "a\n", ""},
		"bare empty line":     {"a\n\nb\n", "@@\n a\n\n-b\n+c\n", "a\n\nc\n", ""},
		"empty line, no more": {"a\nb\n", "@@\n-a\n+A\n\n@@\n-b\n+B\n\n", "A\nB\n", ""},
		"like a mark":         {"*** x\n", "@@\n-*** x\n+*** End Patch", "*** End Patch\n", ""},
		"space at line end":   {"f() {  \n\tg()\t\n}\n", "@@\n f() {\n-\tg()\n+\th()", "f() {  \n\th()\n}\n", "line 3 of the patch matched except for space at line ends (line 1)"},
		"space in the patch":  {"a\nb\n", "@@\n a  \n-b\n+c", "a\nc\n", "except for space"},
		"exact before loose":  {"b \nb\n", "@@\n-b\n+c", "b \nc\n", ""},
		"blank line":          {"a\n\nb\n\n\nc\n", "@@\n b\n \n \n-c\n+C", "a\n\nb\n\n\nC\n", ""},
		"delete lines":        {"a\nb\nc\n", "@@\n-b", "a\nc\n", "+0 -1"},
		"no final line end":   {"a\nb", "@@\n-b\n+c", "a\nc", ""},
		"last of those gone":  {"a\nb", "@@\n a\n-b", "a", ""},
		"first of those gone": {"a\nb", "@@\n-a\n b", "b", ""},
		"BOM":                 {"\uFEFFa\nb\n", "@@\n-a\n+A", "\uFEFFA\nb\n", ""},
		"CRLF":                {"a\r\nb\r\nc\r\n", "@@\n-a\n+A\n+new\n b", "A\r\nnew\r\nb\r\nc\r\n", "+2 -1"},
		"CRLF append":         {"a\r\nb", "@@\n b\n+c\n+d", "a\r\nb\r\nc\r\nd", ""},
		"CRLF, last replaced": {"a\r\nb", "@@\n-b\n+c\n+d", "a\r\nc\r\nd", ""},
		"mixed keeps":         {"a\r\nb\nc\r\nd\n", "@@\n a\n b\n-c\n+C\n d", "a\r\nb\nC\nd\n", ""},
		"lone CR":             {"a\rb\nc\n", "@@\n-c\n+d", "a\rb\nd\n", ""},
		"CRLF and space":      {"a \r\nb\r\n", "@@\n a\n-b\n+B", "a \r\nB\r\n", "except for space"},
		"unicode":             {"größe\n漢😀\n", "@@\n-漢😀\n+漢", "größe\n漢\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t, map[string]string{"f": c.file})
			text := d.ok("apply_patch", wrap("*** Update File: f\n"+c.hunks), "Updated f: ", c.says)
			d.check("f", c.want)
			if c.says == "" && strings.Contains(text, "The hunk") {
				t.Errorf("says something: %s", text)
			}
		})
	}
}

// covers TOOL-13 partly
func TestHunkThatHasNoOnePlaceWritesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		hunks string
		code  tools.Code
		says  []string
	}{
		"ambiguous":            {"@@\n-\treturn 1", tools.Other, []string{"The hunk at line 3 of the patch is ambiguous: its lines are in the file 2 times, at lines 2, 6.", "@@ line"}},
		"absent":               {"@@\n func a() {\n-    return 1\n }", tools.NotFound, []string{"Nearest:\n1\tfunc a() {\n2\t\treturn 1\n3\t}", `First difference at line 2: the file has "\treturn 1", old has "    return 1"`}},
		"nothing near":         {"@@\n-zzzzzz", tools.NotFound, []string{"its old lines are not in the file. Nothing was written."}},
		"part of a line":       {"@@\n-func a()", tools.NotFound, []string{"not in the file"}},
		"above the last hunk":  {"@@\n-func b() {\n+func c() {\n@@\n-func a() {\n+func d() {", tools.NotFound, []string{"The hunk at line 6 of", "its lines are at line 1, not below line 5"}},
		"above the head":       {"@@ func b() {\n-func a() {\n+x", tools.NotFound, []string{"its lines are at line 1, not below its @@ line (line 5)"}},
		"not at the end":       {"@@\n-func b() {\n*** End of File", tools.NotFound, []string{"its lines are at line 5, not at the end of the file"}},
		"unknown head":         {"@@ func c() {\n-\treturn 1\n+\treturn 2", tools.NotFound, []string{"has an @@ line that is not in the file: \"func c() {\"", "Nearest:\n1\tfunc a() {"}},
		"head is part of word": {"@@ fun\n-\treturn 1\n+\treturn 2", tools.NotFound, []string{"@@ line that is not in the file"}},
		"order of heads":       {"@@ func b() {\n@@ func a() {\n-\treturn 1", tools.NotFound, []string{"@@ line that is not in the file"}},
		"place not known":      {"@@ func a() {\n+x", tools.BadArguments, []string{"has only + lines"}},
		"second of two":        {"@@\n-func a() {\n+func c() {\n@@\n-nope nope\n+x", tools.NotFound, []string{"The hunk at line 6"}},
		"blank lines, nearly":  {"@@\n-  \n+x", tools.NotFound, []string{"not in the file"}},
		"spaces, unsure":       {"@@\n-\treturn 1 \n }", tools.Other, []string{"ambiguous", "at lines 2, 6"}},
		"changes nothing":      {"@@\n func a() {", tools.BadArguments, []string{"changes nothing"}},
		"undoes itself":        {"@@\n-func a() {\n+func a() {", tools.BadArguments, []string{"changes nothing"}},
		"empties":              {"@@\n-" + strings.ReplaceAll(strings.TrimSuffix(twoFuncs, "\n"), "\n", "\n-"), tools.BadArguments, []string{"leave it empty", "Delete File"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t, map[string]string{"f": twoFuncs})
			d.ok("read_file", args{"path": "f"})
			d.bad(c.code, "apply_patch", wrap("*** Update File: f\n"+c.hunks), append(c.says, "Nothing was written.")...)
			d.check("f", twoFuncs)
		})
	}
}

// covers TOOL-13 partly
func TestPatchThatCannotBeReadSaysWhere(t *testing.T) {
	const begin, end = "*** Begin Patch\n", "\n*** End Patch"
	for name, c := range map[string]struct{ patch, says string }{
		"empty":              {" \n\n", "The patch is empty."},
		"no begin":           {"\n*** Update File: f\n@@\n-a" + end, `Line 2 of the patch is not "*** Begin Patch"`},
		"no end":             {begin + "*** Update File: f\n@@\n-a\n", `Line 4 of the patch is the last and not "*** End Patch": the patch may be cut.`},
		"text before":        {"Here it is:\n" + begin + "*** Delete File: f" + end, `Line 1 of the patch stands before "*** Begin Patch"`},
		"text after":         {begin + "*** Delete File: f" + end + "\n\nDone.", `Line 5 of the patch stands after "*** End Patch"`},
		"two patches":        {begin + "*** Delete File: f" + end + "\n" + begin + "*** Delete File: g" + end, "Line 4 of the patch stands after"},
		"fence and text":     {"```\nHere:\n" + begin + "*** Delete File: f" + end + "\n```", "Line 2 of the patch stands before"},
		"fence, then text":   {"```\n" + begin + "*** Delete File: f" + end + "\nDone.", "Line 5 of the patch stands after"},
		"fence after":        {begin + "*** Delete File: f" + end + "\n```", "Line 4 of the patch stands after"},
		"no file":            {begin + end, "has no file between"},
		"unified":            {begin + "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b" + end, `Line 2 of the patch is "--- a/f", where a file begins: "*** Add File: path"`},
		"unknown mark":       {begin + "*** Rename File: f" + end, "Line 2 of the patch is"},
		"mark in a hunk":     {begin + "*** Update File: f\n@@\n-a\n*** Copy to: g" + end, `Line 5 of the patch is "*** Copy to: g"`},
		"no name":            {begin + "*** Add File: \n+x" + end, "Line 2 of the patch names no file."},
		"no new name":        {begin + "*** Update File: f\n*** Move to:" + end, "Line 3 of the patch names no file."},
		"no hunk":            {begin + "*** Update File: f\n*** Delete File: g" + end, "Line 2 of the patch has no hunk after it."},
		"no hunk at the end": {begin + "*** Update File: f\n" + end, "Line 2 of the patch has no hunk after it."},
		"empty hunk":         {begin + "*** Update File: f\n@@ a\n@@\n\n*** Delete File: g" + end, "Line 3 of the patch begins a hunk without lines."},
		"prefix in a hunk":   {begin + "*** Update File: f\n@@\n a\n\tb\n+c" + end, `Line 5 of the patch begins with neither space, - nor +, as every line of a hunk does: "\tb".`},
		"prefix of a file":   {begin + "*** Add File: n\n+a\n\n+b" + end, "Line 4 of the patch does not begin with +"},
		"no @@":              {begin + "*** Update File: f\n@@\n+a\n*** End of File\n-b" + end, "Line 6 of the patch does not begin with @@"},
		"lines of a delete":  {begin + "*** Delete File: f\n-a" + end, `Line 3 of the patch is "-a"`},
		"CRLF":               {strings.ReplaceAll(begin+"*** Delete File: f"+end, "\n", "\r\n"), "Line 1 of the patch ends with CR LF."},
		"one CRLF":           {begin + "*** Update File: f\n@@\n-a\r\n+b" + end, "Line 4 of the patch ends with CR LF."},
		"NUL":                {begin + "*** Add File: n\n+\x00" + end, "Line 3 of the patch holds a NUL"},
		"many heads":         {begin + "*** Update File: f\n" + strings.Repeat("@@ a\n", 9) + "-a" + end, "more than 8 @@ lines"},
		"many files":         {begin + strings.Repeat("*** Add File: n\n", 201) + end, "Line 202 of the patch begins one file too many: the limit is 200."},
		"many hunks":         {begin + "*** Update File: f\n" + strings.Repeat("@@\n-a\n", 1001) + end, "begins one hunk too many: the limit is 1000."},
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t, map[string]string{"f": "a\n", "g": "b\n"})
			d.ok("read_file", args{"path": "f"})
			d.ok("read_file", args{"path": "g"})
			d.bad(tools.BadArguments, "apply_patch", args{"patch": c.patch}, c.says, "Nothing was written.")
			d.checkTree(map[string]string{"f": "a\n", "g": "b\n"})
		})
	}
	d := open(t, nil)
	d.bad(tools.TooLarge, "apply_patch", args{"patch": strings.Repeat("x", maxPatch+1)}, "the limit is 1048576")
}

func TestWrappingOfAPatchIsNamed(t *testing.T) {
	body := wrap("*** Add File: n\n+x")["patch"].(string)
	for _, c := range []struct{ patch, says string }{
		{"```diff\n" + body + "\n```\n", "The ``` fence around the patch was ignored."},
		{"apply_patch <<'EOF'\n" + body + "\nEOF", "The here-document around the patch was ignored."},
		{"<<PATCH\n\n" + body + "\n\nPATCH\n", "The here-document around the patch was ignored."},
		{"\n  \n" + strings.ReplaceAll(body, "\n", " \t\n") + "  \n\n", "Added n: +1 -0"},
	} {
		d := open(t, nil)
		d.ok("apply_patch", args{"patch": c.patch}, c.says)
	}
}

// covers TOOL-13 partly
func TestPatchRespectsWhatIsThere(t *testing.T) {
	const never = "never read\n"
	files := map[string]string{
		"read": "a\nb\n", "unread": never, "stale": "old\n", "bin": "\x00\n", "latin": "caf\xe9\n",
		"utf16": "\xff\xfea\x00\n\x00", "dirty": "a\n", "empty": "", ".git/config": "x\n", "dir/x": "y\n",
	}
	d := open(t, files)
	for _, name := range []string{"read", "stale", "latin"} {
		d.ok("read_file", args{"path": name})
	}
	must(t, os.WriteFile(d.abs("stale"), []byte("theirs\n"), 0o644))
	files["stale"] = "theirs\n"
	d.buffer("dirty", "unsaved\n")
	d.buffer("untold", "only in the editor\n")
	must(t, os.Symlink("read", d.abs("link")))
	files["link"] = files["read"]
	for body, c := range map[string]struct {
		code tools.Code
		says string
	}{
		"*** Add File: read\n+x":                                              {tools.Stale, "Add File read (line 2 of the patch): read exists already."},
		"*** Add File: dir\n+x":                                               {tools.Other, "dir is a folder"},
		"*** Add File: untold\n+x":                                            {tools.Stale, "untold has unsaved changes in the editor"},
		"*** Add File: read/x\n+x":                                            {tools.NotFound, "read is a file, not a folder"},
		"*** Add File: .git/hooks/x\n+x":                                      {tools.NotAllowed, "belongs to git itself"},
		"*** Add File: ../x\n+x":                                              {tools.OutsideRoot, "outside the workspace"},
		"*** Add File: n\n+x\n*** Add File: n/x\n+x":                          {tools.Other, "Nothing was written."},
		"*** Update File: nope\n@@\n-a":                                       {tools.NotFound, "Update File nope (line 2 of the patch): nope does not exist."},
		"*** Update File: unread\n@@\n-a":                                     {tools.NotFound, "Read the file first."},
		"*** Update File: stale\n@@\n-old":                                    {tools.Stale, "stale has changed since you read it. The hunk at line 3 of the patch does not match: its old lines are not in the file."},
		"*** Update File: bin\n@@\n-a":                                        {tools.NotAllowed, "bin is binary"},
		"*** Update File: latin\n@@\n-a":                                      {tools.NotAllowed, "latin is not UTF-8"},
		"*** Update File: utf16\n@@\n-a":                                      {tools.NotAllowed, "utf16 is UTF-16"},
		"*** Update File: dirty\n@@\n-a\n+b":                                  {tools.Stale, "dirty has unsaved changes in the editor"},
		"*** Update File: read\n*** Move to: stale":                           {tools.Stale, "read cannot be moved to stale, which exists already"},
		"*** Update File: read\n*** Move to: read":                            {tools.BadArguments, "read would be moved to itself"},
		"*** Update File: read\n*** Move to: link":                            {tools.BadArguments, "read would be moved to itself"},
		"*** Update File: read\n*** Move to: .git/x":                          {tools.NotAllowed, "belongs to git itself"},
		"*** Update File: dirty\n*** Move to: n":                              {tools.Stale, "unsaved"},
		"*** Update File: link\n*** Move to: n":                               {tools.NotAllowed, "link is a link to read; this tool does not move links"},
		"*** Update File: nope\n*** Move to: n":                               {tools.NotFound, "nope does not exist"},
		"*** Delete File: link":                                               {tools.NotAllowed, "link is a link to read; this tool does not delete links"},
		"*** Delete File: unread":                                             {tools.Stale, "You have not read unread."},
		"*** Delete File: stale":                                              {tools.Stale, "stale has changed since you read it. Nothing was written. What changed (+1 -1 lines):\n"},
		"*** Delete File: dirty":                                              {tools.Stale, "unsaved"},
		"*** Delete File: bin":                                                {tools.NotAllowed, "bin is binary and cannot be read before it is deleted"},
		"*** Delete File: nope":                                               {tools.NotFound, "nope does not exist"},
		"*** Delete File: dir":                                                {tools.Other, "dir is a folder"},
		"*** Delete File: read\n*** Delete File: read":                        {tools.BadArguments, "(line 3 of the patch): read has been deleted or moved away above in the patch"},
		"*** Update File: unread\n*** Move to: n\n*** Delete File: n":         {tools.Stale, "You have not read unread."},
		"*** Update File: unread\n@@\n-never read\n+x\n*** Delete File: link": {tools.NotAllowed, "link"},
		"*** Add File: n\n+x\n*** Delete File: n":                             {tools.BadArguments, "changes nothing"},
	} {
		d.bad(c.code, "apply_patch", wrap(body), c.says, "Nothing was written")
	}
	d.checkTree(files)

	d.ok("apply_patch", wrap("*** Update File: link\n@@\n-a\n+A\n*** Delete File: empty\n*** Delete File: latin\n*** Update File: stale\n@@\n-theirs\n+ours"),
		"Patched 4 files", "Updated read: +1 -1", "Deleted empty: +0 -0", "Deleted latin: +0 -1", "Updated stale: +1 -1 lines. The file had changed since you read it")
	d.check("read", "A\nb\n")
	d.check("link", "A\nb\n")
}

// covers TOOL-13 partly
func TestSectionsOfAPatchApplyInOrder(t *testing.T) {
	for name, c := range map[string]struct {
		body, says string
		want       map[string]string
	}{
		"twice":           {"*** Update File: a\n@@\n-1\n+one\n*** Update File: ./a\n@@\n one\n-2\n+two", "Updated a: +2 -2", map[string]string{"a": "one\ntwo\n", "b": "x\r\ny\r\n"}},
		"written anew":    {"*** Delete File: a\n*** Add File: a\n+new", "Updated a: +1 -2", map[string]string{"a": "new\n", "b": "x\r\ny\r\n"}},
		"anew, as it was": {"*** Delete File: b\n*** Add File: b\n+1\n+2", "CRLF line ends were kept", map[string]string{"a": "1\n2\n", "b": "1\r\n2\r\n"}},
		"change places":   {"*** Update File: a\n*** Move to: t\n*** Update File: b\n*** Move to: a\n*** Update File: t\n*** Move to: b", "Patched 2 files: +0 -0 lines.\nMoved b to a: +0 -0 lines.\nMoved a to b", map[string]string{"b": "1\n2\n", "a": "x\r\ny\r\n"}},
		"added, changed":  {"*** Add File: n\n+x\n*** Update File: n\n*** Move to: m\n@@\n-x\n+y", "Added m: +2 -1", map[string]string{"a": "1\n2\n", "b": "x\r\ny\r\n", "m": "y\n"}},
		"moved, deleted":  {"*** Update File: a\n*** Move to: n\n*** Delete File: n", "Patched 1 file: +0 -2 lines.\nDeleted a: +0 -2", map[string]string{"b": "x\r\ny\r\n"}},
		"moved, replaced": {"*** Update File: a\n*** Move to: n\n*** Add File: a\n+3", "Updated a: +1 -0 lines.\nMoved a to n: +0 -0", map[string]string{"a": "3\n", "b": "x\r\ny\r\n", "n": "1\n2\n"}},
		"one stays":       {"*** Update File: a\n@@\n-1\n+2\n 2\n*** Update File: a\n@@\n-2\n+1\n 2\n*** Update File: b\n@@\n-x\n+z", "Unchanged a", map[string]string{"a": "1\n2\n", "b": "z\r\ny\r\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t, map[string]string{"a": "1\n2\n", "b": "x\r\ny\r\n"})
			d.ok("read_file", args{"path": "a"})
			d.ok("read_file", args{"path": "b"})
			d.ok("apply_patch", wrap(c.body), c.says)
			d.checkTree(c.want)
		})
	}
	d := open(t, map[string]string{"a": "1\n2\n", "xs": "x\nx\nx\n"})
	d.bad(tools.Other, "apply_patch", wrap("*** Update File: xs\n@@\n x\n-x"), "2 times, at lines 1, 2")
	d.bad(tools.NotFound, "apply_patch", wrap("*** Update File: a\n@@\n-1\n+one\n*** Update File: a\n@@\n-1\n+uno"), "after the changes above it in the patch")
	d.check("a", "1\n2\n")
}

// covers TOOL-13 partly
func TestPatchOverTwentyFilesIsAllOrNothing(t *testing.T) {
	files := map[string]string{}
	var body strings.Builder
	for i := range 20 {
		name := fmt.Sprintf("dir%d/f%02d", i%3, i)
		files[name] = fmt.Sprintf("line %d\nend\n", i)
		switch i % 4 {
		case 0:
			fmt.Fprintf(&body, "*** Update File: %s\n*** Move to: %s.moved\n@@\n-line %d\n+LINE\n", name, name, i)
		case 1:
			fmt.Fprintf(&body, "*** Delete File: %s\n*** Add File: new/%s\n+x\n", name, name)
		default:
			fmt.Fprintf(&body, "*** Update File: %s\n@@\n-line %d\n+LINE\n", name, i)
		}
	}
	d := open(t, files)
	for name := range files {
		d.ok("read_file", args{"path": name})
	}
	for last, code := range map[string]tools.Code{
		"*** Update File: dir1/f19\n@@\n-nope":      tools.NotFound, // in the plan
		"*** Update File: dir0/f18\n@@\n-end":       tools.NotAllowed,
		"*** Add File: .git/x\n+x":                  tools.NotAllowed,   // before anything is staged
		"*** Add File: dir0\n+x":                    tools.Other,        // a folder
		"*** Add File: " + strings.Repeat("n", 300): tools.BadArguments, // a name that cannot be
		"*** Add File: new/dir1/f01/x\n+x":          tools.Other,        // in a folder that is a file by then
	} {
		if code == tools.NotAllowed {
			must(t, os.Chmod(d.abs("dir0/f18"), 0o444))
		}
		d.bad(code, "apply_patch", wrap(body.String()+last), "Nothing was written.")
		must(t, os.Chmod(d.abs("dir0/f18"), 0o644))
		d.checkTree(files)
		if _, err := os.Stat(d.abs("new")); err == nil {
			t.Errorf("%s: a new folder is left", last)
		}
	}
	d.ok("apply_patch", wrap(strings.TrimSuffix(body.String(), "\n")), "Patched 25 files: +20 -25 lines.")
	if n := len(d.tree()); n != 20 {
		t.Errorf("%d files", n)
	}
}

func TestPatchHoldsABoundedSizeOfFiles(t *testing.T) {
	d := open(t, nil)
	var body strings.Builder
	for i := range 9 {
		name := fmt.Sprintf("f%d", i)
		must(t, os.WriteFile(d.abs(name), nil, 0o644))
		must(t, os.Truncate(d.abs(name), 8<<20))
		fmt.Fprintf(&body, "*** Update File: %s\n*** Move to: %s.moved\n", name, name)
	}
	d.bad(tools.TooLarge, "apply_patch", wrap(body.String()), "Update File f8", "more than 67108864 bytes together", "Nothing was written.")
}
