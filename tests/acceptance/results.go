package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

const module = "github.com/lakecode/lakecode/"

// results says how each test ended: "pass", "fail" or "skip", by package folder
// and name.
type results map[[2]string]string

// readResults reads the events of go test -json. Lines that are none, such as
// the compiler's, are passed over.
func readResults(r io.Reader) (results, error) {
	out := results{}
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		var e struct{ Action, Package, Test string }
		if json.Unmarshal(line, &e) == nil && e.Test != "" {
			key := [2]string{strings.TrimPrefix(e.Package, module), e.Test}
			switch e.Action {
			case "pass", "fail", "skip":
				if out[key] != "fail" { // of several runs the worst counts
					out[key] = e.Action
				}
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	if len(out) == 0 {
		return nil, errors.New("it holds no test that ended; run make test again")
	}
	return out, nil
}

// of returns how the test of a mark ended; "" when it did not run.
func (r results) of(m mark) string {
	if m.pkg != "" {
		return r[[2]string{m.pkg, m.test}]
	}
	// A file's test is a subtest that bears its name.
	got := ""
	for key, action := range r {
		names := strings.Split(key[1], "/")
		if len(names) > 1 && names[len(names)-1] == m.test && got != "fail" {
			got = action
		}
	}
	return got
}

// verdict judges one scenario and names its tests.
func verdict(marks []mark, ran results) (state, tests string) {
	state = "missing"
	var names []string
	for _, m := range marks {
		name := m.String()
		switch ran.of(m) {
		case "pass":
			switch {
			case state == "failing":
			case m.partly && state != "covered":
				state = "partly"
			case !m.partly:
				state = "covered"
			}
		case "fail":
			state, name = "failing", name+" (failed)"
		case "skip":
			state, name = "failing", name+" (skipped)"
		default:
			state, name = "failing", name+" (did not run)"
		}
		names = append(names, name)
	}
	return state, strings.Join(names, " ")
}

// printTable prints a line per scenario and the counts, and returns how many
// fail.
func printTable(w io.Writer, table []scenario, marks map[string][]mark, ran results) (int, error) {
	count := map[string]int{}
	for _, s := range table {
		state, tests := verdict(marks[s.id], ran)
		count[state]++
		if _, err := fmt.Fprintln(w, strings.TrimSpace(s.id+" "+state+" "+tests)); err != nil {
			return 0, err
		}
	}
	_, err := fmt.Fprintf(w, "%d covered, %d partly, %d failing, %d missing of %d\n",
		count["covered"], count["partly"], count["failing"], count["missing"], len(table))
	return count["failing"], err
}

// printMarks prints what the tests say they cover.
func printMarks(w io.Writer, table []scenario, marks map[string][]mark) error {
	marked := 0
	for _, s := range table {
		if len(marks[s.id]) > 0 {
			marked++
		}
		var names []string
		for _, m := range marks[s.id] {
			name := m.String()
			if m.partly {
				name += " (partly)"
			}
			names = append(names, name)
		}
		if _, err := fmt.Fprintln(w, strings.TrimSpace(s.id+" "+strings.Join(names, " "))); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%d marked of %d\n", marked, len(table))
	return err
}
