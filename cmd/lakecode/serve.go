//go:build !windows

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/lakecode/lakecode/lsp/overlay"
	"github.com/lakecode/lakecode/lsp/server"
)

// When the editor goes, tools get toolsTime to stop and the final save saveTime
// more; what is left then is killed, so that everything is gone within 2 s.
const (
	toolsTime = 800 * time.Millisecond
	saveTime  = 500 * time.Millisecond
)

// serve speaks LSP on standard input and output until the editor is gone.
func serve(ctx context.Context) int {
	out, err := claimStdout()
	if err != nil {
		fmt.Fprintln(os.Stderr, "lakecode:", err)
		return exitFailed
	}
	log, closeLog := newLogger(logDir(), os.Stderr)
	defer closeLog()
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	dir, err := os.Getwd()
	if err != nil {
		log.Warn("no working folder", zap.Error(err)) // conversations then need a cwd
	}
	docs := overlay.NewStore()
	h := newHost(context.WithoutCancel(ctx), docs, log)
	srv := server.New(server.Config{Host: h, Docs: docs, Version: versionText(), Dir: dir, Log: log})
	clean, err := srv.Serve(ctx, os.Stdin, out)
	if err != nil && !errors.Is(err, io.EOF) {
		log.Warn("connection ended", zap.Error(err))
	}
	closeHost(ctx, h, log)
	if !clean {
		return exitFailed
	}
	return exitDone
}

// closeHost ends everything in bounded time. The reaper kills what a tool that
// does not stop leaves behind.
func closeHost(ctx context.Context, h *host, log *zap.Logger) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), toolsTime+saveTime)
	defer cancel()
	if err := h.Close(ctx); err != nil {
		log.Warn("close", zap.Error(err))
	}
}

// logDir is where logs go; empty when there is no usable home, which the first
// request reports.
func logDir() string {
	home, err := openHome()
	if err != nil {
		return ""
	}
	return home.Logs()
}
