package server

import (
	"context"
	"encoding/json"

	"go.lsp.dev/protocol"

	"github.com/lakecode/lakecode/agent"
	"github.com/lakecode/lakecode/lsp/wire"
)

// table lists the requests that are answered.
func (s *Server) table() map[string]method {
	onlyID := func(p wire.ConversationParams) string { return p.ConversationID }
	t := map[string]method{
		wire.StateGet:               s.states,
		wire.ConversationCreate:     s.create,
		wire.ConversationOpen:       s.openStored,
		wire.ConversationClose:      s.closeOne,
		wire.ConversationSubscribe:  s.subscribe,
		wire.ConversationTranscript: s.transcript,
		wire.SessionList:            s.sessions,
		wire.ModelList:              s.models,
		wire.ConversationSubmit:     command(s, func(p wire.SubmitParams) string { return p.ConversationID }, submitOf, submitted),
		wire.ConversationStop:       command(s, onlyID, bare(agent.Stop{}), accepted),
		wire.ConversationRetrySave:  command(s, onlyID, bare(agent.RetrySave{}), accepted),
		wire.ConversationRename:     command(s, func(p wire.RenameParams) string { return p.ConversationID }, renameOf, accepted),
		wire.InteractionResolve:     command(s, func(p wire.ResolveParams) string { return p.ConversationID }, resolveOf, accepted),
		wire.QueueResume:            command(s, onlyID, bare(agent.ResumeQueue{}), accepted),
		wire.QueueRemove:            command(s, func(p wire.RemoveParams) string { return p.ConversationID }, removeOf, accepted),
	}
	commands := map[string]method{}
	for name, m := range t {
		commands[wire.Command(name)] = m
	}
	t[protocol.MethodWorkspaceExecuteCommand] = execute(commands)
	t[protocol.MethodInitialize] = s.initialize
	t[protocol.MethodShutdown] = s.shutdown
	return t
}

// execute handles workspace/executeCommand: every request under a command's
// name, for editors that cannot send requests of our own.
func execute(commands map[string]method) method {
	return func(ctx context.Context, params []byte) (any, waiting, error) {
		p, err := decode[struct {
			Command   string            `json:"command"`
			Arguments []json.RawMessage `json:"arguments"`
		}](params)
		if err != nil {
			return nil, nil, err
		}
		m, ok := commands[p.Command]
		if !ok {
			return nil, nil, badParam("command: Lakecode has no command %q.", p.Command)
		}
		if len(p.Arguments) > 1 {
			return nil, nil, badParam("arguments must be one object, not %d values.", len(p.Arguments))
		}
		var argument []byte
		if len(p.Arguments) == 1 {
			argument = p.Arguments[0]
		}
		var text string
		if json.Unmarshal(argument, &text) == nil { // typed by hand, where the editor sends strings
			argument = []byte(text)
		}
		return m(ctx, argument)
	}
}

func (s *Server) sessions(_ context.Context, params []byte) (any, waiting, error) {
	p, err := decode[wire.SessionListParams](params)
	if err != nil {
		return nil, nil, err
	}
	root := ""
	if !p.All {
		if root, err = s.rootOf(p.Cwd); err != nil {
			return nil, nil, err
		}
	}
	return nil, func(ctx context.Context) (any, error) {
		all, err := s.host.Sessions(ctx, root)
		if err != nil {
			return nil, err
		}
		out := wire.SessionListResult{Sessions: make([]wire.Session, 0, len(all))}
		for _, one := range all {
			out.Sessions = append(out.Sessions, sessionOf(one))
		}
		return out, nil
	}, nil
}

func (s *Server) models(_ context.Context, params []byte) (any, waiting, error) {
	if _, err := decode[wire.Empty](params); err != nil {
		return nil, nil, err
	}
	return nil, func(ctx context.Context) (any, error) {
		catalog, err := s.host.Models(ctx)
		if err != nil {
			return nil, err
		}
		s.status.setProblem(catalog.Problem)
		out := wire.ModelListResult{Models: make([]wire.ModelInfo, 0, len(catalog.Models)), Problem: catalog.Problem}
		for _, m := range catalog.Models {
			out.Models = append(out.Models, wire.ModelInfo{
				Model: modelOf(m.Choice), ProviderName: m.ProviderName, ContextTokens: m.Context, Known: m.Known,
			})
		}
		return out, nil
	}, nil
}
