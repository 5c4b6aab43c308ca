package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lakecode/lakecode/tools"
	"github.com/lakecode/lakecode/tools/proc"
	"github.com/lakecode/lakecode/tools/workspace"
)

const (
	defaultTimeout = 120 * time.Second
	maxTimeout     = 600 * time.Second
	// progressEvery is the least time between two progress texts.
	progressEvery = 50 * time.Millisecond
	// endLimit is how long the end of a stopped command is awaited. A tool must
	// return within 2 s after its context has ended.
	endLimit = 1800 * time.Millisecond
)

// bashPaths are the places where bash is looked for, in this order.
var bashPaths = []string{
	"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/opt/homebrew/bin/bash",
	"/run/current-system/sw/bin/bash", "/system/bin/bash",
}

// quiet keeps programs from asking, paging, colouring and opening editors.
var quiet = []string{
	"TERM=dumb", "NO_COLOR=1", "PAGER=cat", "MANPAGER=cat", "GIT_PAGER=cat", "GIT_EDITOR=true", "GIT_TERMINAL_PROMPT=0",
	"GCM_INTERACTIVE=never", "SSH_ASKPASS_REQUIRE=never", "DEBIAN_FRONTEND=noninteractive",
}

// Folders finds places in the workspace; *[workspace.Workspace] is one.
type Folders interface {
	// Resolve returns the real place of a name inside the root, or an error for
	// the model.
	Resolve(name string) (workspace.Path, error)
}

// Config is what the tool needs. Workspace and Proc are required.
type Config struct {
	Workspace Folders
	Proc      *proc.Supervisor
	// Docs lists the files with unsaved text in an editor, relative to the root.
	// The result names them, for the command sees the disk. Nil: none.
	Docs func() []string
	// Allow lists further commands that the project permits, as Check takes them.
	Allow []string
	// Bash is the absolute path of bash. Empty: the first of the usual ones.
	Bash string
}

// Args are the arguments of bash.
type Args struct {
	Command        string `json:"command" jsonschema:"the command line"`
	Description    string `json:"description" jsonschema:"action, aim and expected side effects"`
	TimeoutSeconds int    `json:"timeout_seconds,omitzero" jsonschema:"1 to 600, default 120"`
	Cwd            string `json:"cwd,omitzero" jsonschema:"folder in the workspace to run in; default its root"`
}

const description = `Run a command with bash in the workspace: builds, tests, git, package managers. Returns exit code, duration and merged output, at most 30 KiB (first 10, last 20).
Possible: simple commands, chains by && || ;, globs, $VAR, A=1 before a command.
Refused: pipes, redirections, substitutions, subshells, if/for/while, functions, background jobs; commands that search, list or read files (use search_text, list_directory, read_file) or write them (use edit_file, write_file); interpreters (python, node ...), nested shells, wrappers (env, xargs, sudo, timeout ...).
No input, no terminal. What a command started ends with it. Unsaved editor text is not seen.`

type bash struct {
	cfg  Config
	path string
}

// New makes the tool. It fails when there is no bash on the machine.
func New(cfg Config) (tools.Tool, error) {
	b := &bash{cfg: cfg, path: cfg.Bash}
	if b.path == "" {
		i := slices.IndexFunc(bashPaths, func(p string) bool { return unix.Access(p, unix.X_OK) == nil })
		if i < 0 {
			return tools.Tool{}, fmt.Errorf("no bash at %v", bashPaths)
		}
		b.path = bashPaths[i]
	}
	t, err := tools.New(tools.Spec{
		Name: "bash", Tier: tools.Exec, Description: description, NeedsDescription: true,
	}, b.run)
	if err != nil {
		return tools.Tool{}, err
	}
	return tools.WithPolicy(t, func(in Args) *tools.Error { return judge{cfg.Allow}.line(in.Command) }), nil
}

// run judges the command a second time, right before the start, because what
// was approved and what runs must not come apart.
func (b *bash) run(ctx context.Context, in Args, io *tools.IO) (tools.Output, error) {
	limit := defaultTimeout
	if in.TimeoutSeconds != 0 {
		limit = time.Duration(in.TimeoutSeconds) * time.Second
	}
	if limit < time.Second || limit > maxTimeout {
		return tools.Output{}, tools.Errorf(tools.BadArguments, "Nothing was run. Give 1 to 600 seconds.", "timeout_seconds is %d.", in.TimeoutSeconds)
	}
	dir, err := b.folder(in.Cwd)
	if err != nil {
		return tools.Output{}, err
	}
	var docs []string
	if b.cfg.Docs != nil {
		docs = b.cfg.Docs()
	}
	rec := newRecorder()
	if bad := (judge{b.cfg.Allow}).line(in.Command); bad != nil {
		return tools.Output{}, bad
	}
	child, err := b.cfg.Proc.Start(ctx, proc.Spec{
		Argv: []string{b.path, "--noprofile", "--norc", "-c", "--", in.Command, "bash"},
		Dir:  dir, Env: quiet, Output: rec.write,
	})
	switch {
	case errors.Is(err, proc.ErrClosed), err != nil && ctx.Err() != nil:
		return tools.Output{}, tools.Errorf(tools.Cancelled, "", "Not run: %v.", err)
	case err != nil:
		return tools.Output{}, tools.Errorf(tools.Other, "Ask the person to look at the machine.", "bash could not be started: %v", err)
	}
	how := await(ctx, child, rec, limit, io.Progress)
	return report{how: how, docs: docs, limit: limit, cause: context.Cause(ctx), rec: rec, child: child}.result()
}

func (b *bash) folder(name string) (string, error) {
	if name == "" {
		name = "."
	}
	p, err := b.cfg.Workspace.Resolve(name)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(p.Abs)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", tools.Errorf(tools.NotFound, "Nothing was run. Use list_directory to see what is there.", "The folder %s does not exist.", name)
	case err != nil:
		return "", tools.Errorf(tools.Other, "Nothing was run.", "The folder %s cannot be used: %v", name, errors.Unwrap(err))
	case !info.IsDir():
		return "", tools.Errorf(tools.BadArguments, "Nothing was run. Give a folder, or leave cwd out for the workspace's root.", "%s is a file.", name)
	}
	return p.Abs, nil
}

// ending is what brought a command to its end.
type ending uint8

const (
	byItself ending = iota + 1
	byTimeout
	byCancel
)

// await shows progress until the child has ended, and ends it when its time is
// over. The end of ctx ends it too, in tools/proc.
func await(ctx context.Context, child *proc.Child, rec *recorder, limit time.Duration, show func(string)) ending {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	pause := time.NewTimer(0)
	defer pause.Stop()
	<-pause.C
	resting := false
	tell := func() {
		if text := rec.progress(); text != "" && show != nil {
			show(text)
			resting = true
			pause.Reset(progressEvery)
		}
	}
	for {
		news := rec.dirty
		if resting {
			news = nil
		}
		select {
		case <-child.Done():
			tell()
			if st, _ := child.Wait(); st.Stopped && ctx.Err() != nil {
				return byCancel
			}
			return byItself
		case <-news:
			tell()
		case <-pause.C:
			resting = false
		case <-deadline.C:
			stop(ctx, child)
			tell()
			return byTimeout
		case <-ctx.Done():
			stop(ctx, child)
			tell()
			return byCancel
		}
	}
}

// stop waits for the end of the child, but not for ever: a process in an
// uninterruptible wait stays until its device answers, and proc keeps at it.
func stop(ctx context.Context, child *proc.Child) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endLimit)
	defer cancel()
	_ = child.Stop(ctx) // report looks at the child itself
}
