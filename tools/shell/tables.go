package shell

import (
	"slices"
	"strings"
)

// class is a group of commands that are refused for one reason.
type class struct {
	why   string // "it searches files"
	next  string
	names string // separated by spaces, as base returns them
	reach reach
}

// reach is where a program must stand to belong to its class.
type reach uint8

const (
	anywhere reach = iota // by its base name, whatever the path
	system                // by name or absolute path: a script of the project may have the name
	builtin               // by name: part of the shell
)

// The classes whose members also come with a version or a system in their name.
var (
	interpreting = class{
		"it runs code that nobody can see here", "Run the project's own commands: its test runner, make, npm run, go run, or a script that is in the project.",
		"ts-node tsx bun deno nodejs irb jshell osascript expect ipython bpython runghc runhaskell scala groovy groovysh elixir iex escript " +
			"clj bb racket sbcl clisp jrunscript kotlin swipl julia r rscript raku",
		anywhere,
	}
	nesting = class{
		"it is another shell", "Give its commands directly; chains by &&, || and ; are possible.",
		"sh rbash ash hush rksh lksh pdksh oksh loksh yash posh rc es osh ysh ion nu nushell elvish xonsh murex pwsh powershell cmd " +
			"busybox toybox coreutils uutils su runuser login newgrp sg nix-shell",
		anywhere,
	}
	rewriting = class{
		"it reads and rewrites files", "Use read_file or search_text to look and edit_file to change.",
		"sed gsed ssed awk goawk frawk sd",
		anywhere,
	}
	wrapping = class{
		"it runs another command", "Run that command itself.",
		"nice ionice chrt taskset numactl stdbuf unbuffer script scriptreplay watch entr watchexec reflex chroot fakeroot fakechroot " +
			"unshare nsenter bwrap firejail proot flock lockf strace ltrace gstack setarch linux32 linux64 i386 x86_64 prlimit choom cgexec " +
			"cpulimit softlimit chpst envdir setuidgid s6-setuidgid tini dumb-init catchsegv caffeinate arch dbus-launch torsocks " +
			"proxychains proxychains4 tsocks rlwrap ld.so run-parts ssh-agent gpg-agent runcon eatmydata faketime torify",
		system,
	}
)

// classes are spec 11's lists. A name that stands in two is found in the first.
var classes = []class{
	{
		"it searches files", "Use search_text.",
		"grep egrep fgrep rgrep zgrep zegrep zfgrep bzgrep xzgrep zstdgrep lzgrep rg ag ack ack-grep pt sift ug ugrep pcregrep pcre2grep agrep look git-grep",
		anywhere,
	},
	{
		"it searches folders", "Use find_files to find files by name, search_text to find text in them and list_directory to see what is there.",
		"find gfind fd fdfind bfs locate plocate mlocate slocate fzf sk",
		anywhere,
	},
	{
		"it reads files", "Use read_file; it takes a range of lines and shows unsaved text.",
		"cat gcat tac bat batcat head tail less more most pg zcat gzcat zless zmore bzcat bzless xzcat xzless lzcat zstdcat zstdless nl od xxd hd hexdump hexyl strings rev fold fmt pr column expand unexpand cut paste join comm sort uniq wc tsort ptx base32 base64 basenc uuencode jq yq xq gojq dasel glow mdcat",
		anywhere,
	},
	{
		"it lists folders", "Use list_directory.",
		"ls gls dir vdir tree exa eza lsd lf ranger nnn",
		anywhere,
	},
	rewriting,
	{
		"it writes files", "Use edit_file, or write_file for a whole file.",
		"tee dd sponge patch ed red ex",
		system,
	},
	{
		"it is interactive and there is no terminal", "Use edit_file or write_file to change a file.",
		"vi vim nvim gvim vimdiff view rview rvim vimx nano pico micro emacs emacsclient hx helix kak joe jed mcedit code codium subl gedit kate",
		system,
	},
	{
		"it is interactive and there is no terminal", "Run a command that ends by itself.",
		"ssh telnet ftp sftp mosh top htop btop atop iotop tmux screen byobu zellij mc dialog whiptail fg bg jobs gdb lldb dlv gitk tig lazygit",
		system,
	},
	interpreting,
	nesting,
	{
		"it runs another command with other limits", "Use the timeout_seconds argument (at most 600).",
		"timeout gtimeout",
		system,
	},
	{
		"it runs another command with another environment", "Put assignments before the command: A=1 command. printenv shows the environment.",
		"env genv",
		system,
	},
	{
		"it measures another command", "Run the command itself: the result tells how long it took.",
		"time gtime hyperfine",
		system,
	},
	{
		"it runs a command with another person's rights", "Ask the person to run it, if it is needed.",
		"sudo sudoedit doas pkexec run0 gosu su-exec setpriv capsh super",
		system,
	},
	{
		"it runs another command for each name it is given", "Run the command with the names as arguments; globs are possible.",
		"xargs gxargs parallel rush",
		system,
	},
	{
		"it lets another command run on", "Everything a command starts ends with it. Raise timeout_seconds (at most 600) for a long one.",
		"nohup setsid daemonize start-stop-daemon systemd-run at batch cron crontab disown dtach abduco",
		system,
	},
	wrapping,
	{
		"it changes what later words mean or runs them unseen", "Run the command itself; `type NAME` says what a name is.",
		"command builtin exec eval source . enable alias unalias hash",
		builtin,
	},
	{
		"it changes the shell itself", "Put assignments before the command that needs them: A=1 command. Every call starts a fresh shell.",
		"set shopt trap export declare typeset local readonly unset let read mapfile readarray getopts bind complete compgen compopt caller fc history",
		builtin,
	},
	{
		"it is a shell construct", "Run the commands one by one, or as a chain by &&, || and ;.",
		"return break continue shift wait suspend logout coproc",
		builtin,
	},
	{
		"it changes folders behind the call", "Use the cwd argument, or cd.",
		"pushd popd dirs",
		builtin,
	},
}

