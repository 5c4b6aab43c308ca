package shell

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lakecode/lakecode/tools"
)

// check wants the command refused with a text and a next step that hold the
// words of want, or allowed when want is empty.
func check(t *testing.T, command, want string, allow ...string) {
	t.Helper()
	err := Check(command, allow)
	var te *tools.Error
	switch {
	case want == "" && err != nil:
		t.Errorf("%q is refused: %v", command, err)
	case want == "":
	case !errors.As(err, &te):
		t.Errorf("%q is allowed, wanted %q", command, want)
	case te.Code != tools.NotAllowed || !strings.Contains(te.Text+" "+te.Next, want):
		t.Errorf("%q is refused with %s %q, next %q; wanted %q", command, te.Code, te.Text, te.Next, want)
	}
}

// covers TOOL-12
func TestAllowedCommandsAndChains(t *testing.T) {
	for _, c := range []string{
		"go test ./...", "go test ./... && go vet ./...; git status || true", "go build\ngo test\n", "make -j4 test", "npm run build -- --watch=false",
		"go run ./cmd/tool -x 'a b'", "CGO_ENABLED=0 GOOS=linux go build -o /tmp/x ./cmd/...", "A= B='x y' C=\"$HOME\" make",
		"cp *.go old/", "rm -f a{b,c}.txt", "echo \"$HOME/$USER\" ${PATH}", "echo 'a | b > c $(d)' # | not a pipe", `echo a\|b \> c`,
		"make \\\n  -j4 \\\n\t-k", "git commit -m 'a # b' -m c", "git diff HEAD~1", "mkdir -p a/b && touch a/b/c && mv a/b/c d", "cd sub && make", "test -f go.mod && go mod tidy", "[ -d x ] || mkdir x", "printf '%s\\n' x", `printf "$HOME\n"`,
		"git status", "git --no-pager log --oneline -5", "git diff HEAD~1 -- a.go", "git show HEAD:a.go", "git commit -m 'grep | sed'", "git commit -am \"it's done\"",
		"git checkout -b x && git push origin x", "git stash; git pull --rebase; git stash pop", "git rebase --continue", "git rebase -Xtheirs main", "git log -S'exec' --grep=find",
		"git clone --depth 1 https://example.org/a.git", "git blame a.go", "git bisect start", "git submodule update --init",
		"cargo test", "pytest -c x.ini -q tests", "npx jest -c jest.config.js", "npx tsc --noEmit", "uv run pytest -k find", "poetry run pytest", "bundle exec rake sort", "npm test",
		"/usr/bin/make", "./configure --prefix=/x", "../scripts/check.sh", "docker compose up -d", "printenv", "which go", "type go", "kill 4711", "diff a b", "sha256sum a", "du -sh .",
		"python3-config --includes", "nodemon", "node-gyp rebuild", "luacheck .", "rubocop", "perltidy a", "findmnt", "catalog", "lsof -i", "sortme", "shellcheck a", "zshenv-x",
		"./wait", "./script", "scripts/watch x", "bin/patch", "./set",
		"! true", "time make",
	} {
		if c == "! true" || c == "time make" {
			check(t, c, "refused")
			continue
		}
		check(t, c, "")
	}
}

