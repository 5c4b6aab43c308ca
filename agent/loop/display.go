package loop

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"

	"github.com/aymanbagabas/go-udiff"

	"github.com/lakecode/lakecode/agent"
	"github.com/lakecode/lakecode/session"
	"github.com/lakecode/lakecode/tools"
)

const (
	// displayText bounds the result text in a CallEnded event, in bytes.
	displayText = 16 << 10
	// diffLines bounds a diff preview (decisions: Limits).
	diffLines = 200
	// diffBytes is the size above which a file is counted, not compared.
	diffBytes  = 1 << 20
	titleRunes = 120
)

// Title is the one line that stands for a call on a screen: the path, the
// command, the pattern, the files of a patch, or nothing when the arguments cannot be read.
func Title(args string) string {
	var m map[string]any
	if json.Unmarshal([]byte(args), &m) != nil {
		return ""
	}
	for _, k := range []string{"command", "pattern", "query", "path", "file", "question", "description"} {
		if s, _ := m[k].(string); s != "" {
			if p, _ := m["path"].(string); k == "pattern" && p != "" {
				s += " in " + p
			}
			return oneLine(s)
		}
	}
	if s, _ := m["patch"].(string); s != "" {
		return oneLine(patchTitle(s))
	}
	return ""
}

// patchTitle names the files of a patch.
func patchTitle(patch string) string {
	var names []string
	for l := range strings.Lines(patch) {
		mark, name, _ := strings.Cut(l, " File:")
		if mark == "*** Add" || mark == "*** Delete" || mark == "*** Update" {
			names = append(names, strings.TrimSpace(name))
		}
	}
	return strings.Join(names, ", ")
}

// oneLine also takes out what would steer a terminal.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '\uFFFD'
		}
		return r
	}, strings.Join(strings.Fields(s), " "))
	if r := []rune(s); len(r) > titleRunes {
		return string(r[:titleRunes-1]) + "…"
	}
	return s
}

// Clip bounds a result text for display at a line end where there is one.
func Clip(s string) (string, bool) {
	if len(s) <= displayText {
		return s, false
	}
	cut := s[:displayText]
	if i := strings.LastIndexByte(cut, '\n'); i > displayText/2 {
		cut = cut[:i]
	}
	return strings.ToValidUTF8(cut, ""), true
}

// describe turns written files into what is stored and shown of them.
func describe(cs []tools.Change) []session.Change {
	out := make([]session.Change, 0, len(cs))
	for _, c := range cs {
		d := session.Change{Path: c.Rel, Kind: "update"}
		switch {
		case c.Before == nil:
			d.Kind = "create"
		case c.After == nil:
			d.Kind = "delete"
		}
		if len(c.Before)+len(c.After) > diffBytes || bytes.IndexByte(c.Before, 0) >= 0 || bytes.IndexByte(c.After, 0) >= 0 {
			d.Removed, d.Added = bytes.Count(c.Before, []byte("\n")), bytes.Count(c.After, []byte("\n"))
			out = append(out, d)
			continue
		}
		d.Diff, d.Added, d.Removed = unified(c.Rel, string(c.Before), string(c.After))
		out = append(out, d)
	}
	return out
}

func unified(name, before, after string) (diff string, added, removed int) {
	text := udiff.Unified("a/"+name, "b/"+name, before, after)
	lines := strings.SplitAfter(text, "\n")
	for i, l := range lines {
		switch {
		case i < 2:
		case strings.HasPrefix(l, "+"):
			added++
		case strings.HasPrefix(l, "-"):
			removed++
		}
	}
	if len(lines) > diffLines {
		text = strings.Join(lines[:diffLines], "") + "[cut]\n"
	}
	return text, added, removed
}

// FileChanges converts stored changes for the agent's events and views.
func FileChanges(cs []session.Change) []agent.FileChange {
	out := make([]agent.FileChange, len(cs))
	for i, c := range cs {
		out[i] = agent.FileChange{Path: c.Path, Kind: c.Kind, Added: c.Added, Removed: c.Removed, Diff: c.Diff}
	}
	return out
}
