package loop

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lakecode/lakecode/session"
)

//go:embed prompt_shared.md
var sharedPrompt string

//go:embed prompt_build.md
var buildPrompt string

// Environment is what the model is told about where it works. Taken once when a
// conversation is opened, so that the prompt's prefix stays the same.
type Environment struct {
	Root string // of the workspace
	OS   string // GOOS/GOARCH
	Date time.Time
	Git  bool // the root is in a git work tree
}

// maxInstructions bounds one AGENTS.md, in bytes.
const maxInstructions = 64 << 10

// BuildPrompt assembles the system prompt of Build: what all roles share, the
// person's and the project's instructions, the role's own part, and the
// environment last (spec 21, Prompts).
func BuildPrompt(in []session.Instruction, env Environment) string {
	var b strings.Builder
	b.WriteString(strings.TrimSpace(sharedPrompt))
	for _, i := range in {
		fmt.Fprintf(&b, "\n\n# Instructions from %s\n%s", i.Path, strings.TrimSpace(i.Text))
	}
	b.WriteString("\n\n")
	b.WriteString(strings.TrimSpace(buildPrompt))
	fmt.Fprintf(&b, "\n\n# Environment\nworkspace: %s\nsystem: %s\ndate: %s\n", env.Root, env.OS, env.Date.Format("2006-01-02"))
	if env.Git {
		b.WriteString("version control: git\n")
	}
	return b.String()
}

// Instructions takes the snapshots of the person's AGENTS.md and of the nearest
// one from root up to the root of its repository (spec 12, Instructions). A
// file that is absent is no error; one that cannot be read, or a project's link
// to a file outside of its folder, is reported in problems and left out.
func Instructions(ctx context.Context, home, root string) (in []session.Instruction, problems []string) {
	if home != "" {
		readInstruction(filepath.Join(home, ".agents", "AGENTS.md"), "~/.agents/AGENTS.md", "", &in, &problems)
	}
	for dir := root; ctx.Err() == nil; {
		name := filepath.Join(dir, "AGENTS.md")
		if readInstruction(name, "AGENTS.md", dir, &in, &problems) {
			break
		}
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			break
		}
		up := filepath.Dir(dir)
		if up == dir || dir == home {
			break
		}
		dir = up
	}
	return in, problems
}

// readInstruction reads one file. What it links to must be inside of within,
// since anybody can put a link into a repository; empty: it may be anywhere.
func readInstruction(name, label, within string, in *[]session.Instruction, problems *[]string) (found bool) {
	st, err := os.Stat(name)
	if err != nil {
		if !os.IsNotExist(err) {
			*problems = append(*problems, fmt.Sprintf("%s was left out: %v", label, err))
		}
		return false
	}
	if !st.Mode().IsRegular() {
		*problems = append(*problems, fmt.Sprintf("%s was left out: it is not a regular file", label))
		return true
	}
	if within != "" {
		real, err := filepath.EvalSymlinks(name)
		if rel, e := filepath.Rel(within, real); err != nil || e != nil || !filepath.IsLocal(rel) {
			*problems = append(*problems, fmt.Sprintf("%s was left out: it is a link to a file outside of its folder", label))
			return true
		}
		name = real
	}
	data, err := readAtMost(name, maxInstructions)
	if err != nil {
		*problems = append(*problems, fmt.Sprintf("%s was left out: %v", label, err))
		return true
	}
	if st.Size() > maxInstructions {
		*problems = append(*problems, fmt.Sprintf("%s is longer than %d KiB: the rest was left out", label, maxInstructions>>10))
	}
	*in = append(*in, session.Instruction{Path: label, Text: strings.ToValidUTF8(string(data), "\uFFFD")})
	return true
}

func readAtMost(name string, n int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, n))
}

// InGit reports whether root lies in a git work tree, without running git.
func InGit(root string) bool {
	for dir := root; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return true
		} else if !os.IsNotExist(err) || dir == filepath.Dir(dir) {
			return false
		}
	}
}