// Every class of spec 11 and of the decisions, with what to use instead.
//
// covers TOOL-12
func TestRefusedClassesNameWhatToUse(t *testing.T) {
	for want, commands := range map[string][]string{
		"search_text": {
			"grep -r x .", "rg x", "egrep x f", "ag x", "ack x", "git grep x", "git --no-pager grep x", "git-grep x", "/usr/lib/git-core/git-grep x", "zgrep x f",
			"find . -name x", "find . -exec rm {} +", "fd x", "fdfind x", "locate x", "make && grep x f", "true; true || rg x", "A=1 grep x f",
		},
		"find_files":     {"find . -name x", "fd x", "locate x"},
		"list_directory": {"ls", "ls -la /", "tree", "exa", "dir", "find ."},
		"read_file": {
			"cat a", "head -5 a", "tail -f a", "less a", "more a", "bat a", "tac a", "nl a", "od a", "xxd a", "hexdump a", "strings a", "wc -l a", "sort a", "uniq a", "cut -f1 a",
			"base64 a", "jq . a", "sed -n 1,5p a", "awk '{print}' a", "git cat-file -p HEAD:a",
		},
		"edit_file":          {"sed -i s/a/b/ f", "gawk x f", "gawk-5.1 x f", "tee f", "dd if=a of=b", "patch -p1", "vi f", "vim f", "nano f", "emacs f", "ed f", "true; tee f"},
		"write_file":         {"echo x > f", "echo x >> f", "echo x >| f", "cat <<EOF > f\nx\nEOF", "cat <<< x", "make &> log", "make 2> err", "echo x <> f", "tee f", "{ echo x; } > f"},
		"streams are merged": {"make 2>&1", "make >&2"},
		"output is cut":      {"make > /dev/null", "make 2>/dev/null", "make < /dev/null"},
		"pipe":               {"go test | head", "make 2>&1 | tee log", "a | b | c", "a |& b", "a && b | c", "a | b && c"},
		"project's own commands": {
			"python x.py", "python3 -c x", "python3.12 x", "/usr/bin/python3 x", ".venv/bin/python x", "../../../bin/python3 x", "/opt/x/bin/python2.7 x", "pypy3 x", "node x.js", "node18 x", "nodejs x", "deno run x", "bun x.ts", "ruby x", "ruby3.1 x",
			"perl -e x", "perl5.36.0 x", "perl5.36-x86_64-linux-gnu x", "lua5.4 x", "php x", "php8.2 x", "Rscript x", "tclsh x", "osascript -e x", "PYTHON3 x", "python.exe x",
			"uv run python -c x", "uv run --with x python3 y", "poetry run python x", "npx node x", "npx -p typescript node x", "npm exec node x", "npm exec -- node x", "bundle exec ruby x", "conda run -n env python x", "rustup run stable python x", "npx uv run python x", "yarn node x",
		},
		"chain by &&": {
			"(make)", "{ make; }", "if true; then make; fi", "for i in a b; do make; done", "while true; do make; done", "until true; do make; done", "case x in x) make;; esac",
			"select x in a; do make; done", "f() { make; }", "function f { make; }", "coproc make", "break",
		},
		"chains by &&": {
			"bash -c x", "sh x", "zsh", "dash x", "fish", "ksh93 x", "bash5 x", "busybox cat x", "toybox ls", "/bin/sh x", "uv run bash -c x", "su root",
		},
		"timeout_seconds": {"timeout 5 make", "gtimeout 5 make", "make &", "make & make", "sleep 5 & wait", "nohup make", "setsid make"},
		"A=1 command": {
			"env A=1 make", "/usr/bin/env make", "export A=1", "declare A=1", "local A=1", "readonly A=1", "typeset A=1", "A=1", "A=1; make", "A=1 && make", `'export' A=1`, `\export A=1`,
			"set -x", "shopt -s extglob", "trap x EXIT", "unset PATH", "read A", "mapfile A", `\declare A=1`,
		},
		"the result tells how long": {"time make", `\time make`, "/usr/bin/time -v make", "hyperfine make"},
		"Ask the person":            {"sudo make install", "doas make", "pkexec make", "git config user.name x", "git --no-pager config -l"},
		"globs are possible":        {"xargs rm", "parallel make", "/usr/bin/xargs rm"},
		"Run that command itself":   {"nice make", "ionice make", "stdbuf -o0 make", "script x", "watch make", "chroot / make", "unshare make", "nsenter make", "flock f make", "strace make", "/lib64/ld-linux-x86-64.so.2 /bin/cat f", "/lib/ld-musl-x86_64.so.1 x"},
		"Run the command itself":    {"command make", "builtin echo x", "exec make", "eval make", "source x", ". x", "alias a=b", "enable -n echo", "hash -p /bin/cat make"},
		"cwd":                       {"git -C /x status", "git --git-dir=/x status", "git --work-tree /x status", "pushd x"},
		"ends by itself":            {"ssh host", "top", "htop", "tmux", "gdb x"},
		"Run the inner command alone": {
			"echo $(make)", "echo `make`", `echo "$(make)"`, "echo <(make)", "A=$(make) true", `A="x$(make)" true`, "echo a{b,$(make)}", "git log -n $(cat x)", "$(make)", "`make`",
		},
		"Write the number":           {"echo $((1+1))", "echo $[1+1]", "((x=1))", "let x=1"},
		"$NAME and ${NAME}":          {"echo ${A:-x}", "echo ${A@P}", "echo ${!A}", "echo ${#A}", "echo ${A/x/y}", "echo ${A:1:2}", "echo ${A[0]}", "echo ${A:=x}", "echo ${A%x}", `echo "${A@P}"`, "X=${A@P} make"},
		"Use test or [ ]":            {"[[ -f x ]] && make", "[[ x =~ y ]]"},
		"Use *, ? and [ ]":           {"rm !(a)", "echo @(a|b)"},
		"plain quotes":               {`echo $"x"`},
		"result tells the exit code": {"! make"},
		"which code runs": {
			"PATH=. make", "LD_PRELOAD=x make", "LD_LIBRARY_PATH=x make", "DYLD_INSERT_LIBRARIES=x make", "BASH_ENV=x make", "ENV=x make", "IFS=x make", "GIT_PAGER=x git log", "GIT_DIR=x git log",
			"SHELLOPTS=x make", "PS4=x make", "PROMPT_COMMAND=x make", "PYTHONSTARTUP=x pytest", "NODE_OPTIONS=x npm test", "PERL5OPT=x prove", "RUBYOPT=x rake", "EDITOR=x git commit", "HOME=x git log",
			"LAKECODE_HOME=x make", "make && PATH=. make",
		},
		"plain form":           {"A+=1 make"},
		"Leave the flag out":   {"go test -exec /bin/cat ./...", "go test --exec=cat ./...", "go build -toolexec cat .", "go vet -vettool=./x ./..."},
		"git's ordinary verbs": {"git -c core.pager=x log", "git -p log", "git --exec-path=/x status", "git --config-env=a=b log", "git -calias.x=y x", "git mine", "git --paginate log", "git --bare log", "git filter-repo"},
		"Run git without it": {
			"git rebase -x make main", "git rebase --exec make", "git rebase --exec=make", "git rebase --exe make", "git rebase -ix make", `git rebase "-x" make`, `git rebase -x"$HOME"`, "git bisect run make", "git submodule foreach make",
			"git clone -c core.x=y u", "git clone --config core.x=y u", "git clone -u x y", "git clone --upload-pack=x y", "git fetch --upload-pack x", "git push --receive-pack=x", "git ls-remote --upload-p x y", "git diff --ext-diff",
		},
		"Write it out":     {"git clone {-u,x} y", "uv run $CMD x", "npx {node,x}"},
		"without options":  {"printf -v PATH x", `printf '-v' PATH x`, "printf -vPATH x", "printf {-v,PATH,x}"},
		"printenv NAME":    {"test -v 'a[$(make)]'", "[ -v 'a[$(make)]' ]", "[ x -o '-v' y ]", "test {-v,x}", "[ -R x ]"},
		"its arguments":    {"npx -c 'node x'", "npx --call=x", "npm exec -c x"},
		"behind a #":       {"cat$\\\n\"\" x", "ca\\\nt x", "git \\\n gr\\\nep x", "true #\\\ncat x", "true # a \\\n cat x", "true \\\n\\\n#x\\\ncat x", "true && #\\\ncat x", "true #\\\\\ncat x"},
		"cannot parse":     {"echo 'x", "echo (", "if", "a &&", "&& a", "echo $(", "A[0]=1 make", "A=(1 2) make", "<", "echo \"", "a | ", "}", "cat <<"},
		"control char":     {"echo a\x00b", "echo a\rb", "cat\x1b x", "a\x7f"},
		"not valid UTF-8":  {"echo \xff"},
		"more than 65536":  {"echo " + strings.Repeat("x", 64<<10)},
		"ssh-agent":        {"ssh-agent make"},
		"another shell":    {"nix-shell --run x", "pwsh -c x"},
		"in another shell": {"npx -c x"},
	} {
		for _, c := range commands {
			check(t, c, want)
		}
	}
}

