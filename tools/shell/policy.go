package shell

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"github.com/lakecode/lakecode/tools"
)

const (
	// maxCommand bounds a command line, in bytes.
	maxCommand = 64 << 10
	// maxBrackets bounds the opening brackets in it, quoted ones as well: the
	// parser's time grows with the square of their depth.
	maxBrackets = 2000
)

// Check says whether command may run: nil, or a *[tools.Error] that names what
// is refused and what to use instead. allow lists further commands, as "python3"
// or "git config"; it lifts the refusal of a command, never of a construct.
// Safe for concurrent use (spec 11: bash).
func Check(command string, allow []string) error {
	if bad := (judge{allow}).line(command); bad != nil {
		return bad
	}
	return nil
}

// judge walks the tree of one command line.
type judge struct{ allow []string }

func refused(next, format string, args ...any) *tools.Error {
	return tools.Errorf(tools.NotAllowed, next, "Not run: "+format, args...)
}

// construct refuses what is written at a place, as "a pipe".
func construct(what string, at syntax.Pos, next string) *tools.Error {
	return refused(next, "%s is refused in bash (line %d, column %d).", what, at.Line(), at.Col())
}

func (j judge) line(command string) *tools.Error {
	switch {
	case strings.TrimSpace(command) == "":
		return tools.Errorf(tools.BadArguments, "Give the command line to run.", "The command is empty.")
	case len(command) > maxCommand:
		return refused("Write a script of the project and run it, or run the parts one by one.", "the command has %d bytes, more than %d.", len(command), maxCommand)
	case strings.Count(command, "(")+strings.Count(command, "[") > maxBrackets:
		return refused("Write a script of the project and run it, or run the parts one by one.", "the command has more than %d brackets.", maxBrackets)
	case !utf8.ValidString(command):
		return refused("", "the command is not valid UTF-8.")
	}
	if i := strings.IndexFunc(command, func(r rune) bool { return r < ' ' && r != '\t' && r != '\n' || r == 0x7f }); i >= 0 {
		return refused("Write it without control characters.", "the command holds the control character %q.", command[i])
	}
	if n := oddBreak(command); n > 0 {
		return refused("Write the command on one line, or break it between words, without # on the line.", "line %d ends in a backslash inside a word or behind a #, where bash and this check may not agree.", n)
	}
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(command), "")
	if err != nil {
		return unparsed(err)
	}
	if len(f.Stmts) == 0 {
		return tools.Errorf(tools.BadArguments, "Give the command line to run.", "The command holds nothing but comments.")
	}
	for _, s := range f.Stmts {
		if bad := j.statement(s); bad != nil {
			return bad
		}
	}
	return nil
}

// oddBreak returns the number of a line that is continued by a backslash in the
// middle of a word or behind a #, or 0. The parser reads both otherwise than
// bash does: a comment goes on for it, and $\ before a line end is a dollar.
func oddBreak(command string) int {
	n := 0
	for line := range strings.Lines(command) {
		n++
		before, broken := strings.CutSuffix(line, "\\\n")
		if !broken {
			continue
		}
		between := before == "" || strings.HasSuffix(before, " ") || strings.HasSuffix(before, "\t")
		if !between || strings.Contains(before, "#") {
			return n
		}
	}
	return 0
}

func unparsed(err error) *tools.Error {
	const next = "Check quotes and brackets; only simple commands and chains by &&, || and ; are possible."
	var pe syntax.ParseError
	var le syntax.LangError
	switch {
	case errors.As(err, &pe):
		return refused(next, "bash cannot parse it at line %d, column %d: %s.", pe.Pos.Line(), pe.Pos.Col(), pe.Text)
	case errors.As(err, &le):
		return refused(next, "it is not bash at line %d, column %d: %s.", le.Pos.Line(), le.Pos.Col(), le.Feature)
	}
	return refused(next, "bash cannot parse it: %v.", err)
}

func (j judge) statement(s *syntax.Stmt) *tools.Error {
	switch {
	case s.Background, s.Coprocess, s.Disown:
		return construct("a background job", s.Semicolon, "Run it in the foreground; everything a command starts ends with it. Raise timeout_seconds (at most 600) for a long one.")
	case s.Negated:
		return construct("the negation !", s.Position, "Run the command without it: the result tells the exit code.")
	}
	for _, r := range s.Redirs {
		return redirection(r)
	}
	if s.Cmd == nil {
		return construct("an empty statement", s.Position, "")
	}
	return j.command(s.Cmd)
}

