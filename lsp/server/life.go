package server

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.uber.org/zap"

	"github.com/lakecode/lakecode/lsp/overlay"
	"github.com/lakecode/lakecode/lsp/wire"
)

// phase is how far the life cycle is (LSP 3.18, Server lifecycle).
type phase int

const (
	fresh phase = iota
	serving
	shut
)

// client is what the editor said at initialize. It does not change afterwards.
type client struct {
	name         string
	offer        wire.Offer
	custom       bool // a version of the custom protocol is common
	progress     bool // window.workDoneProgress
	serverStatus bool // experimental.serverStatusNotification
}

// life is the life cycle of a connection. Safe for concurrent use.
type life struct {
	mu      sync.Mutex // guards all below
	phase   phase
	gone    bool // exit came
	client  client
	folders []string // absolute paths
}

func (l *life) allows(name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.phase == fresh && name != protocol.MethodInitialize:
		return refuse(wire.ServerNotInitialized, "The first request must be initialize, not %s.", name)
	case l.phase == serving && name == protocol.MethodInitialize:
		return refuse(wire.InvalidRequest, "initialize came a second time.")
	case l.phase == shut:
		return refuse(wire.InvalidRequest, "Nothing but exit may follow shutdown, not %s.", name)
	}
	return nil
}

func (l *life) exit()        { l.mu.Lock(); l.gone = true; l.mu.Unlock() }
func (l *life) exited() bool { l.mu.Lock(); defer l.mu.Unlock(); return l.gone }
func (l *life) clean() bool  { l.mu.Lock(); defer l.mu.Unlock(); return l.phase == shut }

func (l *life) shutdown() { l.mu.Lock(); l.phase = shut; l.mu.Unlock() }

func (l *life) begin(c client, folders []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.phase, l.client, l.folders = serving, c, folders
}

func (l *life) editor() client { l.mu.Lock(); defer l.mu.Unlock(); return l.client }

// root is the folder to work in where a request names none.
func (l *life) root() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.folders) == 0 {
		return ""
	}
	return l.folders[0]
}

// greeting is the part of InitializeParams (LSP 3.18) that we use. It is decoded
// apart from the rest, so that no oddity elsewhere keeps an editor out.
type greeting struct {
	ProcessID  *int `json:"processId"`
	ClientInfo struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	} `json:"clientInfo"`
	RootURI      string       `json:"rootUri"`
	RootPath     string       `json:"rootPath"`
	Folders      []lspFolder  `json:"workspaceFolders"`
	Options      offerHolder  `json:"initializationOptions"`
	Capabilities capabilities `json:"capabilities"`
}

type capabilities struct {
	General struct {
		Encodings []string `json:"positionEncodings"`
	} `json:"general"`
	Window struct {
		Progress bool `json:"workDoneProgress"`
	} `json:"window"`
	Experimental offerHolder `json:"experimental"`
}

type lspFolder struct {
	URI string `json:"uri"`
}

// offerHolder takes our fields out of a value that belongs to everybody and may
// be of any form.
type offerHolder struct {
	offer        *wire.Offer
	serverStatus bool
	problem      error
}

// UnmarshalJSON implements json.Unmarshaler; it keeps its errors to itself.
func (o *offerHolder) UnmarshalJSON(data []byte) error {
	var all struct {
		Lakecode     json.RawMessage `json:"lakecode"`
		ServerStatus any             `json:"serverStatusNotification"`
	}
	if json.Unmarshal(data, &all) != nil {
		return nil // another form; not ours
	}
	o.serverStatus = all.ServerStatus == true
	if len(all.Lakecode) > 0 && string(all.Lakecode) != "null" {
		offer, err := decode[wire.Offer](all.Lakecode)
		o.offer, o.problem = &offer, err
	}
	return nil
}

func (s *Server) initialize(_ context.Context, params []byte) (any, waiting, error) {
	g, err := decode[greeting](params)
	if err != nil {
		return nil, nil, err
	}
	c := client{
		name:     g.ClientInfo.Name,
		progress: g.Capabilities.Window.Progress, serverStatus: g.Capabilities.Experimental.serverStatus,
	}
	s.negotiate(&c, g.Capabilities.Experimental, g.Options)
	enc := overlay.UTF16
	if slices.Contains(g.Capabilities.General.Encodings, string(overlay.UTF8)) {
		enc = overlay.UTF8
	}
	s.docs.SetEncoding(enc)
	s.life.begin(c, s.foldersOf(g))
	s.log.Info("initialize", zap.String("client", g.ClientInfo.Name), zap.String("clientVersion", g.ClientInfo.Version),
		zap.Bool("custom", c.custom), zap.String("encoding", string(enc)), zap.String("root", s.life.root()))
	if g.ProcessID != nil {
		s.watchParent(*g.ProcessID)
	}
	return s.greet(c, enc), nil, nil
}