// What the shell makes of a name decides, not how it is written.
//
// covers TOOL-12
func TestQuotingTricksDoNotHideAName(t *testing.T) {
	for _, c := range []string{
		`'c'at x`, `"c"at x`, `c"a"t x`, `\cat x`, `c\at x`, `ca''t x`, `""cat x`, `'cat' x`, `"cat" x`, `"ca"'t' x`, `$'cat' x`, `/bin/cat x`, `/bin/../bin/cat x`, `//bin//cat x`, `./cat x`, `CAT x`, `"/bin/ca"t x`,
	} {
		check(t, c, "read_file")
	}
	for _, c := range []string{
		"$CMD x", "${CMD} x", `"$CMD" x`, "c$X x", `c"$X"at x`, "$@", "$1 x", "$'c\\x61t' x", "$'\\143at' x", "c?t x", "c*t x", "/bin/c[a]t x", "{cat,x}", "c{a,b}t x", "{grep,-r,x}", "~/cat x", "~root/bin/cat", `"" x`, "'' x", "/bin/{cat,ls} x",
	} {
		check(t, c, "name is not written out")
	}
	for _, c := range []string{"git $V", "git g?ep x", "git {grep,x}", `git "$V" x`, "git --no-pager $V"} {
		check(t, c, "verb that is not written out")
	}
	for _, c := range []string{`git 'gr'ep x`, `git gr\ep x`, `"git" "grep" x`, `g\it grep x`, "git \\\n grep x"} {
		check(t, c, "search_text")
	}
}

