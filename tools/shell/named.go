package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/lakecode/lakecode/tools"
)

// named judges a command by its name and, for the few that take another
// command as an argument, by that.
func (j judge) named(name string, args []*syntax.Word) *tools.Error {
	b := base(name)
	if slices.Contains(j.allow, b) || slices.Contains(j.allow, name) {
		return nil
	}
	if c, ok := classOf(name); ok {
		return refused(c.next, "%s is refused in bash: %s.", name, c.why)
	}
	if verb, ok := strings.CutPrefix(b, "git-"); ok {
		return j.gitVerb(verb, args, true)
	}
	switch b {
	case "git":
		return j.git(args)
	case "go":
		return goFlags(args)
	case "printf":
		if len(args) > 0 {
			if v, ok := opening(args[0]); !ok || strings.HasPrefix(v, "-") && v != "--" {
				return refused("Write the format out, without options.", "printf with an option can set a variable of the shell.")
			}
		}
	}
	if b == "test" || b == "[" {
		// The subscript of -v 'a[$(x)]' is expanded even though it is quoted.
		for _, w := range args {
			if v, ok := opening(w); !ok || v == "-v" || v == "-R" {
				return refused("printenv NAME tells whether a variable is set.", "%s -v can run code.", b)
			}
		}
	}
	if l, ok := launchers[b]; ok {
		return j.launched(b, l, args)
	}
	return nil
}

// goFlags refuses the flags by which go runs a program of one's choice.
func goFlags(args []*syntax.Word) *tools.Error {
	for _, w := range args {
		v, _ := opening(w)
		name, _, _ := strings.Cut(strings.TrimLeft(v, "-"), "=")
		if strings.HasPrefix(v, "-") && slices.Contains([]string{"exec", "toolexec", "vettool"}, name) {
			return refused("Leave the flag out.", "go %s is refused in bash: it runs another program unseen.", v)
		}
	}
	return nil
}

// launcher runs a program of the project's environment, as uv run pytest.
type launcher struct {
	subs string // subcommands after which the program comes; empty: at once
	skip int    // words between them and the program
	line string // options that take a whole command line for another shell
}

var launchers = map[string]launcher{
	"uv": {subs: "run"}, "uvx": {}, "pipx": {subs: "run"}, "poetry": {subs: "run"}, "pipenv": {subs: "run"}, "pdm": {subs: "run"},
	"rye": {subs: "run"}, "hatch": {subs: "run"}, "conda": {subs: "run"}, "mamba": {subs: "run"}, "micromamba": {subs: "run"},
	"bundle": {subs: "exec"}, "bundler": {subs: "exec"}, "rbenv": {subs: "exec"}, "pyenv": {subs: "exec"}, "nodenv": {subs: "exec"},
	"npx": {line: "-c --call"}, "npm": {subs: "exec x", line: "-c --call"}, "pnpx": {line: "-c"}, "bunx": {},
	"pnpm": {subs: "exec dlx", line: "-c --shell-mode"}, "yarn": {subs: "exec dlx run"},
	"mise": {subs: "exec x", line: "-c --command"}, "asdf": {subs: "exec"}, "direnv": {subs: "exec", skip: 1}, "rustup": {subs: "run", skip: 1},
	"nix": {subs: "develop shell run"}, "xcrun": {}, "xvfb-run": {}, "dbus-run-session": {}, "valgrind": {}, "perf": {subs: "stat record"},
}

// valued are the options of launchers whose value is the next word.
const valued = " -p --package -w --workspace --with --with-editable --with-requirements --python --group --extra --env-file --from --spec " +
	"--directory --project --prefix -n --name --cwd -C --filter -F -e --env "

// launched judges the program behind a launcher as if it stood alone.
func (j judge) launched(name string, l launcher, args []*syntax.Word) *tools.Error {
	behind, skip := l.subs == "", l.skip
	for i := 0; i < len(args); i++ {
		v, ok := static(args[i])
		opt, _, _ := strings.Cut(v, "=")
		switch {
		case !ok:
			return construct("a word before the program that is not written out", args[i].Pos(), "Write it out.")
		case slices.Contains(strings.Fields(l.line), opt):
			return refused("Name the program and its arguments.", "%s %s runs a command line in another shell.", name, opt)
		case strings.Contains(valued, " "+v+" "):
			i++
		case strings.HasPrefix(v, "-"):
		case !behind:
			if behind = slices.Contains(strings.Fields(l.subs), v); !behind {
				if v == "node" && name == "yarn" {
					return j.named(v, args[i+1:])
				}
				return nil
			}
		case skip > 0:
			skip--
		default:
			return j.named(v, args[i+1:])
		}
	}
	return nil
}
