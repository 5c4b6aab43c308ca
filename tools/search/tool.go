package search

import (
	"context"
	"errors"

	"github.com/lakecode/lakecode/tools"
	"github.com/lakecode/lakecode/tools/workspace"
)

// hiddenFolders are passed over where no ignore rules say what is built and
// what is written, and where they are not tracked (spec 12: list_directory).
var hiddenFolders = []string{".git", ".hg", ".svn", ".jj", "bin", "obj", "node_modules"}

// Config is what the tools need. Workspace is required.
type Config struct {
	Workspace *workspace.Workspace
	// Git is the absolute path of git; empty when there is none. A bare name
	// is refused: it might be found in the folder that is searched.
	Git string
	// Run runs a program in a folder without input and returns what it wrote to
	// its standard output, also beside an error, which any exit code but 0 is.
	// It ends the program when ctx ends, bounds the output (64 MiB are plenty)
	// with an error and is safe for concurrent use. Required with Git.
	Run func(ctx context.Context, argv []string, dir string) ([]byte, error)
	// UserRules is the file of the person's own ignore rules, where git looks
	// for it when no configuration names another. Empty: there is none.
	UserRules string
	// Limits of each call; zero fields take DefaultLimits.
	Limits Limits
}

// New makes the tools of this package. It fails on a Config that cannot work.
func New(cfg Config) ([]tools.Tool, error) {
	s, err := newSearcher(cfg)
	if err != nil {
		return nil, err
	}
	text, err := tools.New(tools.Spec{
		Name: "search_text",
		Tier: tools.Read,
		Description: `Find text in files: a string or, with regex, an RE2 expression (no look-around, no backreferences). A match lies inside one line. ` +
			`The result is grouped by file (12:match, 13-context), with the totals and what was cut: at most 50 matching lines a file, 200 in all. ` +
			`Ignored files and build folders are searched only when path names them, binary files never; links are not followed; unsaved editor text counts before the disk.`,
	}, s.text)
	if err != nil {
		return nil, err
	}
	find, err := tools.New(findSpec, s.find)
	if err != nil {
		return nil, err
	}
	return []tools.Tool{text, find}, nil
}

// textArgs are the arguments of search_text.
type textArgs struct {
	Pattern string `json:"pattern" jsonschema:"text to find, literal unless regex is true"`
	Regex   bool   `json:"regex,omitempty" jsonschema:"pattern is an RE2 expression; ^ and $ are the line's ends"`
	Path    string `json:"path,omitempty" jsonschema:"file or folder, relative to the workspace; default: all of it"`
	Glob    string `json:"glob,omitempty" jsonschema:"only files that fit: *.go in any folder; src/**/*.{ts,tsx}; !*_test.go for all others"`
	Case    string `json:"case,omitempty" jsonschema:"sensitive (default) or insensitive"`
	Context int    `json:"context,omitempty" jsonschema:"lines before and after each match, 0 to 10"`
}

// maxContext is the largest context, in lines on each side.
const maxContext = 10

func (a textArgs) job(limits Limits, base string) (*job, error) {
	if a.Case != "" && a.Case != "sensitive" && a.Case != "insensitive" {
		return nil, tools.Errorf(tools.BadArguments, `Use "sensitive" or "insensitive".`, "case is %q.", a.Case)
	}
	if a.Context < 0 || a.Context > maxContext {
		return nil, tools.Errorf(tools.BadArguments, "Use read_file to see more of a file.", "context is %d; it may be 0 to %d.", a.Context, maxContext)
	}
	q, err := compile(a.Pattern, a.Regex, a.Case == "insensitive")
	if err != nil {
		return nil, err
	}
	g, err := newGlob(a.Glob, base)
	if err != nil {
		return nil, err
	}
	return &job{query: q, glob: g, limits: limits, context: a.Context, hits: newCollector(base, limits.Total)}, nil
}

// errTime is the cause of a context that the limit of time has ended.
var errTime = errors.New("the time for a search is over")

// text runs search_text.
func (s *searcher) text(ctx context.Context, in textArgs, _ *tools.IO) (tools.Output, error) {
	place, err := s.place(in.Path)
	if err != nil {
		return tools.Output{}, err
	}
	j, err := in.job(s.limits, place.base())
	if err != nil {
		return tools.Output{}, err
	}
	timed, stop := context.WithTimeoutCause(ctx, s.limits.Time, errTime)
	defer stop()
	found, err := s.run(timed, j, place)
	if err != nil {
		return tools.Output{}, s.gaveUp(ctx, err, place, searchLess)
	}
	text, err := found.render(in, place)
	return tools.Output{Text: text}, err
}

// searchLess is what to do when a search of text was too much.
const searchLess = "This says nothing about whether the text is there. Search less: give path, a folder below, or glob."

// gaveUp explains why a search did not come to its end.
func (s *searcher) gaveUp(ctx context.Context, err error, at place, next string) error {
	var over *budgetError
	switch {
	case ctx.Err() != nil:
		return tools.Errorf(tools.Cancelled, "", "Stopped: %v.", context.Cause(ctx))
	case errors.Is(err, errTime):
		return tools.Errorf(tools.TimedOut, next, "The search of %s was given up after %v.", at.rel, s.limits.Time)
	case errors.As(err, &over):
		return tools.Errorf(tools.TooLarge, next, "The search of %s was given up: %s.", at.rel, over.what)
	}
	return err
}
