package server

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/lakecode/lakecode/agent"
	"github.com/lakecode/lakecode/lsp/wire"
)

// closeTime bounds how long conversation/close waits for the final save.
const closeTime = 10 * time.Second

// conversation is one that this connection has open.
type conversation struct {
	agent.Conversation
	id      string
	epoch   string
	lane    *lane
	release func() // of the human; never nil
	pump    *pump
	past    bool // the status forgot it; guarded by the status
}

// leave ends what the connection holds of a conversation, not the conversation.
func (c *conversation) leave() {
	c.pump.stop()
	c.release()
}

// adopt enters a conversation into the table, once, and begins to watch it.
func (s *Server) adopt(c agent.Conversation) (wire.OpenResult, error) {
	state := c.State()
	result := wire.OpenResult{ConversationID: state.Session, State: StateOf(state)}
	s.mu.Lock()
	old := s.open[state.Session]
	s.mu.Unlock()
	if old != nil && old.Conversation == c {
		return result, nil
	}
	entry := &conversation{
		Conversation: c, id: state.Session, epoch: state.Epoch, release: func() {},
		lane: &lane{spawn: s.spawn, log: s.log},
	}
	if s.life.editor().offer.Cards {
		entry.release = c.Attach()
	}
	entry.pump = &pump{s: s, c: entry}

	s.mu.Lock()
	old = s.open[state.Session] // two requests may have opened it at once
	useless := s.ended || old != nil && old.Conversation == c
	if !useless {
		s.open[entry.id] = entry
	}
	ended := s.ended
	s.mu.Unlock()
	switch {
	case useless:
		entry.release()
	case old != nil:
		old.leave() // it was closed, and opened anew
		s.status.forget(old)
	}
	if ended {
		return wire.OpenResult{}, errClosed
	}
	if !useless {
		s.status.update(entry, state)
		entry.pump.watch(state.Seq)
	}
	return result, nil
}