// negotiate finds the common version. An offer in experimental counts before one
// in initializationOptions.
func (s *Server) negotiate(c *client, places ...offerHolder) {
	for _, p := range places {
		if p.offer == nil {
			continue
		}
		if p.problem == nil && slices.Contains(p.offer.Versions, wire.Version) {
			c.offer, c.custom = *p.offer, true
			return
		}
		text := "This Lakecode speaks version 1 of its protocol, which the editor's plugin does not. It is served as plain LSP: update the plugin or lakecode."
		if p.problem != nil {
			text = "The editor's plugin made an offer that cannot be read and is served as plain LSP: " + p.problem.Error()
		}
		s.after = append(s.after, func() { s.showMessage(protocol.MessageTypeWarning, text) })
		return
	}
}

// foldersOf lists the workspace folders, the first of which is the root.
func (s *Server) foldersOf(g greeting) []string {
	var out []string
	add := func(name string) {
		if name == "" {
			return
		}
		p, err := folder("workspace folder", name)
		if err != nil {
			s.log.Warn("workspace folder was left out", zap.Error(err))
		} else if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	for _, f := range g.Folders {
		add(f.URI)
	}
	if len(out) == 0 {
		add(g.RootURI)
	}
	if len(out) == 0 {
		add(g.RootPath)
	}
	if len(out) == 0 {
		add(s.dir)
	}
	return out
}

// greet is the result of initialize.
func (s *Server) greet(c client, enc overlay.Encoding) *protocol.InitializeResult {
	yes, incremental := true, protocol.TextDocumentSyncKindIncremental
	var commands []string
	for _, m := range wire.Methods() {
		if m.Direction == wire.Request {
			commands = append(commands, wire.Command(m.Name))
		}
	}
	out := &protocol.InitializeResult{
		ServerInfo: protocol.ServerInfo{Name: "lakecode", Version: protocol.NewOptional(s.version)},
		Capabilities: protocol.ServerCapabilities{
			PositionEncoding: protocol.PositionEncodingKind(enc),
			TextDocumentSync: &protocol.TextDocumentSyncOptions{OpenClose: &yes, Change: &incremental, Save: &protocol.SaveOptions{}},
			Workspace: &protocol.WorkspaceOptions{WorkspaceFolders: &protocol.WorkspaceFoldersServerCapabilities{
				Supported: &yes, ChangeNotifications: protocol.Boolean(true),
			}},
			ExecuteCommandProvider: protocol.ExecuteCommandOptions{Commands: commands},
		},
	}
	if c.custom {
		raw, err := json.Marshal(map[string]wire.Answer{"lakecode": {Version: wire.Version, Features: wire.Features()}})
		if err == nil {
			out.Capabilities.Experimental = protocol.LSPAny(raw)
		}
	}
	return out
}

// initialized looks at what a person should know from the start.
func (s *Server) initialized([]byte) error {
	s.spawn(s.checkModels)
	return nil
}

func (s *Server) shutdown(context.Context, []byte) (any, waiting, error) {
	s.life.shutdown()
	return jsonrpc2.RawMessage("null"), nil, nil
}

// foldersChanged handles workspace/didChangeWorkspaceFolders.
func (s *Server) foldersChanged(params []byte) error {
	p, err := decode[struct {
		Event struct {
			Added   []lspFolder `json:"added"`
			Removed []lspFolder `json:"removed"`
		} `json:"event"`
	}](params)
	if err != nil {
		return err
	}
	s.life.mu.Lock()
	defer s.life.mu.Unlock()
	for _, f := range p.Event.Removed {
		if name, err := folder("removed folder", f.URI); err == nil {
			s.life.folders = slices.DeleteFunc(slices.Clone(s.life.folders), func(have string) bool { return have == name })
		}
	}
	for _, f := range p.Event.Added {
		if name, err := folder("added folder", f.URI); err == nil && !slices.Contains(s.life.folders, name) {
			s.life.folders = append(s.life.folders, name)
		}
	}
	return nil
}
