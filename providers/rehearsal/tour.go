package rehearsal

import (
	_ "embed" // the tour, its project and the manual
	"fmt"
)

//go:embed script.md
var manual string

//go:embed demo/tour.txt
var tour string

// The files carry .txt so that the Go tool does not take them for packages.
var (
	//go:embed demo/go.mod.txt
	demoModule string
	//go:embed demo/sum.go.txt
	demoSource string
	//go:embed demo/sum_test.go.txt
	demoTest string
)

// Manual describes the script language, in Markdown.
func Manual() string { return manual }

// Tour returns the built-in script: a model that finds out why a test of
// [DemoFiles] fails, mends it and runs the tests again. It needs the tools
// read_file, search_text, edit_file and bash.
func Tour() Script {
	s, err := Parse("tour", tour)
	if err != nil {
		panic(fmt.Sprintf("rehearsal: the embedded tour: %v", err)) // a test parses it
	}
	return s
}

// DemoFiles returns the project that [Tour] mends, a Go module with a failing
// test and no dependencies: text by path, with forward slashes.
func DemoFiles() map[string]string {
	return map[string]string{"go.mod": demoModule, "sum.go": demoSource, "sum_test.go": demoTest}
}
