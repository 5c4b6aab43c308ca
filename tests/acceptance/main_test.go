package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const table = "AB-1 one\nAB-2 two\n# note\n\nAB-3 three\nAB-4 four\nAB-5 five\nAB-6 six\nAB-7 seven\n"

// project writes files and returns the folder.
func project(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func event(action, pkg, test string) string {
	return `{"Action":"` + action + `","Package":"` + module + pkg + `","Test":"` + test + `"}` + "\n"
}

// marks are a project's tests, with a mark of each kind.
var marked = map[string]string{
	"a/a_test.go": `package a

import "testing"

// TestOne is fine.
//
// covers AB-1
// covers AB-2 partly
func TestOne(t *testing.T) {
	_ = "// covers AB-9"
}

// covers AB-3
func TestTwo(t *testing.T) {}

// This covers everything, and covers AB-9 in prose.
// covers AB-1 partly
func TestThree(t *testing.T) {}

// covers AB-4
func TestGone(t *testing.T) {}
`,
	"s/testdata/cut.txtar":   "# covers AB-5\nx\n",
	"e/chat_spec.lua":        "-- covers AB-6 partly\n  -- covers AB-5\n",
	"node_modules/x_test.go": "not Go, covers AB-1",
	".cache/y_test.go":       "// covers AB-77",
}

func TestTableTellsHowEachScenarioStands(t *testing.T) {
	root := project(t, marked)
	ran := filepath.Join(root, "test.json")
	check := func(name, events string, code int, want ...string) {
		t.Helper()
		if err := os.WriteFile(ran, []byte(events), 0o644); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		got, err := run(&out, table, root, ran, false)
		if err != nil || got != code {
			t.Errorf("%s: code %d, error %v; want %d", name, got, err, code)
		}
		if d := cmp.Diff(want, strings.Split(strings.TrimSpace(out.String()), "\n")); d != "" {
			t.Errorf("%s (-want +got)\n%s", name, d)
		}
	}
	good := "FAIL: not an event\n" + event("pass", "a", "TestOne") + event("pass", "a", "TestTwo") + event("pass", "a", "TestThree") + event("pass", "a", "TestGone") +
		event("run", "s", "TestScripts/cut") + event("pass", "s", "TestScripts/cut") + event("pass", "e", "TestNeovim/0.7/chat_spec")
	check("all pass", good, 0,
		"AB-1 covered a.TestOne a.TestThree", "AB-2 partly a.TestOne", "AB-3 covered a.TestTwo", "AB-4 covered a.TestGone",
		"AB-5 covered chat_spec cut", "AB-6 partly chat_spec", "AB-7 missing", "4 covered, 2 partly, 0 failing, 1 missing of 7")
	check("a failure, a skip, one that did not run", event("pass", "a", "TestOne")+event("pass", "a", "TestThree")+
		event("fail", "a", "TestTwo")+event("pass", "a", "TestTwo")+event("skip", "e", "TestNeovim/chat_spec")+event("pass", "s", "TestScripts/cut"), 1,
		"AB-1 covered a.TestOne a.TestThree", "AB-2 partly a.TestOne", "AB-3 failing a.TestTwo (failed)", "AB-4 failing a.TestGone (did not run)",
		"AB-5 failing chat_spec (skipped) cut", "AB-6 failing chat_spec (skipped)", "AB-7 missing", "1 covered, 1 partly, 4 failing, 1 missing of 7")
}

func TestListShowsMarksWithoutResults(t *testing.T) {
	var out bytes.Buffer
	code, err := run(&out, table, project(t, marked), "nowhere", true)
	want := "AB-1 a.TestOne a.TestThree (partly)\nAB-2 a.TestOne (partly)\nAB-3 a.TestTwo\nAB-4 a.TestGone\n" +
		"AB-5 chat_spec cut\nAB-6 chat_spec (partly)\nAB-7\n6 marked of 7\n"
	if d := cmp.Diff(want, out.String()); d != "" || code != 0 || err != nil {
		t.Errorf("code %d, error %v (-want +got)\n%s", code, err, d)
	}
}

func TestMistakesAreNamed(t *testing.T) {
	check := func(name string, files map[string]string, text, results, want string) {
		t.Helper()
		root := project(t, files)
		var out bytes.Buffer
		code, err := run(&out, text, root, filepath.Join(root, results), false)
		if code != 2 || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: code %d, error %v; want 2 and %q", name, code, err, want)
		}
	}
	test := func(comment string) map[string]string {
		return map[string]string{"a/a_test.go": "package a\n\n" + comment + "\nfunc TestX(t *testing.T) {}\n"}
	}
	check("unknown id", test("// covers AB-9"), table, "", "a/a_test.go:3:1 covers AB-9, and there is no such scenario")
	check("malformed id", test("// covers AB-x"), table, "", "no such scenario")
	check("unknown word", test("// covers AB-1 mostly"), table, "", `the word partly, not "mostly"`)
	check("not above a test", test("// covers AB-1\n"), table, "", "not in the comment right above a test function")
	check("above something else", map[string]string{"a_test.go": "package a\n\n// covers AB-1\nfunc helper() {}\n"}, table, "", "not in the comment right above")
	check("unknown id in Lua", map[string]string{"a.lua": "\n-- covers AB-9\n"}, table, "", "a.lua:2 covers AB-9")
	check("no results", test("// fine"), table, "none.json", "Run make test first")
	check("empty results", map[string]string{"r.json": "{}\n"}, table, "r.json", "no test that ended")
	check("scenario twice", nil, "AB-1 x\nAB-1 y", "", "scenarios.txt:2")
	check("scenario without title", nil, "AB-1", "", "scenarios.txt:1")
}

func TestScenariosAreNumberedWithoutAGap(t *testing.T) {
	all, err := readScenarios(scenarios)
	if err != nil {
		t.Fatal(err)
	}
	last := map[string]int{}
	for _, s := range all {
		area, num, _ := strings.Cut(s.id, "-")
		last[area]++
		if got := strings.TrimLeft(num, "0"); got != strconv.Itoa(last[area]) {
			t.Errorf("%s stands where %s-%d is due", s.id, area, last[area])
		}
	}
	want := map[string]int{
		"TOOL": 14, "CONV": 9, "MODE": 5, "PLAN": 7, "PMOD": 9, "RES": 6, "JEV": 8, "SUB": 11,
		"COMP": 7, "IMG": 7, "PROV": 18, "MOD": 6, "ASG": 6, "MCP": 5, "ED": 8,
	}
	if d := cmp.Diff(want, last); d != "" {
		t.Errorf("areas (-want +got)\n%s", d)
	}
	if _, err := readMarks("../..", all); err != nil {
		t.Errorf("the project's own marks: %v", err)
	}
}
