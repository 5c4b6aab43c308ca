package arch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const table = `
# a comment
low:
high: low
main: *
tests/...: *
@ example.com/lib: low
@ example.com/lib/sub: high
! sleep: main tests/...
`

func TestTableForbidsWhatItDoesNotAllow(t *testing.T) {
	tab, err := ReadTable(strings.NewReader(table))
	if err != nil {
		t.Fatal(err)
	}
	check := func(pkg, imp string, want ...string) {
		t.Helper()
		if d := cmp.Diff(want, tab.Imports(pkg, []string{strings.Replace(imp, "~", module, 1)})); d != "" {
			t.Errorf("%s imports %s (-want +got)\n%s", pkg, imp, d)
		}
	}
	check("high", "~/low")
	check("low", "~/high", "low must not import high: layers.txt allows it nothing")
	check("high", "~/main", "high must not import main: layers.txt allows it low")
	check("main", "~/low")
	check("main", "~/tests/x", "main must not import tests/x: layers.txt allows it *")
	check("tests/x", "~/low")
	check("low", "fmt")
	check("low", "example.com/lib/part")
	check("high", "example.com/lib/sub/part")
	check("high", "example.com/lib/part", "high must not import example.com/lib/part: it belongs to low")
	check("low", "example.com/library", "low imports example.com/library, which has no owner: add an @ line to layers.txt")
	check("new", "fmt", "new is not in layers.txt: add a line that says what it may import")
	want := []string{
		"layers.txt excuses from sleep, and there is no such rule",
		"layers.txt has a line for high, and there is no such package",
		"layers.txt has a line for main, and there is no such package",
		"layers.txt has a line for tests/..., and there is no such package",
	}
	if d := cmp.Diff(want, tab.Stale([]string{"low"}, nil)); d != "" {
		t.Errorf("stale (-want +got)\n%s", d)
	}
}

func TestTableWithAMistakeIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"low":            "line 1 is not NAME: PACKAGE...: low",
		"low:\nlow: low": "line 2: low stands twice",
		": low":          "line 1 is not NAME: PACKAGE...: : low",
		"a b: c":         "line 1 is not NAME: PACKAGE...: a b: c",
	} {
		if _, err := ReadTable(strings.NewReader(text)); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

func TestRulesFindWhatTheyForbid(t *testing.T) {
	tab, err := ReadTable(strings.NewReader("! sleep: cmd/x"))
	if err != nil {
		t.Fatal(err)
	}
	check := func(pkg, text string, rules ...string) {
		t.Helper()
		s := source(t, pkg, "a.go", "package p\n"+text)
		var want []string
		for _, r := range rules {
			for _, rule := range Rules() {
				if rule.Name == r {
					want = append(want, fmt.Sprintf("%s/a.go:%d %s (rule %s)", pkg, strings.Count(text, "\n")+2, rule.Why, r))
				}
			}
		}
		if d := cmp.Diff(want, Check(tab, s)); d != "" {
			t.Errorf("%s (-want +got)\n%s", text, d)
		}
	}
	check("p", `import "fmt"; var _ = fmt.Println`, "output")
	check("p", `import "fmt"; var _ = fmt.Sprint`)
	check("p", `import f "fmt"; func g() { f.Printf("") }`, "output")
	check("p", `import "os"; var w = os.Stdout`, "output")
	check("p", `import "os"; var w = os.Stderr`, "output")
	check("p", `import "log"; func g() { log.Fatalf("") }`, "output")
	check("p", `func g() { println("") }`, "output")
	check("p", `type t struct{ Stdout int }; func g(os t) int { return os.Stdout }`)
	check("p", `import "os"; var w = os.Getenv("HOME")`, "environment")
	check("p", `import "os"; func g() { os.Exit(1) }`, "environment")
	check("p", `import "os/signal"; func g() { signal.Notify(nil) }`, "signals")
	check("p", `import "context"; var c = context.Background()`, "background")
	check("p", `import "context"; var c = context.TODO()`, "background")
	check("p", `import "context"; func g(c context.Context) { context.WithoutCancel(c) }`)
	check("p", `import "time"; func g() { time.Sleep(1) }`, "sleep")
	check("cmd/x", `import "time"; func g() { time.Sleep(1) }`)
	check("p", `import "os/exec"; var c = exec.Command("ls")`, "process")
	check("p", `import "os/exec"; var c = &exec.Cmd{}`, "process")
	check("p", `import "os/exec"; var c, _ = exec.LookPath("ls")`)
	check("p", `import "os"; var e = os.Rename("a", "b")`, "rename")
	check("p", `import "os"; func g(r *os.Root) { r.Rename("a", "b") }`, "rename")
	check("p", `import "durable"; func g() { durable.Rename("a", "b") }`)
	check("p", `func g() { go g() }`, "goroutine")
	check("p", `import "sync"; func g(w *sync.WaitGroup) { w.Go(func() {}) }`)
	check("p", `import "go.uber.org/zap"; var l = zap.L()`, "global")
	check("p", `func init() {}`, "init")
	check("p", `type t int; func (t) init() {}`)
	check("lsp/wire", "type t struct { X int `json:\"x,omitempty\"` }", "omitempty")
	check("lsp/wire", "type t struct { X int `json:\"x,omitzero\"` }")
	check("p", "type t struct { X int `json:\"x,omitempty\"` }")
}

func TestPromisesInCommentsAreFound(t *testing.T) {
	for _, comment := range []string{"// TO" + "DO: later", "/* FIX" + "ME */", "// enough for n" + "ow"} {
		s := source(t, "p", "a.go", "package p\n\n"+comment+"\nvar x int\n")
		if got := promises(s); len(got) != 1 {
			t.Errorf("%s: found %d", comment, len(got))
		}
	}
	if got := promises(source(t, "p", "a.go", "package p\n// A todo list for nowhere.\nvar x int\n")); len(got) != 0 {
		t.Errorf("found a promise where there is none")
	}
}

func TestLongFilesAreFound(t *testing.T) {
	tab := &Table{}
	long := source(t, "p", "a.go", "package p\n"+strings.Repeat("\n", MaxLines))
	if got := Check(tab, long); len(got) != 1 || !strings.Contains(got[0], "p/a.go has 501 lines") {
		t.Errorf("a long file: %q", got)
	}
	generated := source(t, "p", "a.go", "// Code generated by hand. DO NOT EDIT.\n\npackage p\n"+strings.Repeat("\n", MaxLines))
	if got := Check(tab, generated); got != nil {
		t.Errorf("a generated file: %q", got)
	}
	text := []byte(strings.Repeat("\n", MaxLines+1))
	for name, want := range map[string]int{"a.lua": 1, "b.ts": 1, "b.gen.ts": 0, "b_spec.lua": 0, "x/testdata/b.lua": 0, "a.txt": 0} {
		if got := TooLong(name, text); len(got) != want {
			t.Errorf("%s: %q, want %d", name, got, want)
		}
	}
}

func TestTextOfThisMachineIsFound(t *testing.T) {
	hosts := Hosts("https://user:pw@mirror.corp.example:8443/go,https://proxy.golang.org,direct", "sum.golang.org", "off")
	if d := cmp.Diff([]string{"mirror.corp.example"}, hosts); d != "" {
		t.Errorf("hosts (-want +got)\n%s", d)
	}
	check := func(text string, want ...string) {
		t.Helper()
		if d := cmp.Diff(want, Text("a.md", []byte("fine\n"+text), hosts)); d != "" {
			t.Errorf("%q (-want +got)\n%s", text, d)
		}
	}
	check("see /wo"+"rk/main", `a.md:2 names a path of this machine, "/wo`+`rk/m"`)
	check("cd /ro"+"ot/.cache", `a.md:2 names a path of this machine, "/ro`+`ot/."`)
	check("network/work/x and ./root/y and the /root", []string(nil)...)
	check("from https://mirror.corp.example/go", "a.md:2 names a package registry of this machine")
	check("\x00 /wo"+"rk/main", []string(nil)...)
}

func TestPackageCommentIsRequired(t *testing.T) {
	if documents(source(t, "p", "a.go", "//go:build linux\n\npackage p\n").File) {
		t.Error("a build constraint passes for a package comment")
	}
	if !documents(source(t, "p", "a.go", "// Package p is good.\npackage p\n").File) {
		t.Error("a package comment is not seen")
	}
}
