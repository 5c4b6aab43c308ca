//go:build !windows

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/singleflight"

	"github.com/lakecode/lakecode/agent"
	"github.com/lakecode/lakecode/agent/convo"
	"github.com/lakecode/lakecode/agent/loop"
	"github.com/lakecode/lakecode/lsp/overlay"
	"github.com/lakecode/lakecode/providers/openai"
	"github.com/lakecode/lakecode/session"
	"github.com/lakecode/lakecode/tools/proc"
	"github.com/lakecode/lakecode/tools/workspace"
)

// host implements agent.Host: it puts conversations together and keeps the ones
// that are open. Each request that needs the home folder opens it, so that a
// server with an unusable home still answers and says why, and one whose home is
// mended or made anew goes on.
type host struct {
	ctx    context.Context // life of the conversations
	cancel context.CancelFunc
	docs   *overlay.Store
	git    string           // absolute path; empty: none
	locks  *workspace.Locks // one for all conversations
	proc   *proc.Supervisor
	client *openai.Client
	models *models
	log    *zap.Logger
	opens  singleflight.Group

	mu     sync.Mutex // guards open and closed; never held across a call out
	open   map[session.ID]*convo.Convo
	closed bool
}

// lakecodeHome is where everything of a person is kept.
func lakecodeHome() (string, error) {
	if h := os.Getenv("LAKECODE_HOME"); h != "" {
		if !filepath.IsAbs(h) {
			return "", fmt.Errorf("LAKECODE_HOME must be an absolute path, not %q; set it to one, or leave it out for ~/.lakecode", h)
		}
		return filepath.Clean(h), nil
	}
	h, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no home folder: %w; set LAKECODE_HOME to a folder of yours", err)
	}
	return filepath.Join(h, ".lakecode"), nil
}

func openHome() (*session.Home, error) {
	dir, err := lakecodeHome()
	if err != nil {
		return nil, err
	}
	return session.OpenHome(dir)
}

func newHost(ctx context.Context, docs *overlay.Store, log *zap.Logger) *host {
	ctx, cancel := context.WithCancel(ctx)
	h := &host{
		ctx: ctx, cancel: cancel, docs: docs, git: gitPath(), log: log,
		open: map[session.ID]*convo.Convo{}, locks: &workspace.Locks{},
		proc: proc.New(proc.Config{Run: runMark(), Reaper: []string{"/proc/self/exe", "reap"}, Env: os.Environ(), Log: log}),
	}
	h.client = openai.New(openai.Config{})
	h.models = newModels(ctx, h.providersFile, log)
	return h
}

func (h *host) providersFile() (string, error) {
	home, err := openHome()
	if err != nil {
		return "", err
	}
	return home.Providers(), nil
}

func (h *host) store() (*session.Store, error) {
	home, err := openHome()
	if err != nil {
		return nil, homeless(err)
	}
	return session.NewStore(home), nil
}

// homeless is the refusal for want of a home folder; the error says what to do.
func homeless(err error) error {
	return &agent.Error{Code: agent.Damaged, Text: sentence(err.Error()), Err: err}
}

// Create implements agent.Host.
func (h *host) Create(ctx context.Context, root string) (agent.Conversation, error) {
	real, err := workspaceRoot(root)
	if err != nil {
		return nil, err
	}
	store, err := h.store()
	if err != nil {
		return nil, err
	}
	user, _ := os.UserHomeDir()
	in, problems := loop.Instructions(ctx, user, real)
	log, archive, err := store.Create(ctx, real, in)
	if err != nil {
		return nil, sessionError(err)
	}
	archive.Repairs = append(archive.Repairs, problems...)
	return h.begin(ctx, log, archive)
}

func workspaceRoot(root string) (string, error) {
	bad := func(why string) error {
		return agent.Errorf(agent.BadRequest, "Name an existing folder.", "The workspace %q cannot be used: %s.", root, why)
	}
	if !filepath.IsAbs(root) {
		return "", bad("it is not an absolute path")
	}
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		return "", bad(reason(err))
	}
	if st, err := os.Stat(real); err != nil || !st.IsDir() {
		return "", bad("it is not a folder")
	}
	return real, nil
}

// reason drops the path that an *fs.PathError repeats.
func reason(err error) string {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}

