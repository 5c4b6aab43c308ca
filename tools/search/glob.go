package search

import (
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/lakecode/lakecode/tools"
)

// glob selects files by their names. A pattern without a slash is compared with
// the file's name in any folder; one with a slash with the path from the root or
// from the folder that is searched. A leading "!" turns the answer round.
type glob struct {
	pattern string
	not     bool
	name    bool   // compare with the name alone
	base    string // folder that is searched, with a final slash
}

// newGlob returns nil for an empty pattern. The error is a *tools.Error.
func newGlob(pattern, base string) (*glob, error) {
	if pattern == "" {
		return nil, nil
	}
	g := &glob{base: base}
	g.pattern, g.not = strings.CutPrefix(pattern, "!")
	g.pattern = strings.TrimPrefix(strings.TrimPrefix(g.pattern, "./"), "/")
	if strings.HasSuffix(g.pattern, "/") {
		g.pattern += "**"
	}
	g.name = !strings.Contains(g.pattern, "/")
	if g.pattern == "" || !doublestar.ValidatePattern(g.pattern) {
		return nil, tools.Errorf(tools.BadArguments, `Examples: "*.go", "src/**/*.{ts,tsx}", "!*_test.go".`, "glob %q is not a valid pattern.", pattern)
	}
	return g, nil
}

// fits says whether the file name in dir, which ends with a slash, is selected.
func (g *glob) fits(dir, name string) bool {
	if g.name {
		return doublestar.MatchUnvalidated(g.pattern, name) != g.not
	}
	path := dir + name
	ok := doublestar.MatchUnvalidated(g.pattern, path)
	if !ok && g.base != "" {
		below, inside := strings.CutPrefix(path, g.base)
		ok = inside && doublestar.MatchUnvalidated(g.pattern, below)
	}
	return ok != g.not
}
