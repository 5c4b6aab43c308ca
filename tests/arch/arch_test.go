package arch

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// house is the project as it is.
type house struct {
	root     string
	table    *Table
	packages map[string][]*Source // files that are no tests, by package
}

// listed is what `go list` says of a package.
type listed struct {
	ImportPath, Dir                   string
	GoFiles, CgoFiles, IgnoredGoFiles []string
}

func load(t *testing.T) *house {
	t.Helper()
	f, err := os.Open("layers.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h := &house{packages: map[string][]*Source{}}
	if h.table, err = ReadTable(f); err != nil {
		t.Fatalf("layers.txt: %v", err)
	}
	if h.root, err = filepath.Abs("../.."); err != nil {
		t.Fatal(err)
	}
	for dec := json.NewDecoder(strings.NewReader(h.run(t, "go", "list", "-e", "-json=ImportPath,Dir,GoFiles,CgoFiles,IgnoredGoFiles", "./..."))); dec.More(); {
		var p listed
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		pkg := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		h.packages[pkg] = []*Source{}
		for _, name := range slices.Concat(p.GoFiles, p.CgoFiles, p.IgnoredGoFiles) {
			if !strings.HasSuffix(name, "_test.go") {
				h.packages[pkg] = append(h.packages[pkg], read(t, pkg, filepath.Join(p.Dir, name)))
			}
		}
	}
	if len(h.packages) < 10 {
		t.Fatalf("go list found %d packages; the rules would hold of nothing", len(h.packages))
	}
	return h
}

func (h *house) run(t *testing.T, argv ...string) string {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = h.root
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, stderr.String())
	}
	return string(out)
}

func read(t *testing.T, pkg, file string) *Source {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return source(t, pkg, filepath.Base(file), string(text))
}

func source(t *testing.T, pkg, name, text string) *Source {
	t.Helper()
	s := &Source{Path: pkg + "/" + name, Pkg: pkg, Fset: token.NewFileSet(), Lines: strings.Count(text, "\n")}
	var err error
	if s.File, err = parser.ParseFile(s.Fset, s.Path, text, parser.ParseComments|parser.SkipObjectResolution); err != nil {
		t.Fatal(err)
	}
	return s
}

func imports(files []*Source) []string {
	var out []string
	for _, s := range files {
		for _, imp := range s.File.Imports {
			if p, err := strconv.Unquote(imp.Path.Value); err == nil && !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	slices.Sort(out)
	return out
}

func report(t *testing.T, violations []string) {
	t.Helper()
	for _, v := range violations {
		t.Error(v)
	}
}

func TestPackagesImportOnlyWhatLayersAllow(t *testing.T) {
	h := load(t)
	var rules, names []string
	for _, r := range Rules() {
		rules = append(rules, r.Name)
	}
	for pkg, files := range h.packages {
		names = append(names, pkg)
		report(t, h.table.Imports(pkg, imports(files)))
	}
	report(t, h.table.Stale(names, rules))
}

func TestSourcesKeepTheRulesOfTheHouse(t *testing.T) {
	h := load(t)
	for _, files := range h.packages {
		for _, s := range files {
			report(t, Check(h.table, s))
		}
	}
}

func TestEveryPackageIsDocumented(t *testing.T) {
	for pkg, files := range load(t).packages {
		if len(files) > 0 && !slices.ContainsFunc(files, func(s *Source) bool { return documents(s.File) }) {
			t.Errorf("%s has no package comment: write a doc.go", pkg)
		}
	}
}

// documents reports whether f holds the package comment. A build constraint or
// a generator's line alone is none.
func documents(f *ast.File) bool { return f.Doc != nil && strings.TrimSpace(f.Doc.Text()) != "" }

func TestTrackedFilesNameNothingOfThisMachine(t *testing.T) {
	h := load(t)
	settings := []string{h.run(t, "go", "env", "GOPROXY", "GOSUMDB")}
	for _, name := range []string{"npm_config_registry", "NPM_CONFIG_REGISTRY", "PIP_INDEX_URL", "UV_INDEX_URL"} {
		settings = append(settings, os.Getenv(name))
	}
	hosts := Hosts(settings...)
	files := strings.Split(strings.TrimSuffix(h.run(t, "git", "-c", "safe.directory=*", "ls-files", "-z"), "\x00"), "\x00")
	if len(files) < 10 {
		t.Fatalf("git lists %d files; the rules would hold of nothing", len(files))
	}
	for _, name := range files {
		data, err := os.ReadFile(filepath.Join(h.root, name))
		if err != nil {
			continue // deleted but not committed, or a link to a folder
		}
		report(t, Text(name, data, hosts))
		report(t, TooLong(name, data))
	}
}