// Open implements agent.Host. Two callers that open one session at the same
// time get the same conversation. One that is closing is opened again after its
// end.
func (h *host) Open(ctx context.Context, id string) (agent.Conversation, error) {
	v, err, _ := h.opens.Do(id, func() (any, error) {
		if c := h.lookup(session.ID(id)); c != nil {
			if !c.Closing() {
				return c, nil
			}
			if err := c.Close(ctx); err != nil { // it holds the lock until then
				return nil, err
			}
		}
		store, err := h.store()
		if err != nil {
			return nil, err
		}
		log, archive, err := store.Open(ctx, session.ID(id))
		if err != nil {
			return nil, sessionError(err)
		}
		repair := loop.Repair(archive, func() session.End { return session.End{How: session.Crashed, Time: time.Now().UTC()} })
		if len(repair) > 0 {
			if err := log.Append(ctx, true, repair...); err != nil {
				return nil, errors.Join(sessionError(err), log.Close())
			}
			for _, r := range repair {
				if err := archive.Apply(r); err != nil {
					return nil, errors.Join(err, log.Close())
				}
			}
			archive.Repairs = append(archive.Repairs, "The last turn was cut off when Lakecode ended; its unfinished calls are marked.")
		}
		return h.begin(ctx, log, archive)
	})
	if err != nil {
		return nil, err
	}
	return v.(*convo.Convo), nil
}

func (h *host) lookup(id session.ID) *convo.Convo {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open[id]
}

// sessionError turns the store's errors into what a person is told.
func sessionError(err error) error {
	var locked *session.LockedError
	var damaged *session.DamagedError
	var newer *session.NewerError
	switch {
	case errors.Is(err, session.ErrNotFound):
		return &agent.Error{Code: agent.NotFound, Text: "There is no such session.", Next: "List the sessions to see what there is.", Err: err}
	case errors.As(err, &locked):
		return &agent.Error{Code: agent.Locked, Text: upper(locked.Error()), Err: err}
	case errors.As(err, &damaged):
		return &agent.Error{Code: agent.Damaged, Text: upper(damaged.Error()), Err: err}
	case errors.As(err, &newer):
		return &agent.Error{Code: agent.Damaged, Text: upper(newer.Error()), Err: err}
	}
	return &agent.Error{Code: agent.NotSaved, Text: "The session cannot be stored or read: " + err.Error() + ".", Next: "Check the home folder of Lakecode: space, owner and permissions.", Err: err}
}

func upper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// sentence makes one of an error's text, with one full stop.
func sentence(s string) string { return upper(strings.TrimRight(s, ".")) + "." }

// Sessions implements agent.Host.
func (h *host) Sessions(ctx context.Context, root string) ([]agent.SessionInfo, error) {
	store, err := h.store()
	if err != nil {
		return nil, err
	}
	if root != "" {
		if root, err = workspaceRoot(root); err != nil {
			return nil, err
		}
	}
	list, err := store.List(ctx, root)
	if err != nil {
		return nil, sessionError(err)
	}
	out := make([]agent.SessionInfo, 0, len(list))
	for _, s := range list {
		if s.Turns+s.Queued == 0 && s.Problem == "" {
			continue // a chat that was opened and left
		}
		out = append(out, agent.SessionInfo{
			ID: string(s.ID), Root: s.Root, Title: s.Title, Created: s.Created, Updated: s.Updated,
			Turns: s.Turns, Queued: s.Queued, Open: h.lookup(s.ID) != nil, Problem: s.Problem,
		})
	}
	return out, nil
}

// Models implements agent.Host.
func (h *host) Models(ctx context.Context) (agent.Catalog, error) { return h.models.list(ctx), nil }

// Close implements agent.Host: conversations first, since their calls end their
// own children, then whatever child is left.
func (h *host) Close(ctx context.Context) error {
	h.mu.Lock()
	h.closed = true
	var open []*convo.Convo
	for _, c := range h.open {
		open = append(open, c)
	}
	h.mu.Unlock()
	errs := make([]error, len(open))
	var wg sync.WaitGroup
	for i, c := range open {
		wg.Go(func() { errs[i] = c.Close(ctx) })
	}
	wg.Wait()
	h.cancel()
	h.models.close()
	return errors.Join(slices.Concat(errs, []error{h.proc.Close(context.WithoutCancel(ctx))})...)
}
