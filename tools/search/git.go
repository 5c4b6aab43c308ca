package search

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// git asks git which files of a work tree are not ignored. What a repository
// configures must not run by being looked at, so the commands are plumbing that
// reads the index and the folders, with every switch off that could start a
// program, and never in a folder that git might take for a bare repository.
type git struct {
	program string // absolute: a name would be looked up beside the files
	run     func(ctx context.Context, argv []string, dir string) ([]byte, error)
}

// newGit returns nil where there is no git.
func newGit(cfg Config) (*git, error) {
	if cfg.Git == "" {
		return nil, nil
	}
	if !filepath.IsAbs(cfg.Git) || cfg.Run == nil {
		return nil, fmt.Errorf("search: git needs an absolute path and Run, not %q", cfg.Git)
	}
	return &git{program: cfg.Git, run: cfg.Run}, nil
}

// gitVars lead git to another repository or configuration. An editor that was
// started by git (for a commit message) hands them to everything below it.
var gitVars = []string{
	"GIT_DIR", "GIT_WORK_TREE", "GIT_IMPLICIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_INDEX_VERSION",
	"GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE",
	"GIT_PREFIX", "GIT_SHALLOW_FILE", "GIT_GRAFT_FILE", "GIT_REPLACE_REF_BASE", "GIT_NO_REPLACE_OBJECTS",
	"GIT_CONFIG", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT", "GIT_CEILING_DIRECTORIES",
	"GIT_ATTR_SOURCE", "GIT_LITERAL_PATHSPECS", "GIT_GLOB_PATHSPECS", "GIT_NOGLOB_PATHSPECS", "GIT_ICASE_PATHSPECS",
	"GIT_TEST_FSMONITOR", "GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_SSH_COMMAND", "GIT_SSH", "GIT_PROXY_COMMAND", "GIT_ASKPASS",
	"GIT_TRACE", "GIT_TRACE_SETUP", "GIT_TRACE2", "GIT_TRACE2_EVENT", "GIT_TRACE2_PERF",
}

// gitSafe come before the command's name. protocol.allow keeps a partial clone
// from fetching what it lacks.
var gitSafe = []string{
	"--no-pager", "--no-optional-locks",
	"-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.untrackedCache=false",
	"-c", "protocol.allow=never", "-c", "safe.bareRepository=explicit",
}

// command is the argv of a git command for the work tree at top, whatever tree
// the repository claims to belong to.
func (g *git) command(top string, args ...string) []string {
	argv := []string{"/usr/bin/env"}
	for _, v := range gitVars {
		argv = append(argv, "-u", v)
	}
	argv = append(argv, "GIT_ALLOW_PROTOCOL=none", "GIT_NO_LAZY_FETCH=1", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C", g.program)
	return slices.Concat(argv, gitSafe, []string{"--work-tree=" + top}, args)
}

// list returns the sorted paths, relative to top, of the tracked files of the
// work tree whose top folder is top and of the others that are not ignored; of
// those below the folder below where it is not empty. A repository inside is
// one path, with a final slash unless it is a submodule. Folders named in
// hidden count as ignored where they are not tracked.
func (g *git) list(ctx context.Context, top, below string, hidden map[string]bool) ([]string, error) {
	args := []string{"--literal-pathspecs", "ls-files", "-z", "--cached", "--others", "--exclude-standard"}
	for name := range hidden {
		args = append(args, "--exclude="+name+"/")
	}
	if below != "" {
		args = append(args, "--", below)
	}
	out, err := g.run(ctx, g.command(top, args...), top)
	if err != nil {
		return nil, err
	}
	all := strings.TrimSuffix(string(out), "\x00")
	if all == "" {
		return nil, nil
	}
	paths := strings.Split(all, "\x00")
	slices.Sort(paths) // a file in conflict is named once for each side
	return slices.Compact(paths), nil
}

// ignores says whether the work tree at top ignores what is at below.
func (g *git) ignores(ctx context.Context, top, below string) (bool, error) {
	// Globs mean nothing here, but a colon at the start would. The error is not
	// looked at: "no" is exit code 1 as well, and a repository that git cannot
	// read shows in list.
	out, _ := g.run(ctx, g.command(top, "check-ignore", "--", "./"+below), top)
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	return len(out) > 0, nil
}

// maxAsked is how many paths one command is asked about.
const maxAsked = 500

// ignored returns those of paths that the work tree at top ignores and does not
// track; the paths are relative to top. A folder counts as tracked when
// something in it is.
func (g *git) ignored(ctx context.Context, top string, paths []string) (map[string]bool, error) {
	all := map[string]bool{}
	for some := range slices.Chunk(paths, maxAsked) {
		args := []string{"-c", "core.quotePath=true", "check-ignore", "--no-index", "--"}
		for _, p := range some {
			args = append(args, "./"+p)
		}
		out, problem := g.run(ctx, g.command(top, args...), top)
		var found []string
		for l := range strings.Lines(string(out)) {
			l = strings.TrimSuffix(l, "\n")
			if strings.HasPrefix(l, `"`) {
				name, err := strconv.Unquote(l)
				if err != nil {
					return nil, fmt.Errorf("git check-ignore named %s", l)
				}
				l = name
			}
			found = append(found, strings.TrimPrefix(l, "./"))
		}
		if len(found) == 0 && problem == nil {
			continue
		}
		// check-ignore takes names for patterns as soon as it looks into the
		// index. Its exit code for "none" is one of an error too: this tells.
		args = append([]string{"--literal-pathspecs", "ls-files", "-z", "--cached", "--", ".gitignore"}, found...)
		out, err := g.run(ctx, g.command(top, args...), top)
		if err != nil {
			return nil, err
		}
		tracked := map[string]bool{}
		for p := range strings.SplitSeq(string(out), "\x00") {
			for ; p != "." && p != "" && !tracked[p]; p = path.Dir(p) {
				tracked[p] = true
			}
		}
		for _, p := range found {
			if !tracked[p] {
				all[p] = true
			}
		}
	}
	return all, nil
}

// workTree finds the nearest folder above dir, or dir itself, that has a .git.
// below is the way from there to dir, with forward slashes.
func workTree(dir string) (top, below string, ok bool) {
	for top = dir; ; top = filepath.Dir(top) {
		if _, err := os.Lstat(filepath.Join(top, ".git")); err == nil {
			below, err = filepath.Rel(top, dir)
			if below == "." {
				below = ""
			}
			return top, filepath.ToSlash(below), err == nil
		}
		if top == filepath.Dir(top) {
			return "", "", false
		}
	}
}

func gitNote(rel string, err error) string {
	where := strings.TrimSuffix(rel, "/")
	if where == "" {
		where = "this work tree"
	}
	reason := "git failed"
	if err != nil {
		reason = strings.TrimSpace(err.Error())
	}
	if errors.Is(err, os.ErrNotExist) {
		reason = "git is not installed"
	}
	return fmt.Sprintf("The ignore rules of %s were not applied (%s).", where, reason)
}
