//go:build !windows

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"go.uber.org/zap"

	"github.com/lakecode/lakecode/agent"
	"github.com/lakecode/lakecode/lsp/overlay"
	"github.com/lakecode/lakecode/lsp/server"
	"github.com/lakecode/lakecode/providers"
)

const runUsage = `Usage: lakecode run -p PROMPT [flags]

Does one task in a folder. The answer goes to standard output, what the agent
does to standard error. Nobody is asked: what needs a person is refused.

  -p, --prompt TEXT    what to do; "-" reads it from standard input
  --provider ID        connection of providers.json, or "rehearsal"
  --model ID           model of the connection
  --effort WORD        reasoning effort, where the model has it
  --mode build         mode of the turn
  --cwd DIR            workspace (default: this folder)
  --session ID         go on with a session
  --continue           go on with the newest session of the workspace
  --json               print the protocol's events instead, one a line

Exit codes: 0 done, 1 turn failed, 2 usage or configuration, 3 a person was
needed, 4 provider, 130 stopped.
`

type runFlags struct {
	prompt, provider, model, effort, mode, cwd, session string
	resume, json                                        bool
}

func parseRun(args []string) (runFlags, error) {
	var f runFlags
	fs := flag.NewFlagSet("run", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&f.prompt, "p", "", "")
	fs.StringVar(&f.prompt, "prompt", "", "")
	fs.StringVar(&f.provider, "provider", "", "")
	fs.StringVar(&f.model, "model", "", "")
	fs.StringVar(&f.effort, "effort", "", "")
	fs.StringVar(&f.mode, "mode", "build", "")
	fs.StringVar(&f.cwd, "cwd", "", "")
	fs.StringVar(&f.session, "session", "", "")
	fs.BoolVar(&f.resume, "continue", false, "")
	fs.BoolVar(&f.json, "json", false, "")
	if err := fs.Parse(args); err != nil {
		return f, err
	}
	switch {
	case fs.NArg() > 0:
		return f, fmt.Errorf("unexpected %q: quote the prompt and give it with -p", fs.Arg(0))
	case f.session != "" && f.resume:
		return f, errors.New("--session and --continue exclude each other")
	case agent.Mode(f.mode) != agent.Build:
		return f, fmt.Errorf("the mode %q is not available: use build", f.mode)
	case f.prompt == "-":
		text, err := io.ReadAll(io.LimitReader(os.Stdin, maxPrompt))
		if err != nil {
			return f, fmt.Errorf("read the prompt from standard input: %w", err)
		}
		f.prompt = string(text)
	}
	switch {
	case strings.TrimSpace(f.prompt) == "":
		return f, errors.New("no prompt: give it with -p")
	case len(f.prompt) >= maxPrompt:
		return f, fmt.Errorf("the prompt is longer than %d KiB: put it into a file and name the file", maxPrompt>>10)
	}
	var err error
	f.cwd, err = filepath.Abs(f.cwd)
	return f, err
}

// maxPrompt bounds the prompt, in bytes.
const maxPrompt = 1 << 20

// runCommand does one task without an editor.
func runCommand(ctx context.Context, args []string) int {
	f, err := parseRun(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Print(runUsage)
		return exitDone
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "lakecode run: %v\nRun 'lakecode run -h' for the flags.\n", err)
		return exitUsage
	}
	log, closeLog := newLogger(logDir(), io.Discard)
	defer closeLog()
	h := newHost(ctx, overlay.NewStore(), log)
	defer closeHost(ctx, h, log)
	p := newPrinter()
	r := &runner{flags: f, print: p, out: p.to(os.Stdout), err: p.to(os.Stderr), tools: map[string]string{}}
	return r.run(ctx, h, log)
}

// runner shows one turn on a terminal or as JSON lines.
type runner struct {
	flags    runFlags
	print    *printer
	out, err io.Writer         // of the printer
	tools    map[string]string // tool and title by call id
	midLine  bool              // out does not end with a newline
	person   bool              // something needed a person
}

func (r *runner) run(ctx context.Context, h *host, log *zap.Logger) int {
	asked, left, end := interrupts(ctx)
	defer end()
	code, err := r.turn(asked, left, h, log)
	switch {
	case err == nil:
	case asked.Err() != nil:
		code = exitStopped
	default:
		code = r.refused(err)
	}
	if err := r.print.close(left); err != nil {
		fmt.Fprintln(os.Stderr, "lakecode run: the answer could not be printed:", err)
		if code == exitDone {
			code = exitFailed
		}
	}
	return code
}

// interrupts returns a context that ends with the first signal, which asks the
// turn to stop, and one that ends with the second, which leaves at once. What
// the process was started to ignore stays ignored (nohup).
func interrupts(ctx context.Context) (asked, left context.Context, end func()) {
	asked, ask := context.WithCancel(ctx)
	left, leave := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for _, then := range []func(){ask, leave} {
			select {
			case <-signals:
				then()
			case <-left.Done():
				return
			}
		}
	})
	return asked, left, func() {
		signal.Stop(signals)
		ask()
		leave()
		wg.Wait()
	}
}

