package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// event is one line of `go test -json` (go doc test2json).
type event struct {
	Action, Package, Test, Output, ImportPath, FailedBuild string
}

type report struct {
	w       io.Writer
	output  map[string]*strings.Builder // by package and test, while undecided
	builds  map[string]*strings.Builder // by import path: the compiler's words
	open    map[string]bool             // packages that began and have not ended
	passed  int
	failed  int      // tests
	broken  []string // packages
	skipped []string
}

func newReport(w io.Writer) *report {
	return &report{
		w: w, output: map[string]*strings.Builder{}, builds: map[string]*strings.Builder{},
		open: map[string]bool{},
	}
}

// line takes one line; what is not an event is passed on as it is.
func (r *report) line(line []byte) {
	var e event
	if json.Unmarshal(line, &e) != nil || e.Action == "" {
		_, _ = r.w.Write(line)
		return
	}
	key := e.Package + " " + e.Test
	switch e.Action {
	case "start":
		r.open[e.Package] = true
	case "output":
		if e.Test == "" && summary(e.Output) {
			if !strings.HasPrefix(e.Output, "?") {
				fmt.Fprint(r.w, e.Output)
			}
			return
		}
		add(r.output, key, e.Output)
	case "build-output":
		add(r.builds, e.ImportPath, e.Output)
	case "build-fail":
		r.print(r.builds, e.ImportPath)
	case "pass", "fail", "skip":
		r.decide(e, key)
	}
}

func (r *report) decide(e event, key string) {
	if e.Test == "" {
		delete(r.open, e.Package)
		if e.Action == "fail" {
			r.broken = append(r.broken, e.Package)
			// What a crash left: tests that never ended, and the package's own words.
			for _, k := range r.pending(e.Package) {
				r.print(r.output, k)
			}
		}
	} else {
		switch e.Action {
		case "pass":
			r.passed++
		case "fail":
			r.failed++
			r.print(r.output, key)
		case "skip":
			r.skipped = append(r.skipped, key+"\n"+text(r.output, key))
		}
	}
	delete(r.output, key)
}

func (r *report) pending(pkg string) []string {
	var keys []string
	for k := range r.output {
		if strings.HasPrefix(k, pkg+" ") {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

// end prints the sums and reports whether everything is as it should be.
func (r *report) end() bool {
	for p := range r.open {
		r.broken = append(r.broken, p+" (never ended)")
	}
	slices.Sort(r.broken)
	for _, s := range r.skipped {
		fmt.Fprintf(r.w, "SKIP\t%s", s)
	}
	for _, p := range r.broken {
		fmt.Fprintf(r.w, "failed: %s\n", p)
	}
	if len(r.skipped) > 0 {
		fmt.Fprintln(r.w, "A skipped test proves nothing, so it counts as a failure here.")
	}
	if r.passed+r.failed == 0 {
		fmt.Fprintln(r.w, "No test ran.")
	}
	fmt.Fprintf(r.w, "%d passed, %d failed, %d skipped\n", r.passed, r.failed, len(r.skipped))
	return r.passed > 0 && r.failed == 0 && len(r.broken) == 0 && len(r.skipped) == 0
}

func (r *report) print(from map[string]*strings.Builder, key string) {
	fmt.Fprint(r.w, text(from, key))
	delete(from, key)
}

// summary recognises the line with which go test closes a package.
func summary(s string) bool {
	return strings.HasPrefix(s, "ok  \t") || strings.HasPrefix(s, "FAIL\t") || strings.HasPrefix(s, "?   \t")
}

func add(m map[string]*strings.Builder, key, s string) {
	b := m[key]
	if b == nil {
		b = new(strings.Builder)
		m[key] = b
	}
	b.WriteString(s)
}

func text(m map[string]*strings.Builder, key string) string {
	if b := m[key]; b != nil {
		return b.String()
	}
	return ""
}
