package arch

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
)

// module is the path of this project; packages are named below it.
const module = "github.com/lakecode/lakecode"

// Table is what layers.txt says.
type Table struct {
	imports map[string][]string // by package: what it may import of ours
	owners  map[string][]string // by module: who may import it
	excused map[string][]string // by rule: whom it does not bind
}

// ReadTable reads a table. A line that is not of the form is an error.
func ReadTable(r io.Reader) (*Table, error) {
	t := &Table{imports: map[string][]string{}, owners: map[string][]string{}, excused: map[string][]string{}}
	sc := bufio.NewScanner(r)
	for n := 1; sc.Scan(); n++ {
		line := strings.TrimSpace(sc.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		into := t.imports
		switch {
		case strings.HasPrefix(line, "@ "):
			into, line = t.owners, line[2:]
		case strings.HasPrefix(line, "! "):
			into, line = t.excused, line[2:]
		}
		name, list, ok := strings.Cut(line, ":")
		if !ok || name == "" || strings.ContainsAny(name, " \t") {
			return nil, fmt.Errorf("line %d is not NAME: PACKAGE...: %s", n, line)
		}
		if _, twice := into[name]; twice {
			return nil, fmt.Errorf("line %d: %s stands twice", n, name)
		}
		into[name] = strings.Fields(list)
	}
	return t, sc.Err()
}

// fits reports whether a pattern of the table means pkg.
func fits(pattern, pkg string) bool {
	if pattern == "*" {
		return pkg != "tests" && !strings.HasPrefix(pkg, "tests/")
	}
	if below, ok := strings.CutSuffix(pattern, "/..."); ok {
		return strings.HasPrefix(pkg, below+"/")
	}
	return pattern == pkg
}

func match(patterns []string, pkg string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return fits(p, pkg) })
}

// allowed returns what pkg may import, and whether the table knows it.
func (t *Table) allowed(pkg string) ([]string, bool) {
	if list, ok := t.imports[pkg]; ok {
		return list, true
	}
	for pattern, list := range t.imports {
		if fits(pattern, pkg) {
			return list, true
		}
	}
	return nil, false
}

// Imports returns a sentence for each import of pkg (named below the module)
// that the table forbids.
func (t *Table) Imports(pkg string, imports []string) []string {
	can, known := t.allowed(pkg)
	if !known {
		return []string{fmt.Sprintf("%s is not in layers.txt: add a line that says what it may import", pkg)}
	}
	var out []string
	for _, imp := range imports {
		if imp == module || strings.HasPrefix(imp, module+"/") {
			if dep := strings.TrimPrefix(imp, module+"/"); !match(can, dep) {
				out = append(out, fmt.Sprintf("%s must not import %s: layers.txt allows it %s", pkg, dep, named(can)))
			}
			continue
		}
		if first, _, _ := strings.Cut(imp, "/"); !strings.Contains(first, ".") {
			continue // the standard library
		}
		out = append(out, t.foreign(pkg, imp)...)
	}
	return out
}

// foreign checks the import of a third-party package.
func (t *Table) foreign(pkg, imp string) []string {
	var owners []string
	found := false
	for mod, list := range t.owners {
		if imp == mod || strings.HasPrefix(imp, mod+"/") {
			found = true
			owners = append(owners, list...)
		}
	}
	switch {
	case !found:
		return []string{fmt.Sprintf("%s imports %s, which has no owner: add an @ line to layers.txt", pkg, imp)}
	case !match(owners, pkg):
		slices.Sort(owners)
		return []string{fmt.Sprintf("%s must not import %s: it belongs to %s", pkg, imp, named(owners))}
	}
	return nil
}

// Excused reports whether a rule does not bind pkg.
func (t *Table) Excused(rule, pkg string) bool { return match(t.excused[rule], pkg) }

// Stale returns a sentence for each line whose package or rule is not there.
func (t *Table) Stale(pkgs, rules []string) []string {
	var out []string
	for pattern := range t.imports {
		if !slices.ContainsFunc(pkgs, func(p string) bool { return fits(pattern, p) }) {
			out = append(out, fmt.Sprintf("layers.txt has a line for %s, and there is no such package", pattern))
		}
	}
	for rule := range t.excused {
		if !slices.Contains(rules, rule) {
			out = append(out, fmt.Sprintf("layers.txt excuses from %s, and there is no such rule", rule))
		}
	}
	slices.Sort(out)
	return out
}

func named(list []string) string {
	if len(list) == 0 {
		return "nothing"
	}
	return strings.Join(list, ", ")
}
