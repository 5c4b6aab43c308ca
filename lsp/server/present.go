package server

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.lsp.dev/protocol"
	"go.uber.org/zap"

	"github.com/lakecode/lakecode/agent"
)

// Bounds of showing progress.
const (
	createTime = 5 * time.Second // for the editor to answer; after that it gets no progress any more
	titleRunes = 80
)

// presenter shows running turns as $/progress (LSP 3.18, Work Done Progress) and
// tells an editor without our protocol what a person must know. It is the only
// one that asks the editor and waits.
type presenter struct {
	s    *Server
	wake chan struct{} // capacity 1
	wait time.Duration // createTime; shorter in a test

	mu    sync.Mutex // guards all below; never held across a call
	queue []step
	stop  map[string]func() // by token: stops the running turn
	off   bool              // the editor does not answer
}

// step is one thing to show. An empty title ends the progress.
type step struct {
	token string
	begin bool
	title string
}

// see never blocks. Reports of one turn that were not shown yet give way to the
// newest, so the queue is as long as there are turns.
func (p *presenter) see(c *conversation, e agent.Event) {
	st := step{token: "lakecode/" + c.id + "/" + e.Request}
	switch f := e.Fact.(type) {
	case agent.TurnStarted:
		st.begin, st.title = true, oneLine(f.Text)
	case agent.CallProposed:
		st.title = oneLine(f.Tool + " " + f.Title)
	case agent.TurnFinished:
		p.failed(f)
	case agent.Notice:
		p.notice(f)
		return
	default:
		return
	}
	if p.s.life.editor().progress {
		p.put(c, st)
	}
}

func (p *presenter) put(c *conversation, st step) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.off:
		return
	case st.begin:
		p.stop[st.token] = func() { p.stopTurn(c) }
	case st.title == "":
		delete(p.stop, st.token)
	}
	if n := len(p.queue); n > 0 && !st.begin && p.queue[n-1].token == st.token && !p.queue[n-1].begin {
		p.queue[n-1] = st
	} else {
		p.queue = append(p.queue, st)
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// run shows the steps in order.
func (p *presenter) run() {
	shown := map[string]bool{}
	for {
		p.mu.Lock()
		var st step
		have := len(p.queue) > 0
		if have {
			st, p.queue = p.queue[0], p.queue[1:]
		}
		p.mu.Unlock()
		if !have {
			select {
			case <-p.wake:
				continue
			case <-p.s.ctx.Done():
				return
			}
		}
		if err := p.show(shown, st); err != nil {
			p.s.log.Info("progress is not shown any more", zap.Error(err))
			p.mu.Lock()
			p.off, p.queue, p.stop = true, nil, nil
			p.mu.Unlock()
			return
		}
	}
}

// show returns an error when the editor does not answer, or has gone.
func (p *presenter) show(shown map[string]bool, st step) error {
	switch {
	case st.begin:
		ctx, cancel := context.WithTimeout(p.s.ctx, p.wait)
		defer cancel()
		create := &protocol.WorkDoneProgressCreateParams{Token: protocol.String(st.token)}
		if _, err := p.s.conn.Call(ctx, protocol.MethodWindowWorkDoneProgressCreate, create, nil); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			p.s.log.Debug("the editor refuses progress", zap.Error(err))
			return nil
		}
		shown[st.token] = true
		return p.progress(st.token, map[string]any{"kind": "begin", "title": "Lakecode", "message": st.title, "cancellable": true})
	case !shown[st.token]:
		return nil
	case st.title != "":
		return p.progress(st.token, map[string]any{"kind": "report", "message": st.title, "cancellable": true})
	}
	delete(shown, st.token)
	return p.progress(st.token, map[string]any{"kind": "end"})
}

func (p *presenter) progress(token string, value map[string]any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return p.s.notify(protocol.MethodProgress, &protocol.ProgressParams{Token: protocol.String(token), Value: protocol.LSPAny(raw)})
}

// cancelled handles window/workDoneProgress/cancel: the person stops the turn.
func (p *presenter) cancelled(params []byte) error {
	n, err := decode[struct {
		Token any `json:"token"`
	}](params)
	if err != nil {
		return err
	}
	p.mu.Lock()
	stop := p.stop[fmt.Sprint(n.Token)]
	p.mu.Unlock()
	if stop != nil {
		stop()
	}
	return nil
}

func (p *presenter) stopTurn(c *conversation) {
	_, err := c.lane.enter(p.s.ctx, func(ctx context.Context) (any, error) {
		_, err := c.Do(ctx, agent.Stop{})
		if err != nil {
			p.s.log.Warn("a turn was not stopped", zap.String("session", c.id), zap.Error(err))
		}
		return nil, err
	})
	if err != nil {
		p.s.log.Warn("a turn was not stopped", zap.String("session", c.id), zap.Error(err))
	}
}

func (p *presenter) failed(f agent.TurnFinished) {
	if f.Error == nil {
		return
	}
	text := "Lakecode: " + f.Error.Message
	if f.Error.Next != "" {
		text += " " + f.Error.Next
	}
	p.s.logMessage(protocol.MessageTypeError, text)
	if !p.s.life.editor().custom {
		p.s.showMessage(protocol.MessageTypeError, text)
	}
}

func (p *presenter) notice(f agent.Notice) {
	if f.Level == "info" || p.s.life.editor().custom {
		return
	}
	kind := protocol.MessageTypeWarning
	if f.Level == "error" {
		kind = protocol.MessageTypeError
	}
	p.s.showMessage(kind, f.Text)
}

func (s *Server) showMessage(kind protocol.MessageType, text string) {
	s.tell(protocol.MethodWindowShowMessage, &protocol.ShowMessageParams{Type: kind, Message: text})
}

func (s *Server) logMessage(kind protocol.MessageType, text string) {
	s.tell(protocol.MethodWindowLogMessage, &protocol.LogMessageParams{Type: kind, Message: text})
}

// tell sends a notification on whose loss nothing hangs.
func (s *Server) tell(name string, params any) {
	if err := s.notify(name, params); err != nil {
		s.log.Debug("notification was not sent", zap.String("method", name), zap.Error(err))
	}
}

// oneLine shortens a text to a title.
func oneLine(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	if r := []rune(text); len(r) > titleRunes {
		return string(r[:titleRunes-1]) + "…"
	}
	return text
}
