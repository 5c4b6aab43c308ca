package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// check feeds events to run and compares what it prints.
func check(t *testing.T, in, want string, wantOK bool) {
	t.Helper()
	var b strings.Builder
	file := filepath.Join(t.TempDir(), "out", "test.json")
	ok, err := run(strings.NewReader(in), &b, file)
	if err != nil {
		t.Fatal(err)
	}
	if ok != wantOK {
		t.Errorf("ok = %v, want %v", ok, wantOK)
	}
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("output (-want +got):\n%s", d)
	}
	kept, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(in, string(kept)); d != "" {
		t.Errorf("kept events (-want +got):\n%s", d)
	}
}

func TestAPassingRunIsOneLineAPackage(t *testing.T) {
	check(t, `{"Action":"start","Package":"m/a"}
{"Action":"run","Package":"m/a","Test":"TestX"}
{"Action":"output","Package":"m/a","Test":"TestX","Output":"=== RUN   TestX\n"}
{"Action":"pass","Package":"m/a","Test":"TestX"}
{"Action":"output","Package":"m/a","Output":"PASS\n"}
{"Action":"output","Package":"m/a","Output":"ok  \tm/a\t0.1s\n"}
{"Action":"pass","Package":"m/a"}
{"Action":"start","Package":"m/b"}
{"Action":"output","Package":"m/b","Output":"?   \tm/b\t[no test files]\n"}
{"Action":"skip","Package":"m/b"}
`, "ok  \tm/a\t0.1s\n1 passed, 0 failed, 0 skipped\n", true)
}

func TestAFailedTestIsPrintedWhole(t *testing.T) {
	check(t, `{"Action":"start","Package":"m/a"}
{"Action":"output","Package":"m/a","Test":"TestX","Output":"    x_test.go:1: bad\n"}
{"Action":"output","Package":"m/a","Test":"TestY","Output":"fine\n"}
{"Action":"pass","Package":"m/a","Test":"TestY"}
{"Action":"fail","Package":"m/a","Test":"TestX"}
{"Action":"output","Package":"m/a","Output":"FAIL\tm/a\t0.1s\n"}
{"Action":"fail","Package":"m/a"}
`, "    x_test.go:1: bad\nFAIL\tm/a\t0.1s\nfailed: m/a\n1 passed, 1 failed, 0 skipped\n", false)
}

func TestABrokenBuildShowsTheCompiler(t *testing.T) {
	check(t, `{"ImportPath":"m/a","Action":"build-output","Output":"a.go:1:1: no\n"}
{"ImportPath":"m/a","Action":"build-fail"}
{"Action":"start","Package":"m/a"}
{"Action":"output","Package":"m/a","Output":"FAIL\tm/a [build failed]\n"}
{"Action":"fail","Package":"m/a","FailedBuild":"m/a"}
{"Action":"start","Package":"m/b"}
{"Action":"pass","Package":"m/b","Test":"TestZ"}
{"Action":"pass","Package":"m/b"}
`, "a.go:1:1: no\nFAIL\tm/a [build failed]\nfailed: m/a\n1 passed, 0 failed, 0 skipped\n", false)
}

func TestACrashShowsWhatTheTestsHadPrinted(t *testing.T) {
	check(t, `{"Action":"start","Package":"m/a"}
{"Action":"run","Package":"m/a","Test":"TestX"}
{"Action":"output","Package":"m/a","Test":"TestX","Output":"panic: boom\n"}
{"Action":"output","Package":"m/a","Output":"exit status 2\n"}
{"Action":"output","Package":"m/a","Output":"FAIL\tm/a\t0.1s\n"}
{"Action":"fail","Package":"m/a"}
`, "FAIL\tm/a\t0.1s\nexit status 2\npanic: boom\nfailed: m/a\nNo test ran.\n0 passed, 0 failed, 0 skipped\n", false)
}

func TestASkippedTestFailsTheRun(t *testing.T) {
	check(t, `{"Action":"start","Package":"m/a"}
{"Action":"output","Package":"m/a","Test":"TestX","Output":"    x_test.go:1: no tool\n"}
{"Action":"skip","Package":"m/a","Test":"TestX"}
{"Action":"pass","Package":"m/a","Test":"TestY"}
{"Action":"pass","Package":"m/a"}
`, "SKIP\tm/a TestX\n    x_test.go:1: no tool\n"+
		"A skipped test proves nothing, so it counts as a failure here.\n1 passed, 0 failed, 1 skipped\n", false)
}

func TestATornStreamFailsTheRun(t *testing.T) {
	check(t, `{"Action":"start","Package":"m/a"}
{"Action":"pass","Package":"m/a","Test":"TestX"}
`, "failed: m/a (never ended)\n1 passed, 0 failed, 0 skipped\n", false)
}

func TestNothingRunFailsTheRun(t *testing.T) {
	check(t, "go: no such thing\n", "go: no such thing\nNo test ran.\n0 passed, 0 failed, 0 skipped\n", false)
}
