// Command acceptance prints which scenarios of scenarios.txt are covered by a
// test that passed in the last `make test`: one line per id,
//
//	TOOL-3 covered|partly|failing|missing TESTS
//
// and a last line with the counts. A scenario is covered when a test that covers
// it passed and none that has to do with it failed; partly when the tests that
// passed look at parts of it only; failing when one failed or did not run.
// With --list it prints the marks alone and needs no results.
//
// The exit code is 1 when a scenario fails, 2 when a mark or the results cannot
// be read.
package main

import (
	_ "embed" // the scenarios
	"flag"
	"fmt"
	"io"
	"os"
)

//go:embed scenarios.txt
var scenarios string

func main() {
	list := flag.Bool("list", false, "print the marks of the tests; no results are needed")
	root := flag.String("root", ".", "the project's folder")
	out := flag.String("results", "tests/out/test.json", "output of go test -json")
	flag.Parse()
	code, err := run(os.Stdout, scenarios, *root, *out, *list)
	if err != nil {
		fmt.Fprintln(os.Stderr, "acceptance:", err)
	}
	os.Exit(code)
}

// run prints the table and returns the exit code.
func run(w io.Writer, text, root, results string, list bool) (int, error) {
	table, err := readScenarios(text)
	if err != nil {
		return 2, err
	}
	marks, err := readMarks(root, table)
	if err != nil {
		return 2, err
	}
	if list {
		return 0, printMarks(w, table, marks)
	}
	f, err := os.Open(results)
	if err != nil {
		return 2, fmt.Errorf("there are no results of a test run: %w\nRun make test first, or use --list", err)
	}
	defer f.Close()
	ran, err := readResults(f)
	if err != nil {
		return 2, fmt.Errorf("%s: %w", results, err)
	}
	failing, err := printTable(w, table, marks, ran)
	switch {
	case err != nil:
		return 2, err
	case failing > 0:
		return 1, nil
	}
	return 0, nil
}
