package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// MaxLines is how long a source file may be. Tests and generated files are free.
const MaxLines = 500

// Source is one Go file that is no test.
type Source struct {
	Path  string // below the project, with forward slashes
	Pkg   string // the package's folder below the project
	Fset  *token.FileSet
	File  *ast.File
	Lines int
}

// Rule is one thing that source files may not do.
type Rule struct {
	Name string // as layers.txt excuses it
	Why  string // what is forbidden, and what to do instead
	find func(s *Source) []token.Pos
}

// Rules lists the rules for Go files.
func Rules() []Rule {
	return []Rule{
		{
			"output", "writes to the process's own streams: standard output belongs to the protocol; take a writer or a logger",
			names("fmt.Print*", "os.Stdout", "os.Stderr", "os.Stdin", "log.Print*", "log.Fatal*", "log.Panic*", "print", "println"),
		},
		{
			"environment", "reads or ends the process's surroundings: only the command may; take the value as an argument",
			names("os.Getenv", "os.LookupEnv", "os.Environ", "os.Setenv", "os.Unsetenv", "os.ExpandEnv", "os.UserHomeDir", "os.Args", "os.Exit", "os.Chdir"),
		},
		{"signals", "handles signals: only the command may", names("signal.*")},
		{"background", "makes a context out of nothing: take one from the caller", names("context.Background", "context.TODO")},
		{"sleep", "sleeps: wait for what is awaited, with the context", names("time.Sleep")},
		{
			"process", "starts a process: only tools/proc may, so that none is left behind",
			names("exec.Command*", "exec.Cmd", "os.StartProcess", "syscall.ForkExec", "syscall.StartProcess", "syscall.Exec", "unix.Exec"),
		},
		{"rename", "renames files: only session/durable may, which does it safely", renames},
		{"goroutine", "starts a goroutine by go: use sync.WaitGroup.Go or errgroup, whose owner joins it", goStatements},
		{"global", "uses a global logger: constructors take one", names("zap.L", "zap.S", "zap.ReplaceGlobals", "slog.Default", "slog.SetDefault")},
		{"init", "has an init function: do it in a constructor", initFuncs},
		{"promise", "promises work instead of doing it: do it, or leave the comment out", promises},
		{"omitempty", "says omitempty, which drops a zero that was meant: say omitzero, or send the field", omitEmpty},
	}
}

// Check returns a sentence for each violation in s that t does not excuse.
func Check(t *Table, s *Source) []string {
	var out []string
	for _, r := range Rules() {
		if t.Excused(r.Name, s.Pkg) {
			continue
		}
		for _, pos := range r.find(s) {
			out = append(out, fmt.Sprintf("%s:%d %s (rule %s)", s.Path, s.Fset.Position(pos).Line, r.Why, r.Name))
		}
	}
	if s.Lines > MaxLines && !ast.IsGenerated(s.File) {
		out = append(out, fmt.Sprintf("%s has %d lines, more than %d: split it by concept", s.Path, s.Lines, MaxLines))
	}
	return out
}

// names finds uses of names such as os.Stdout, of "pkg.Prefix*", and of builtin
// functions. Packages are known by the file's imports.
func names(forbidden ...string) func(*Source) []token.Pos {
	return func(s *Source) []token.Pos {
		imports := importNames(s.File)
		var found []token.Pos
		ast.Inspect(s.File, func(n ast.Node) bool {
			var name string
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && imports[x.Name] != "" {
					name = imports[x.Name] + "." + n.Sel.Name
				}
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.Ident); ok {
					name = f.Name
				}
			}
			if name != "" && slices.ContainsFunc(forbidden, func(f string) bool { return covers(f, name) }) {
				found = append(found, n.Pos())
			}
			return true
		})
		return found
	}
}

func covers(pattern, name string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(name, prefix)
	}
	return pattern == name
}

// importNames gives the last element of each import by the name that the file
// uses for it.
func importNames(f *ast.File) map[string]string {
	out := map[string]string{}
	for _, imp := range f.Imports {
		path, err := strconv.Unquote(imp.Path.Value)
		if err != nil {
			continue // it does not compile
		}
		last := path[strings.LastIndex(path, "/")+1:]
		name := last
		if imp.Name != nil {
			name = imp.Name.Name
		}
		out[name] = last
	}
	return out
}

// renames finds os.Rename and its like, and the method of os.Root: any call of
// two arguments to a method Rename.
func renames(s *Source) []token.Pos {
	found := names("os.Rename", "unix.Rename*", "syscall.Rename*")(s)
	imports := importNames(s.File)
	ast.Inspect(s.File, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 2 {
			return true
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || sel.Sel.Name != "Rename" {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && imports[x.Name] != "" {
			return true // a package's function
		}
		found = append(found, call.Pos())
		return true
	})
	return found
}

func goStatements(s *Source) []token.Pos {
	var found []token.Pos
	ast.Inspect(s.File, func(n ast.Node) bool {
		if g, ok := n.(*ast.GoStmt); ok {
			found = append(found, g.Pos())
		}
		return true
	})
	return found
}

func initFuncs(s *Source) []token.Pos {
	var found []token.Pos
	for _, d := range s.File.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
			found = append(found, f.Pos())
		}
	}
	return found
}

var promise = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XXX)\b|\bfor n` + `ow\b`)

func promises(s *Source) []token.Pos {
	var found []token.Pos
	for _, group := range s.File.Comments {
		for _, c := range group.List {
			if promise.MatchString(c.Text) {
				found = append(found, c.Pos())
			}
		}
	}
	return found
}

// omitEmpty binds lsp/wire alone: what is kept in files and what a tool takes
// is read by our own code.
func omitEmpty(s *Source) []token.Pos {
	if s.Pkg != "lsp/wire" {
		return nil
	}
	var found []token.Pos
	ast.Inspect(s.File, func(n ast.Node) bool {
		if f, ok := n.(*ast.Field); ok && f.Tag != nil && strings.Contains(f.Tag.Value, ",omitempty") {
			found = append(found, f.Pos())
		}
		return true
	})
	return found
}
