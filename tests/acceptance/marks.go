package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// scenario is one line of the table.
type scenario struct{ id, title string }

func readScenarios(text string) ([]scenario, error) {
	var out []scenario
	seen := map[string]bool{}
	sc := bufio.NewScanner(strings.NewReader(text))
	for n := 1; sc.Scan(); n++ {
		line := strings.TrimSpace(sc.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		id, title, _ := strings.Cut(line, " ")
		if !isID.MatchString(id) || title == "" || seen[id] {
			return nil, fmt.Errorf("scenarios.txt:%d: want an id that is new and a title: %s", n, line)
		}
		seen[id] = true
		out = append(out, scenario{id, title})
	}
	return out, sc.Err()
}

// mark says that a test covers a scenario.
type mark struct {
	id     string
	partly bool
	pkg    string // folder of the Go package, below the project; "" in other files
	test   string // test function; in other files the file's name without its ends
}

// String names the test.
func (m mark) String() string {
	if m.pkg == "" {
		return m.test
	}
	return m.pkg + "." + m.test
}

var (
	isID   = regexp.MustCompile(`^[A-Z]{2,}-[1-9][0-9]*$`)
	isMark = regexp.MustCompile(`^\s*(?://|--|#)\s*covers\s+([A-Z]{2,}-\S*)[ \t]*(.*?)\s*$`)
)

// readMarks finds the marks of all test files below root. Marks that cannot be
// right are all named in the error.
func readMarks(root string, table []scenario) (map[string][]mark, error) {
	r := &reader{known: map[string]bool{}, marks: map[string][]mark{}}
	for _, s := range table {
		r.known[s.id] = true
	}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if file != root && (name[0] == '.' || name == "node_modules" || name == "bin" || name == "out") {
				return fs.SkipDir
			}
			return nil
		}
		isGo := strings.HasSuffix(name, "_test.go")
		if ext := path.Ext(name); !isGo && ext != ".lua" && ext != ".txtar" {
			return nil
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if !bytes.Contains(text, []byte("covers ")) {
			return nil
		}
		if isGo {
			return r.goFile(filepath.ToSlash(rel), text)
		}
		r.otherFile(filepath.ToSlash(rel), string(text))
		return nil
	})
	return r.marks, errors.Join(append(r.wrong, err)...)
}

type reader struct {
	known map[string]bool
	marks map[string][]mark
	wrong []error
}

// line takes one line of a comment; place is for messages.
func (r *reader) line(text, place string, m mark) {
	found := isMark.FindStringSubmatch(text)
	if found == nil {
		return
	}
	m.id, m.partly = found[1], found[2] == "partly"
	switch {
	case !r.known[m.id]:
		r.wrong = append(r.wrong, fmt.Errorf("%s covers %s, and there is no such scenario in tests/acceptance/scenarios.txt", place, m.id))
	case found[2] != "" && !m.partly:
		r.wrong = append(r.wrong, fmt.Errorf("%s: after the id there may only stand the word partly, not %q", place, found[2]))
	case m.test == "":
		r.wrong = append(r.wrong, fmt.Errorf("%s: the mark for %s is not in the comment right above a test function", place, m.id))
	default:
		r.marks[m.id] = append(r.marks[m.id], m)
	}
}

func (r *reader) goFile(name string, text []byte) error {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	owner := map[*ast.CommentGroup]string{}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Doc != nil && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") {
			owner[fn.Doc] = fn.Name.Name
		}
	}
	for _, group := range f.Comments {
		for _, c := range group.List {
			r.line(c.Text, fset.Position(c.Pos()).String(), mark{pkg: path.Dir(name), test: owner[group]})
		}
	}
	return nil
}

// otherFile reads a Lua or txtar file, whose test bears the file's name.
func (r *reader) otherFile(name, text string) {
	test := strings.TrimSuffix(path.Base(name), path.Ext(name))
	for i, line := range strings.Split(text, "\n") {
		r.line(line, fmt.Sprintf("%s:%d", name, i+1), mark{test: test})
	}
}