// find returns an open conversation.
func (s *Server) find(id string) (*conversation, error) {
	if id == "" {
		return nil, badParam("conversationId is missing.")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok := s.open[id]; ok {
		return c, nil
	}
	return nil, agent.Errorf(agent.NotFound, "Open it with lakecode/conversation/open.", "The conversation %q is not open on this connection.", id)
}

// command decodes params, makes a command of them and enters it into the lane of
// its conversation.
func command[P any](s *Server, id func(P) string, make func(P) (agent.Command, error), answer func(agent.Receipt) any) method {
	return func(ctx context.Context, params []byte) (any, waiting, error) {
		p, err := decode[P](params)
		if err != nil {
			return nil, nil, err
		}
		c, err := s.find(id(p))
		if err != nil {
			return nil, nil, err
		}
		cmd, err := make(p)
		if err != nil {
			return nil, nil, err
		}
		wait, err := c.lane.enter(ctx, func(ctx context.Context) (any, error) {
			r, err := c.Do(ctx, cmd)
			if err != nil {
				return nil, err
			}
			return answer(r), nil
		})
		return nil, wait, err
	}
}

func accepted(r agent.Receipt) any { return wire.Accepted{Seq: r.Seq} }

func submitted(r agent.Receipt) any {
	return wire.SubmitResult{TurnID: r.RequestID, Seq: r.Seq, Queued: r.Queued}
}

func submitOf(p wire.SubmitParams) (agent.Command, error) {
	if strings.TrimSpace(p.Text) == "" {
		return nil, badParam("text is empty.")
	}
	switch mode := agent.Mode(p.Mode); mode {
	case "", agent.Build, agent.Plan, agent.Research:
		return agent.Submit{Text: p.Text, Mode: mode, Model: choiceOf(p.Model), ClientRequestID: p.ClientRequestID}, nil
	}
	return nil, badParam("mode must be build, plan or research, not %q.", p.Mode)
}

func resolveOf(p wire.ResolveParams) (agent.Command, error) {
	if p.InteractionID == "" {
		return nil, badParam("interactionId is missing.")
	}
	if i := slices.IndexFunc(p.Chosen, func(n int) bool { return n < 0 }); i >= 0 {
		return nil, badParam("chosen[%d] must be the index of an option, from 0.", i)
	}
	return agent.Resolve{Interaction: p.InteractionID, Decision: agent.Decision{Chosen: p.Chosen, Text: p.Text, Skip: p.Skip}}, nil
}

func removeOf(p wire.RemoveParams) (agent.Command, error) {
	if p.MessageID == "" {
		return nil, badParam("messageId is missing.")
	}
	return agent.DropQueued{ID: p.MessageID}, nil
}

func renameOf(p wire.RenameParams) (agent.Command, error) {
	if strings.TrimSpace(p.Title) == "" {
		return nil, badParam("title is empty.")
	}
	return agent.Rename{Title: p.Title}, nil
}

// bare makes a command that needs nothing but its conversation.
func bare(c agent.Command) func(wire.ConversationParams) (agent.Command, error) {
	return func(wire.ConversationParams) (agent.Command, error) { return c, nil }
}

func (s *Server) create(_ context.Context, params []byte) (any, waiting, error) {
	p, err := decode[wire.CreateParams](params)
	if err != nil {
		return nil, nil, err
	}
	root, err := s.rootOf(p.Cwd)
	if err != nil {
		return nil, nil, err
	}
	return nil, func(ctx context.Context) (any, error) {
		c, err := s.host.Create(ctx, root)
		if err != nil {
			return nil, err
		}
		return s.adopt(c)
	}, nil
}

// rootOf is the folder that a request means by its cwd.
func (s *Server) rootOf(cwd string) (string, error) {
	if cwd != "" {
		return folder("cwd", cwd)
	}
	if root := s.life.root(); root != "" {
		return root, nil
	}
	return "", badParam("No folder is open in the editor: cwd is needed.")
}

func (s *Server) openStored(ctx context.Context, params []byte) (any, waiting, error) {
	p, err := decode[wire.ConversationParams](params)
	if err != nil {
		return nil, nil, err
	}
	if p.ConversationID == "" {
		return nil, nil, badParam("conversationId is missing.")
	}
	open := func(ctx context.Context) (any, error) {
		c, err := s.host.Open(ctx, p.ConversationID)
		if err != nil {
			return nil, err
		}
		return s.adopt(c)
	}
	// One that is open may be closing: what was asked before comes first.
	if c, err := s.find(p.ConversationID); err == nil {
		wait, err := c.lane.enter(ctx, open)
		return nil, wait, err
	}
	return nil, open, nil
}

// closeOne enters the lane too, so that commands before it are not cut off.
func (s *Server) closeOne(ctx context.Context, params []byte) (any, waiting, error) {
	p, err := decode[wire.ConversationParams](params)
	if err != nil {
		return nil, nil, err
	}
	c, err := s.find(p.ConversationID)
	if err != nil {
		return nil, nil, err
	}
	wait, err := c.lane.enter(ctx, func(ctx context.Context) (any, error) {
		bounded, cancel := context.WithTimeout(ctx, closeTime)
		defer cancel()
		err := c.Close(bounded)
		if bounded.Err() != nil && ctx.Err() == nil {
			err = agent.Errorf(agent.Busy, "It closes by itself when that is done.", "The conversation is still saving.")
		}
		s.mu.Lock()
		if s.open[c.id] == c { // else it was opened again meanwhile
			delete(s.open, c.id)
		}
		s.mu.Unlock()
		c.leave()
		s.status.forget(c)
		return wire.Empty{}, err
	})
	return nil, wait, err
}

func (s *Server) transcript(_ context.Context, params []byte) (any, waiting, error) {
	p, err := decode[wire.TranscriptParams](params)
	if err != nil {
		return nil, nil, err
	}
	if p.Limit < 0 || p.Limit > 200 {
		return nil, nil, badParam("limit must be 1 to 200 turns, not %d.", p.Limit)
	}
	c, err := s.find(p.ConversationID)
	if err != nil {
		return nil, nil, err
	}
	return nil, func(ctx context.Context) (any, error) {
		page, state, err := c.Snapshot(ctx, p.Before, p.Limit)
		if err != nil {
			return nil, err
		}
		out := wire.TranscriptResult{Turns: make([]wire.Turn, 0, len(page.Turns)), More: page.More, State: StateOf(state)}
		for _, t := range page.Turns {
			out.Turns = append(out.Turns, TurnOf(t))
		}
		return out, nil
	}, nil
}

func (s *Server) states(_ context.Context, params []byte) (any, waiting, error) {
	p, err := decode[wire.StateGetParams](params)
	if err != nil {
		return nil, nil, err
	}
	out := wire.StateGetResult{States: []wire.State{}}
	if p.ConversationID != "" {
		c, err := s.find(p.ConversationID)
		if err != nil {
			return nil, nil, err
		}
		out.States = append(out.States, StateOf(c.State()))
		return out, nil, nil
	}
	s.mu.Lock()
	all := make([]*conversation, 0, len(s.open))
	for _, c := range s.open {
		all = append(all, c)
	}
	s.mu.Unlock()
	slices.SortFunc(all, func(a, b *conversation) int { return strings.Compare(a.id, b.id) })
	for _, c := range all {
		out.States = append(out.States, StateOf(c.State()))
	}
	return out, nil, nil
}
