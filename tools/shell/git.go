package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/lakecode/lakecode/tools"
)

// gitVerbs are the ordinary ones. git takes no alias of such a name, so what is
// configured cannot stand in for them.
const gitVerbs = " add am apply archive bisect blame annotate branch bundle check-attr check-ignore check-ref-format checkout cherry cherry-pick " +
	"clean clone commit commit-tree count-objects describe diff diff-files diff-index diff-tree fetch for-each-ref format-patch fsck gc " +
	"hash-object help init lfs log ls-files ls-remote ls-tree merge merge-base merge-tree mv name-rev notes prune pull push range-diff " +
	"read-tree rebase reflog remote repack replace rerere reset restore rev-list rev-parse revert rm shortlog show show-branch show-ref " +
	"sparse-checkout stash status stripspace submodule subtree switch symbolic-ref tag update-index update-ref verify-commit verify-tag " +
	"version whatchanged worktree write-tree "

// gitInstead says what to use for verbs that a model may want.
var gitInstead = map[string]string{
	"grep":          "Use search_text.",
	"config":        "Ask the person to change git's configuration.",
	"cat-file":      "Use git show REVISION:PATH, or read_file for the file as it is.",
	"filter-branch": "It runs commands on every commit; ask the person.",
	"difftool":      "Use git diff.",
	"mergetool":     "Read the conflict with read_file and solve it with edit_file.",
	"gui":           "Use git status, git add and git commit.",
	"instaweb":      "Use git log and git show.",
}

// gitRuns lists the options and words with which a verb runs a program or
// takes configuration; an option may be shortened, a letter may stand in a
// cluster.
var gitRuns = map[string]string{
	"rebase": "--exec -x", "clone": "--upload-pack -u --config -c --template", "init": "--template", "fetch": "--upload-pack", "pull": "--upload-pack",
	"ls-remote": "--upload-pack --exec", "push": "--receive-pack --exec", "archive": "--exec --remote",
	"bisect": "run", "submodule": "foreach", "diff": "--ext-diff", "log": "--ext-diff", "show": "--ext-diff",
	"format-patch": "--ext-diff",
}

// gitQuiet are the options before the verb that change nothing about what runs.
const gitQuiet = " --no-pager -P --no-optional-locks --no-replace-objects --no-lazy-fetch --literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs "

const gitOrdinary = "Use git's ordinary verbs: status, diff, log, show, add, commit, switch, restore and so on."

func (j judge) git(args []*syntax.Word) *tools.Error {
	for i, w := range args {
		v, ok := static(w)
		switch {
		case !ok:
			return construct("a git verb that is not written out", w.Pos(), "Write the verb itself.")
		case v == "--version" || v == "-v" || v == "--help" || v == "-h":
			return nil
		case !strings.HasPrefix(v, "-"):
			return j.gitVerb(v, args[i+1:], false)
		case v == "-C" || strings.HasPrefix(v, "--git-dir") || strings.HasPrefix(v, "--work-tree"):
			return refused("Use the cwd argument to run git in another folder of the workspace.", "git %s is refused in bash.", v)
		case !strings.Contains(gitQuiet, " "+v+" "):
			return refused(gitOrdinary, "git %s is refused in bash: options before the verb can make git run other programs.", v)
		}
	}
	return nil
}

// gitVerb judges a verb. A program git-NAME that is not git's own is only a
// program.
func (j judge) gitVerb(verb string, args []*syntax.Word, program bool) *tools.Error {
	if slices.Contains(j.allow, "git "+verb) {
		return nil
	}
	if next, ok := gitInstead[verb]; ok {
		return refused(next, "git %s is refused in bash.", verb)
	}
	if !strings.Contains(gitVerbs, " "+verb+" ") {
		if program {
			return nil
		}
		return refused(gitOrdinary, "git %s is not one of git's ordinary verbs (an alias could run anything).", verb)
	}
	runs := strings.Fields(gitRuns[verb])
	for _, w := range args {
		v, ok := opening(w)
		if !ok && len(runs) > 0 {
			return construct("an argument of git that is not written out", w.Pos(), "Write it out.")
		}
		if v == "--" {
			break
		}
		for _, opt := range runs {
			if takes(v, opt) {
				return refused("Run git without it.", "git %s %s is refused in bash: it makes git run a program or takes configuration.", verb, opt)
			}
		}
	}
	return nil
}

// takes says whether the word v is the option or word opt: whole, shortened as
// git allows for long ones, or in a cluster of short ones.
func takes(v, opt string) bool {
	name, _, _ := strings.Cut(v, "=")
	switch {
	case strings.HasPrefix(opt, "--"):
		return len(name) > 2 && strings.HasPrefix(opt, name)
	case strings.HasPrefix(opt, "-"):
		return strings.HasPrefix(v, "-") && !strings.HasPrefix(v, "--") && strings.Contains(name, opt[1:])
	}
	return v == opt
}
