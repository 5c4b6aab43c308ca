//go:build !windows

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/lakecode/lakecode/agent"
	"github.com/lakecode/lakecode/agent/convo"
	"github.com/lakecode/lakecode/agent/loop"
	"github.com/lakecode/lakecode/providers"
	"github.com/lakecode/lakecode/session"
	"github.com/lakecode/lakecode/tools"
	"github.com/lakecode/lakecode/tools/files"
	"github.com/lakecode/lakecode/tools/search"
	"github.com/lakecode/lakecode/tools/shell"
	"github.com/lakecode/lakecode/tools/workspace"
)

// runMark names this process in the environment of its children.
func runMark() string { return uuid.NewString() }

// begin puts a conversation together. It owns log from here on.
func (h *host) begin(ctx context.Context, log *session.Log, a *session.Archive) (*convo.Convo, error) {
	c, err := h.compose(ctx, log, a)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return c, nil
}

func (h *host) compose(ctx context.Context, log *session.Log, a *session.Archive) (*convo.Convo, error) {
	zlog := h.log.With(zap.String("session", string(a.ID)))
	ws, err := workspace.Open(workspace.Config{Root: a.Root, Docs: h.docs, Journal: filepath.Join(log.Dir(), "journal"), Locks: h.locks, Log: zlog})
	if err != nil {
		return nil, agent.Errorf(agent.BadRequest, "", "The workspace %s cannot be opened: %v.", a.Root, err)
	}
	mended, err := ws.Recover(ctx)
	if err != nil {
		return nil, errors.Join(agent.Errorf(agent.Damaged, "", "An interrupted change of files cannot be mended: %v.", err), ws.Close())
	}
	a.Repairs = slices.Concat(a.Repairs, mended, h.models.warnings())
	reg, err := h.registry(ws)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("put the tools together: %w", err), ws.Close())
	}
	system := loop.BuildPrompt(a.Instructions, loop.Environment{
		Root: a.Root, OS: runtime.GOOS + "/" + runtime.GOARCH, Date: time.Now(), Git: loop.InGit(a.Root),
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, errors.Join(agent.Errorf(agent.Closed, "", "Lakecode is shutting down."), ws.Close())
	}
	c := convo.Start(h.ctx, convo.Config{
		Archive: a, Store: log, Registry: reg, Resolve: h.models.resolve, Redact: h.models.redact, Client: h.clientFor, Log: zlog, System: system,
		Released: func() {
			if err := ws.Close(); err != nil {
				zlog.Warn("close workspace", zap.Error(err))
			}
			h.mu.Lock()
			delete(h.open, a.ID)
			h.mu.Unlock()
		},
	})
	h.open[a.ID] = c
	return c, nil
}

// clientFor returns the client of a snapshot's protocol.
func (h *host) clientFor(s providers.Snapshot) (providers.Client, error) {
	if s.Protocol != providers.ChatCompletions {
		return nil, agent.Errorf(agent.BadModel, "Use a connection with the protocol ChatCompletions.", "The connection %s speaks %s, which is not supported.", s.Name, s.Protocol)
	}
	return h.client, nil
}

// registry registers each tool whose resource is there.
func (h *host) registry(ws *workspace.Workspace) (*tools.Registry, error) {
	var reg tools.Registry
	find := search.Config{Workspace: ws, Git: h.git, Run: h.capture, UserRules: userRules()}
	rules, err := search.NewRules(find)
	if err != nil {
		return nil, err
	}
	fileTools, err := files.Tools(files.Config{Workspace: ws, Ignored: rules.Ignored})
	if err != nil {
		return nil, err
	}
	searchTools, err := search.New(find)
	if err != nil {
		return nil, err
	}
	bash, err := shell.New(shell.Config{Workspace: ws, Proc: h.proc, Docs: func() []string { return ws.Dirty(h.ctx) }})
	if err != nil {
		return nil, err
	}
	question, err := tools.NewAsk()
	if err != nil {
		return nil, err
	}
	return &reg, reg.Add(append(append(fileTools, searchTools...), bash, question)...)
}