func (j judge) command(cmd syntax.Command) *tools.Error {
	const shellNext = "Run the commands one by one, or as a chain by &&, || and ;."
	switch c := cmd.(type) {
	case *syntax.CallExpr:
		return j.call(c)
	case *syntax.BinaryCmd:
		if c.Op != syntax.AndStmt && c.Op != syntax.OrStmt {
			return construct("a pipe", c.OpPos, "Run the first command alone: its output is merged and cut to its beginning and end by itself. search_text and read_file do what grep, head and tail do.")
		}
		if bad := j.statement(c.X); bad != nil {
			return bad
		}
		return j.statement(c.Y)
	case *syntax.Subshell:
		return construct("a subshell ( )", c.Pos(), shellNext+" Use the cwd argument for another folder.")
	case *syntax.Block:
		return construct("a group { }", c.Pos(), shellNext)
	case *syntax.FuncDecl:
		return construct("a function", c.Pos(), shellNext)
	case *syntax.TestClause:
		return construct("[[ ]]", c.Pos(), "Use test or [ ].")
	case *syntax.TimeClause:
		return construct("time", c.Pos(), "Run the command without it: the result tells how long it took.")
	case *syntax.CoprocClause:
		return construct("coproc", c.Pos(), shellNext)
	case *syntax.ArithmCmd, *syntax.LetClause:
		return construct("arithmetic", c.Pos(), "Write the number.")
	case *syntax.DeclClause:
		return construct(c.Variant.Value, c.Pos(), "Put the assignment before the command that needs it: A=1 command.")
	case *syntax.IfClause, *syntax.WhileClause, *syntax.ForClause, *syntax.CaseClause:
		return construct("control flow (if, for, while, until, select, case)", c.Pos(), shellNext)
	}
	return construct("this construct", cmd.Pos(), shellNext)
}

// redirection names what the model most likely wanted.
func redirection(r *syntax.Redirect) *tools.Error {
	target, _ := static(r.Word)
	switch {
	case r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc || r.Op == syntax.WordHdoc:
		return construct("a here-document or here-string", r.OpPos, "Write the text to a file with write_file and give the command its path.")
	case r.Op == syntax.DplOut || r.Op == syntax.DplIn:
		return construct("a redirection", r.OpPos, "Drop it: both streams are merged already.")
	case target == "/dev/null":
		return construct("a redirection", r.OpPos, "Drop it: there is no input, and output is cut to its beginning and end by itself.")
	case r.Op == syntax.RdrIn:
		return construct("a redirection", r.OpPos, "Name the file as an argument of the command, or read it with read_file.")
	}
	return construct("a redirection", r.OpPos, "Use write_file or edit_file to write a file; the output of the command is in its result.")
}

func (j judge) call(c *syntax.CallExpr) *tools.Error {
	for _, a := range c.Assigns {
		if bad := j.assignment(a); bad != nil {
			return bad
		}
	}
	if len(c.Args) == 0 {
		return construct("an assignment without a command", c.Pos(), "Put it before the command that needs it: A=1 command.")
	}
	for _, w := range c.Args {
		if bad := j.word(w.Parts); bad != nil {
			return bad
		}
	}
	name, ok := static(c.Args[0])
	if !ok || name == "" {
		return construct("a command whose name is not written out", c.Args[0].Pos(), "Write the name of the command itself, without variables, globs, braces, ~ or escape codes.")
	}
	return j.named(name, c.Args[1:])
}

func (j judge) assignment(a *syntax.Assign) *tools.Error {
	if a.Name == nil || a.Naked || a.Append || a.Index != nil || a.Array != nil {
		return construct("this kind of assignment", a.Pos(), "Use the plain form: A=1 command.")
	}
	if steers(a.Name.Value) {
		return construct("setting "+a.Name.Value, a.Pos(), "It decides which code runs. Run the command without it; if the project needs it, ask the person.")
	}
	if a.Value == nil {
		return nil
	}
	return j.word(a.Value.Parts)
}

// word refuses what would run a command or change a variable while the word is
// expanded.
func (j judge) word(parts []syntax.WordPart) *tools.Error {
	const literal = "Run the inner command alone first, then write its result into this one."
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit, *syntax.SglQuoted:
		case *syntax.DblQuoted:
			if p.Dollar {
				return construct(`$"..."`, p.Pos(), "Use plain quotes.")
			}
			if bad := j.word(p.Parts); bad != nil {
				return bad
			}
		case *syntax.ParamExp:
			if !plain(p) {
				return construct("this form of ${ }", p.Pos(), "Only $NAME and ${NAME} are possible; write the value.")
			}
		case *syntax.CmdSubst:
			return construct("a command substitution", p.Pos(), literal)
		case *syntax.ProcSubst:
			return construct("a process substitution", p.Pos(), literal)
		case *syntax.ArithmExp:
			return construct("arithmetic", p.Pos(), "Write the number.")
		case *syntax.ExtGlob:
			return construct("an extended glob", p.Pos(), "Use *, ? and [ ], or name the files.")
		default:
			return construct(fmt.Sprintf("this construct (%T)", p), p.Pos(), "Write the value.")
		}
	}
	return nil
}

// plain says whether p is $NAME or ${NAME} and nothing more: the other forms
// assign, run code (@P) or hide a name.
func plain(p *syntax.ParamExp) bool {
	return p.Param != nil && p.NestedParam == nil && p.Flags == nil &&
		!p.Excl && !p.Length && !p.Width && !p.IsSet &&
		p.Split == syntax.OptUnset && p.GlobSubst == syntax.OptUnset && p.RcExpand == syntax.OptUnset &&
		p.Index == nil && len(p.Modifiers) == 0 && p.Slice == nil && p.Repl == nil && p.Names == 0 && p.Exp == nil
}
