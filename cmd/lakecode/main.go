//go:build !windows

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/lakecode/lakecode/tools/proc"
)

// Exit codes (docs/configuration.md).
const (
	exitDone     = 0
	exitFailed   = 1
	exitUsage    = 2
	exitPerson   = 3
	exitProvider = 4
	exitStopped  = 130
)

const usage = `Lakecode is a coding agent that lives in the editor.

Usage:
  lakecode [--stdio]            serve an editor: LSP on standard input and output
  lakecode run -p PROMPT        do one task in this folder and print the answer
  lakecode rehearse [FILE]      serve a scripted model on loopback, for trying things out
  lakecode version              print the version
  lakecode help                 print this

"lakecode run -h" lists the flags of run. Connections to models are in
providers.json in the home folder (~/.lakecode, or $LAKECODE_HOME); see
docs/configuration.md.
`

// version is set by the linker.
var version string

func main() {
	// Unread pipes answer with EPIPE; the default would end the process. Caught
	// and not ignored, because children would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	if len(os.Args) == 2 && os.Args[1] == "reap" {
		os.Exit(reap())
	}
	os.Exit(dispatch(context.Background(), os.Args[1:]))
}

func dispatch(ctx context.Context, args []string) int {
	name := ""
	if len(args) > 0 {
		name = args[0]
	}
	switch name {
	case "run":
		return runCommand(ctx, args[1:])
	case "rehearse":
		return rehearseCommand(ctx, args[1:])
	case "version", "--version", "-version":
		fmt.Println(versionText())
		return exitDone
	case "help", "--help", "-h", "-help":
		fmt.Print(usage)
		return exitDone
	}
	fs := flag.NewFlagSet("lakecode", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Bool("stdio", true, "")
	if err := fs.Parse(args); err != nil || fs.NArg() > 0 {
		switch {
		case errors.Is(err, flag.ErrHelp):
			fmt.Print(usage)
			return exitDone
		case err != nil:
			return usageError("%v", err)
		}
		return usageError("unknown command %q", fs.Arg(0))
	}
	return serve(ctx)
}

func usageError(format string, args ...any) int {
	fmt.Fprintf(os.Stderr, "lakecode: "+format+"\nRun 'lakecode help' for the commands.\n", args...)
	return exitUsage
}

func versionText() string {
	v := version
	if info, ok := debug.ReadBuildInfo(); ok && v == "" {
		v = info.Main.Version
	}
	if v == "" || v == "(devel)" {
		v = "development"
	}
	return fmt.Sprintf("lakecode %s %s/%s %s", v, runtime.GOOS, runtime.GOARCH, runtime.Version())
}

// reap is the helper that kills what a dead Lakecode left behind.
func reap() int { return proc.ReapMain(os.Stdin) }