func TestSettingsAllowCommandsButNoConstructs(t *testing.T) {
	check(t, "python3 x.py", "", "python3")
	check(t, "/usr/bin/python3 x.py", "", "python3")
	check(t, "python3.12 x.py", "project's own", "python3")
	check(t, "git config user.name", "", "git config")
	check(t, "git grep x", "search_text", "git config")
	check(t, "uv run python3 x", "", "python3")
	check(t, "python3 $(x)", "substitution", "python3")
	check(t, "python3 x | y", "pipe", "python3")
}

func TestAnEmptyCommandIsABadArgument(t *testing.T) {
	for _, c := range []string{"", " \n\t", "# only this", "\n#x\n"} {
		var te *tools.Error
		if err := Check(c, nil); !errors.As(err, &te) || te.Code != tools.BadArguments {
			t.Errorf("%q: got %v", c, err)
		}
	}
}

func TestPositionsAreTold(t *testing.T) {
	check(t, "make\nmake && go test | head", "line 2, column 17")
	check(t, "make\necho 'x", "line 2, column 6")
}

// Deep nesting ends in time, whatever the answer.
func TestHostileCommandsEndInTime(t *testing.T) {
	for _, unit := range []string{"(", "((", "{ ", "$(", "`", "\"$(", "${", "$((", "[[ ( ", "if ", "a && ", "a;", "!", "\\", "'", "a=(", "{a,", "<<a\n", "case x in ", "f(){ ", "time ", "coproc ", "a|", "<(", "@(", "$[", "${a:-"} {
		began := time.Now()
		_ = Check(strings.Repeat(unit, (64<<10)/len(unit)), nil)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%d bytes of %q took %v", 64<<10, unit, took)
		}
	}
}

// FuzzCheck looks for panics and hangs, and for a name of a refused class that
// comes through however it is spelled.
func FuzzCheck(f *testing.F) {
	for _, s := range []string{"go test ./...", "a && b; c || d", "'c'at x", "$'\\x63at'", "a{b,c}", "A=1 b", "echo $(x)", "cat <<E\nx\nE", "[[ a ]]", "git grep x", "((", "a | b", "~/x", "a\\\nb", "@(a|b)", "${a@P}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if Check(s, nil) != nil {
			return
		}
		if Check("grep x; "+s, nil) == nil || Check(s+"\ngrep x", nil) == nil && !strings.Contains(s, "#") && !strings.HasSuffix(s, "\\") {
			t.Errorf("grep came through beside %q", s)
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	for b.Loop() {
		_ = Check("CGO_ENABLED=0 go test -run 'TestA|TestB' ./tools/... && git status --short && git diff HEAD~1 -- a.go", nil)
	}
}
