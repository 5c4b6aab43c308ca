package shell

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// active are the characters that stand for something else unless quoted.
const active = "*?[{~"

// static returns the one value that w has whatever the environment and the
// files are, with quotes and escapes removed as bash does it. It is false for a
// word with a variable, a glob, a brace expansion, a ~ or an escape code of
// $'...'.
func static(w *syntax.Word) (string, bool) {
	if w == nil {
		return "", false
	}
	var b strings.Builder
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			if p.Value == "[" && len(w.Parts) == 1 {
				return "[", true // the command; a lone bracket is no glob
			}
			if !unescape(&b, p.Value, active, "") {
				return "", false
			}
		case *syntax.SglQuoted:
			if p.Dollar && strings.Contains(p.Value, `\`) {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			for _, in := range p.Parts {
				lit, ok := in.(*syntax.Lit)
				if !ok || p.Dollar {
					return "", false
				}
				unescape(&b, lit.Value, "", "$`\"\\")
			}
		default:
			return "", false
		}
	}
	return b.String(), true
}

// unescape removes backslashes before any character, or only before those in
// quotable when it is not empty. It is false at an unescaped one of special.
func unescape(b *strings.Builder, s, special, quotable string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '\\' && i+1 < len(s) && s[i+1] == '\n':
			i++
		case c == '\\' && i+1 < len(s) && (quotable == "" || strings.IndexByte(quotable, s[i+1]) >= 0):
			i++
			b.WriteByte(s[i])
		case strings.IndexByte(special, c) >= 0:
			return false
		default:
			b.WriteByte(c)
		}
	}
	return true
}

// base is the name under which the tables know a program: without its folder,
// in small letters for file systems that do not tell them apart, without .exe.
func base(name string) string {
	return strings.TrimSuffix(strings.ToLower(path.Base(name)), ".exe")
}

// versioned says whether name is one of names, or one with a version behind it
// as python3.12, lua5.4 or perl5.36-x86_64.
func versioned(name string, names []string) bool {
	for _, n := range names {
		rest, ok := strings.CutPrefix(name, n)
		if !ok {
			continue
		}
		rest = strings.TrimPrefix(rest, "-")
		if rest == "" && name == n || rest != "" && rest[0] >= '0' && rest[0] <= '9' && !strings.HasSuffix(rest, "-config") {
			return true
		}
	}
	return false
}

// opening returns what w certainly begins with, as far as it is written out.
// It is false when the beginning depends on a brace expansion or an escape code.
func opening(w *syntax.Word) (string, bool) {
	if v, ok := static(w); ok {
		return v, true
	}
	switch p := w.Parts[0].(type) {
	case *syntax.Lit:
		var b strings.Builder
		unescape(&b, p.Value, active, "")
		return b.String(), !strings.HasPrefix(p.Value, "{")
	case *syntax.SglQuoted:
		return p.Value, !p.Dollar
	case *syntax.DblQuoted:
		var b strings.Builder
		if len(p.Parts) == 0 {
			return "", false // what comes behind the empty quotes is the beginning
		}
		if lit, ok := p.Parts[0].(*syntax.Lit); ok {
			unescape(&b, lit.Value, "", "$`\"\\")
		}
		return b.String(), true
	}
	return "", true
}
