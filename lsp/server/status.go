package server

import (
	"context"
	"sync"
	"time"

	"go.lsp.dev/protocol"
	"go.uber.org/zap"

	"github.com/lakecode/lakecode/agent"
	"github.com/lakecode/lakecode/lsp/wire"
)

// modelsTime bounds the look at providers.json after initialized.
const modelsTime = 10 * time.Second

// status is the health of the process as the editor last heard it.
type status struct {
	s *Server

	mu      sync.Mutex // guards all below
	of      map[*conversation]summary
	problem string // with providers.json
	last    wire.Status
}

// summary is what counts of a conversation.
type summary struct {
	busy, asks bool
	blocked    string
}

// serverStatus is the notification of that name, an extension of LSP that
// rust-analyzer documents (lsp-extensions, Server Status).
type serverStatus struct {
	Health    string `json:"health"`
	Quiescent bool   `json:"quiescent"`
	Message   string `json:"message,omitzero"`
}

func (k *status) update(c *conversation, st agent.State) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c.past { // what its pump still had
		return
	}
	k.of[c] = summary{busy: st.Phase == agent.Running || st.Phase == agent.Saving, asks: st.Interaction != nil, blocked: st.Blocked}
	k.publish()
}

func (k *status) forget(c *conversation) {
	k.mu.Lock()
	defer k.mu.Unlock()
	c.past = true
	delete(k.of, c)
	k.publish()
}

func (k *status) setProblem(text string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.problem = text
	k.publish()
}

// publish sends what changed; it is called with mu held, so that the last one
// sent is the last one true.
func (k *status) publish() {
	now := wire.Status{Health: "ok", Message: k.problem}
	if k.problem != "" {
		now.Health = "warning"
	}
	for _, c := range k.of {
		if c.busy {
			now.ActiveTurns++
		}
		if c.asks {
			now.PendingInteractions++
		}
		if c.blocked != "" {
			now.Health, now.Message = "error", c.blocked
		}
	}
	if now == k.last {
		return
	}
	k.last = now
	editor := k.s.life.editor()
	if editor.custom {
		k.s.tell(wire.StatusNote, &now)
	}
	if editor.serverStatus {
		k.s.tell("experimental/serverStatus", &serverStatus{Health: now.Health, Quiescent: now.ActiveTurns == 0, Message: now.Message})
	}
}

// checkModels tells from the start what is wrong with providers.json.
func (s *Server) checkModels() {
	ctx, cancel := context.WithTimeout(s.ctx, modelsTime)
	defer cancel()
	catalog, err := s.host.Models(ctx)
	if err != nil {
		s.log.Warn("models could not be listed", zap.Error(err))
		return
	}
	s.status.setProblem(catalog.Problem)
	if catalog.Problem != "" && !s.life.editor().custom {
		s.showMessage(protocol.MessageTypeWarning, catalog.Problem)
	}
}
