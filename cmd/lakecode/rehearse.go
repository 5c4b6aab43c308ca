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
	"path/filepath"
	"syscall"

	"github.com/lakecode/lakecode/providers/rehearsal"
)

const rehearseUsage = `Usage: lakecode rehearse [--addr 127.0.0.1:PORT] [--demo DIR] [FILE]

Plays a script as if it were a model, over the Chat Completions protocol on
loopback, and prints its base URL. Without FILE it plays the built-in tour.
--demo writes the small project that the tour mends into an empty folder.
--manual prints the language of scripts.
`

// rehearseCommand serves one script until it is interrupted.
func rehearseCommand(ctx context.Context, args []string) int {
	fs := flag.NewFlagSet("rehearse", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	addr := fs.String("addr", "", "")
	demo := fs.String("demo", "", "")
	manual := fs.Bool("manual", false, "")
	err := fs.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Print(rehearseUsage)
		return exitDone
	case err != nil || fs.NArg() > 1:
		if err == nil {
			err = fmt.Errorf("unexpected %q", fs.Arg(1))
		}
		fmt.Fprintf(os.Stderr, "lakecode rehearse: %v\nRun 'lakecode rehearse -h' for the flags.\n", err)
		return exitUsage
	case *manual:
		fmt.Print(rehearsal.Manual())
		return exitDone
	case *demo != "":
		if err := writeDemo(*demo); err != nil {
			fmt.Fprintln(os.Stderr, "lakecode rehearse:", err)
			return exitUsage
		}
		fmt.Println("The project is in", *demo)
		return exitDone
	}
	script := rehearsal.Tour()
	if fs.NArg() == 1 {
		path, err := filepath.Abs(fs.Arg(0))
		if err == nil {
			script, err = readScript(path)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "lakecode rehearse: %s: %v\n", fs.Arg(0), err)
			return exitUsage
		}
	}
	return serveScript(ctx, script, *addr)
}

func serveScript(ctx context.Context, script rehearsal.Script, addr string) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	srv, err := rehearsal.Start(ctx, script, rehearsal.Options{Addr: addr, Failed: func(err error) {
		fmt.Fprintln(os.Stderr, "lakecode rehearse:", err)
	}})
	if err != nil {
		fmt.Fprintln(os.Stderr, "lakecode", err)
		return exitUsage
	}
	fmt.Println(srv.URL())
	<-ctx.Done()
	srv.Close()
	return exitDone
}

// writeDemo writes the demonstration project into a new or empty folder.
func writeDemo(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s is not empty", dir)
	}
	for name, text := range rehearsal.DemoFiles() {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
