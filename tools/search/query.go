package search

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/lakecode/lakecode/tools"
)

// maxPattern bounds a pattern, in bytes: a longer one is a pasted file.
const maxPattern = 4096

// query is a compiled pattern. Lines are judged one by one, without their line
// end. Safe for concurrent use.
type query struct {
	pattern string
	// re judges a line. It is nil where a line that holds the one needle
	// matches without further questions.
	re *regexp.Regexp
	// needles: every matching line holds one of them. Without any, every line
	// has to be judged.
	needles []needle
	// letters serve automata that tell whether a line matches; nil: re has to.
	letters *alphabet
}

// compile reads a pattern: literal text, or a regular expression of RE2. The
// error is a *tools.Error.
func compile(pattern string, isRegex, fold bool) (*query, error) {
	switch {
	case pattern == "":
		return nil, tools.Errorf(tools.BadArguments, "Give the text to look for; list_directory lists files.", "pattern is empty.")
	case len(pattern) > maxPattern:
		return nil, tools.Errorf(tools.BadArguments, "Search for one short, telling part of it.", "pattern has %d bytes; at most %d are taken.", len(pattern), maxPattern)
	}
	flags := syntax.Perl
	if fold {
		flags |= syntax.FoldCase
	}
	if !isRegex {
		flags |= syntax.Literal
	}
	tree, err := syntax.Parse(pattern, flags)
	if err != nil {
		return nil, explain(pattern, err)
	}
	if namesNewline(tree) {
		return nil, tools.Errorf(tools.BadArguments, "Search for one line of it, and use context to see the lines around.", "pattern spans lines; a match is always inside one line.")
	}
	tree = tree.Simplify()
	f := known(tree)
	q := &query{pattern: pattern, needles: f.required()}
	if f.exact && f.bare && f.text != "" && !strings.Contains(f.text, "\r") {
		return q, nil
	}
	source := pattern
	if !isRegex {
		source = regexp.QuoteMeta(pattern)
	}
	if fold {
		source = "(?i:" + source + ")"
	}
	if q.re, err = regexp.Compile(source); err != nil {
		return nil, explain(pattern, err)
	}
	q.letters = newAlphabet(tree)
	return q, nil
}

func namesNewline(re *syntax.Regexp) bool {
	if re.Op == syntax.OpLiteral {
		for _, r := range re.Rune {
			if r == '\n' {
				return true
			}
		}
	}
	for _, sub := range re.Sub {
		if namesNewline(sub) {
			return true
		}
	}
	return false
}

// explain turns a syntax error into one that says where and what to do.
func explain(pattern string, err error) *tools.Error {
	next := "Correct the pattern, or leave regex out to search for it as plain text."
	var se *syntax.Error
	if !errors.As(err, &se) {
		return tools.Errorf(tools.BadArguments, next, "pattern is not a regular expression: %v", err)
	}
	at := strings.Index(pattern, se.Expr)
	if se.Code == syntax.ErrMissingParen || se.Code == syntax.ErrUnexpectedParen {
		at = unpaired(pattern)
	}
	switch {
	case se.Code == syntax.ErrInvalidPerlOp, strings.HasPrefix(se.Expr, "(?<=") || strings.HasPrefix(se.Expr, "(?<!"):
		next = "The syntax is RE2: there are no look-aheads, look-behinds or atomic groups. Search for the part that must be there and use context to judge the rest."
	case se.Code == syntax.ErrInvalidEscape && len(se.Expr) == 2 && se.Expr[1] >= '1' && se.Expr[1] <= '9':
		next = "The syntax is RE2: there are no backreferences. Search with a pattern that does not compare two parts."
	case se.Code == syntax.ErrInvalidEscape:
		next = "The syntax is RE2. " + next
	}
	if at < 0 || se.Expr == pattern && se.Code != syntax.ErrMissingParen && se.Code != syntax.ErrUnexpectedParen {
		return tools.Errorf(tools.BadArguments, next, "pattern is not a regular expression: %s: %s", se.Code, se.Expr)
	}
	char := len([]rune(pattern[:at])) + 1
	return tools.Errorf(tools.BadArguments, next, "pattern is not a regular expression: %s at character %d: %s", se.Code, char, pattern[at:])
}

// unpaired finds the parenthesis without a partner, or -1.
func unpaired(pattern string) int {
	var open []int
	class := false
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\':
			i++
		case class:
			class = c != ']' || pattern[i-1] == '['
		case c == '[':
			class = true
		case c == '(':
			open = append(open, i)
		case c == ')' && len(open) == 0:
			return i
		case c == ')':
			open = open[:len(open)-1]
		}
	}
	if len(open) == 0 {
		return -1
	}
	return open[len(open)-1]
}
