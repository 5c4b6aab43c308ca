//go:build !windows

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/lakecode/lakecode/tools/proc"
)

const (
	// maxCapture bounds what a helper program may print, in bytes.
	maxCapture = 64 << 20
	// captureTime bounds how long it may take: in a repository with a pipe for a
	// file, git waits without end.
	captureTime = 8 * time.Second
)

// gitPath finds git once. A relative entry of PATH is not taken: it would name
// a program of the workspace.
func gitPath() string {
	path, err := exec.LookPath("git")
	if err != nil || !filepath.IsAbs(path) {
		return ""
	}
	return path
}

// userRules is where git looks for the person's own ignore rules when no
// configuration names another file; empty when it looks nowhere.
func userRules() string {
	if x := os.Getenv("XDG_CONFIG_HOME"); x != "" {
		return filepath.Join(x, "git", "ignore")
	}
	if home := os.Getenv("HOME"); home != "" {
		return filepath.Join(home, ".config", "git", "ignore")
	}
	return ""
}

// capture runs git to its end and returns its standard output.
func (h *host) capture(ctx context.Context, argv []string, dir string) ([]byte, error) {
	return h.captureWithin(ctx, captureTime, argv, dir)
}

func (h *host) captureWithin(ctx context.Context, limit time.Duration, argv []string, dir string) ([]byte, error) {
	var out, problem limited
	bounded, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("git did not end within %s", limit))
	defer cancel()
	child, err := h.proc.Start(bounded, proc.Spec{
		Argv: argv, Dir: dir, Stdout: &out, Stderr: &problem,
		// Nothing of the repository's configuration may run by being looked at.
		Env: []string{"GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C"},
	})
	if err != nil {
		return nil, err
	}
	state, err := child.Wait()
	switch {
	case bounded.Err() != nil:
		return out.Bytes(), context.Cause(bounded)
	case err != nil:
		return out.Bytes(), err
	case out.over:
		return nil, fmt.Errorf("%s printed more than %d MiB", argv[0], maxCapture>>20)
	case state.Code != 0 || state.Signal != "":
		return out.Bytes(), errors.New(firstLine(problem.Bytes(), "it failed"))
	}
	return out.Bytes(), nil
}

func firstLine(b []byte, or string) string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(b), []byte("\n"))
	if len(line) == 0 {
		return or
	}
	return string(line)
}

// limited keeps the first maxCapture bytes.
type limited struct {
	bytes.Buffer
	over bool
}

// Write never fails, so that the program is not cut off by a broken pipe.
func (l *limited) Write(p []byte) (int, error) {
	if l.over || l.Len()+len(p) > maxCapture {
		l.over = true
		return len(p), nil
	}
	return l.Buffer.Write(p)
}