// turn runs the message and returns the exit code, or why nothing ran.
func (r *runner) turn(asked, left context.Context, h *host, log *zap.Logger) (int, error) {
	if r.flags.provider != rehearsalID {
		// A choice that cannot be used leaves no empty session behind.
		if _, err := h.models.resolve(asked, agent.Choice{Provider: r.flags.provider, Model: r.flags.model, Effort: r.flags.effort}); err != nil && !r.resumes() {
			return 0, err
		}
	}
	conv, err := r.conversation(asked, h)
	if err != nil {
		return 0, err
	}
	state := conv.State()
	sub, err := conv.Subscribe(0)
	if err != nil {
		return 0, err
	}
	defer sub.Close()
	rcpt, err := conv.Do(asked, agent.Submit{Text: r.flags.prompt, Mode: agent.Mode(r.flags.mode), Model: agent.Choice{
		Provider: r.flags.provider, Model: r.flags.model, Effort: r.flags.effort,
	}})
	if err != nil {
		return 0, err
	}
	unhook := context.AfterFunc(asked, func() {
		if _, err := conv.Do(left, agent.Stop{}); err != nil {
			log.Warn("stop", zap.Error(err))
		}
	})
	defer unhook()
	return r.follow(left, sub, rcpt.RequestID, state.Session), nil
}

// resumes reports whether a stored session is asked for, which knows its model.
func (r *runner) resumes() bool { return r.flags.resume || r.flags.session != "" }

func (r *runner) conversation(ctx context.Context, h *host) (agent.Conversation, error) {
	id := r.flags.session
	if r.flags.resume {
		list, err := h.Sessions(ctx, r.flags.cwd)
		if err != nil {
			return nil, err
		}
		if len(list) == 0 {
			return nil, agent.Errorf(agent.NotFound, "Run without --continue.", "There is no session of %s yet.", r.flags.cwd)
		}
		id = list[0].ID
	}
	if id != "" {
		return h.Open(ctx, id)
	}
	return h.Create(ctx, r.flags.cwd)
}

// refused prints why nothing ran.
func (r *runner) refused(err error) int {
	r.line("lakecode run: %v", err)
	var ae *agent.Error
	if errors.As(err, &ae) && ae.Code != agent.NotSaved {
		return exitUsage
	}
	return exitFailed
}

// follow shows the events of the turn until it is saved, or until ctx ends.
func (r *runner) follow(ctx context.Context, sub agent.Subscription, turn, id string) int {
	code := exitFailed
	finished := false
	for {
		e, err := sub.Next(ctx)
		if ctx.Err() != nil {
			r.line("Left before the turn has ended.")
			return exitStopped
		}
		if err != nil {
			r.line("lakecode run: %v", err) // not ErrLagged: nothing here waits for a reader
			return exitFailed
		}
		if r.flags.json {
			r.printJSON(e)
		} else if _, notice := e.Fact.(agent.Notice); notice || e.Request == turn {
			r.show(e.Fact)
		}
		switch f := e.Fact.(type) {
		case agent.Answered:
			r.person = r.person || f.How == "unavailable"
		case agent.TurnFinished:
			if e.Request == turn {
				code, finished = r.exitCode(f), true
			}
		case agent.StateChanged:
			switch {
			case finished && f.State.Phase == agent.Stuck:
				r.line("The turn is not saved: %s", f.State.Blocked)
				return exitFailed
			case finished && f.State.Phase == agent.Idle:
				if !r.flags.json {
					r.line("session %s", id)
				}
				return code
			}
		}
	}
}

func (r *runner) exitCode(f agent.TurnFinished) int {
	switch {
	case f.How == "stopped":
		return exitStopped
	case f.Error == nil && r.person:
		return exitPerson
	case f.Error == nil:
		return exitDone
	}
	switch providers.Kind(f.Error.Kind) {
	case providers.Auth, providers.Permission, providers.NotFound, providers.RateLimited, providers.Quota, providers.TooLong,
		providers.Invalid, providers.Filtered, providers.Overloaded, providers.Network, providers.Timeout, providers.BrokenStream:
		return exitProvider
	case providers.Misconfigured:
		return exitUsage
	}
	return exitFailed
}

func (r *runner) printJSON(e agent.Event) {
	data, err := json.Marshal(server.EventOf(e))
	if err != nil {
		r.line("lakecode run: %v", err)
		return
	}
	fmt.Fprintf(r.out, "%s\n", data)
}

// line prints to standard error on a line of its own.
func (r *runner) line(format string, args ...any) {
	if r.midLine {
		fmt.Fprintln(r.out)
		r.midLine = false
	}
	fmt.Fprintln(r.err, plain(fmt.Sprintf(format, args...)))
}

func (r *runner) show(f agent.Fact) {
	switch f := f.(type) {
	case agent.TextAdded:
		fmt.Fprint(r.out, plain(f.Text))
		r.midLine = !strings.HasSuffix(f.Text, "\n")
	case agent.AnswerEnded:
		if r.midLine {
			fmt.Fprintln(r.out)
			r.midLine = false
		}
	case agent.CallProposed:
		r.tools[f.Call] = strings.TrimSpace(f.Tool + " " + f.Title)
	case agent.CallEnded:
		mark := "✓"
		if f.Outcome != "ok" {
			mark = "✗"
		}
		r.line("%s %s%s", mark, r.tools[f.Call], changes(f.Changed))
		if f.Outcome != "ok" {
			first, _, _ := strings.Cut(f.Text, "\n")
			r.line("  %s", first)
		}
	case agent.Retrying:
		r.line("… %s; trying again in %s (attempt %d)", f.Reason, f.Wait.Round(100e6), f.Attempt)
	case agent.Notice:
		r.line("%s: %s", f.Level, f.Text)
	case agent.TurnFinished:
		if f.Error != nil {
			r.line("✗ %s", strings.TrimSpace(f.Error.Message+" "+f.Error.Next))
		}
	}
}

func changes(cs []agent.FileChange) string {
	added, removed := 0, 0
	for _, c := range cs {
		added, removed = added+c.Added, removed+c.Removed
	}
	if len(cs) == 0 {
		return ""
	}
	return fmt.Sprintf(" (+%d -%d)", added, removed)
}