// classIndex finds a name in classes; the first that has it counts.
var classIndex = func() map[string]int {
	m := make(map[string]int, 400)
	for i, c := range slices.Backward(classes) {
		for n := range strings.FieldsSeq(c.names) {
			m[n] = i
		}
	}
	return m
}()

// Programs that come with a version in their name.
var (
	interpreters = []string{
		"python", "pythonw", "pypy", "jython", "micropython", "ipython", "ruby", "jruby", "truffleruby", "perl", "php", "php-cgi",
		"lua", "luajit", "node", "tclsh", "wish", "guile", "gjs", "qjs", "d8", "erl", "ghci", "octave",
	}
	shells    = []string{"bash", "ksh", "zsh", "fish", "tcsh", "csh", "dash", "mksh"}
	rewriters = []string{"gawk", "mawk", "nawk"}
	loaders   = []string{"ld-linux", "ld-musl", "ld64.so", "ld-2."} // ld.so by its file names: it runs what it is given
)

// classOf finds why a command is refused. path is its name as written, without
// quotes.
func classOf(path string) (class, bool) {
	c, ok := classOfBase(base(path))
	switch {
	case !ok:
		return class{}, false
	case c.reach == builtin && strings.Contains(path, "/"):
		return class{}, false
	case c.reach == system && strings.Contains(path, "/") && !strings.HasPrefix(path, "/"):
		return class{}, false
	}
	return c, true
}

func classOfBase(name string) (class, bool) {
	if i, ok := classIndex[name]; ok {
		return classes[i], true
	}
	switch {
	case versioned(name, interpreters):
		return interpreting, true
	case versioned(name, shells):
		return nesting, true
	case versioned(name, rewriters):
		return rewriting, true
	case slices.ContainsFunc(loaders, func(p string) bool { return strings.HasPrefix(name, p) }):
		return wrapping, true
	}
	return class{}, false
}

// steering variables decide which code a shell, a loader, git or a runtime runs.
const steering = " PATH ENV IFS SHELL SHELLOPTS PS0 PS1 PS2 PS3 PS4 PROMPT_COMMAND CDPATH GLOBIGNORE HOME XDG_CONFIG_HOME XDG_CONFIG_DIRS " +
	"EDITOR VISUAL PAGER MANPAGER BROWSER LESSOPEN LESSCLOSE SSH_ASKPASS SUDO_ASKPASS MAKESHELL GCONV_PATH " +
	"PYTHONSTARTUP PYTHONHOME PYTHONINSPECT PYTHONBREAKPOINT NODE_OPTIONS PERL5OPT PERL5DB RUBYOPT PHPRC PHP_INI_SCAN_DIR " +
	"JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS _JAVA_OPTIONS NPM_CONFIG_SCRIPT_SHELL RIPGREP_CONFIG_PATH "

// steers says whether a variable may not be set before a command.
func steers(name string) bool {
	up := strings.ToUpper(name)
	for _, p := range []string{"LD_", "DYLD_", "BASH", "GIT_", "LAKECODE_", "LUA_INIT"} {
		if strings.HasPrefix(up, p) {
			return true
		}
	}
	return strings.Contains(steering, " "+up+" ")
}
