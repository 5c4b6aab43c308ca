//go:build !windows

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/lakecode/lakecode/agent"
	"github.com/lakecode/lakecode/providers"
	"github.com/lakecode/lakecode/providers/profiles"
	"github.com/lakecode/lakecode/providers/rehearsal"
)

// rehearsalID is the built-in connection to a scripted model. It is used only
// when it is named. Its models are "tour" and paths of script files.
const (
	rehearsalID   = "rehearsal"
	rehearsalTour = "tour"
)

// models resolves choices. providers.json is read anew each time, so an edit of
// it takes effect with the next message.
type models struct {
	ctx  context.Context // of the rehearsal servers
	file func() (string, error)
	log  *zap.Logger

	mu      sync.Mutex // guards all below
	servers []*rehearsal.Server
	scripts map[string]*rehearsal.Server // by path, the one that is being played
	read    os.FileInfo                  // of the providers.json that was read last for its keys
	known   []*profiles.Registry         // whose keys are hidden; never changed in place
}

func newModels(ctx context.Context, file func() (string, error), log *zap.Logger) *models {
	return &models{ctx: ctx, file: file, log: log, scripts: map[string]*rehearsal.Server{}}
}

func (m *models) load() (*profiles.Registry, error) {
	file, err := m.file()
	if err != nil {
		return nil, err
	}
	return profiles.Load(file)
}

// resolve implements convo.Config.Resolve.
func (m *models) resolve(_ context.Context, c agent.Choice) (providers.Snapshot, error) {
	if c.Provider == rehearsalID {
		return m.rehearse(c)
	}
	file, err := m.file()
	if err != nil {
		return providers.Snapshot{}, homeless(err)
	}
	reg, err := profiles.Load(file)
	if err != nil {
		return providers.Snapshot{}, &agent.Error{Code: agent.Damaged, Text: sentence(err.Error()), Next: "The file is left as it is; mend it by hand.", Err: err}
	}
	snap, err := reg.Resolve(c.Provider, c.Model, c.Effort)
	if err != nil {
		return providers.Snapshot{}, unusable(err)
	}
	return snap, nil
}

// rehearse serves the script. The tour begins anew with each message; a file is
// played through, over several messages, and then begins anew.
func (m *models) rehearse(c agent.Choice) (providers.Snapshot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	srv := m.scripts[c.Model]
	if srv == nil || len(srv.Unplayed()) == 0 {
		script := rehearsal.Tour()
		var err error
		if c.Model != rehearsalTour {
			script, err = readScript(c.Model)
		}
		if err != nil {
			return providers.Snapshot{}, agent.Errorf(agent.BadModel, `Use the model "tour" or the absolute path of a script.`, "The rehearsal %q cannot be used: %v.", c.Model, err)
		}
		srv, err = rehearsal.Start(m.ctx, script, rehearsal.Options{Failed: func(err error) { m.log.Warn("rehearsal", zap.Error(err)) }})
		if err != nil {
			return providers.Snapshot{}, agent.Errorf(agent.BadModel, "", "The rehearsal cannot be served: %v.", err)
		}
		m.servers = append(m.servers, srv)
		if c.Model != rehearsalTour {
			m.scripts[c.Model] = srv
		}
	}
	return providers.Snapshot{
		Provider: rehearsalID, Name: "Rehearsal (a script, not a model)", Protocol: providers.ChatCompletions,
		BaseURL: srv.URL(), Model: c.Model,
	}, nil
}

// unusable is the refusal of a choice.
func unusable(err error) error {
	out := &agent.Error{Code: agent.BadModel, Text: sentence(err.Error()), Err: err}
	var pe *providers.Error
	if errors.As(err, &pe) {
		out.Text, out.Next = sentence(pe.Message), pe.Next
		switch {
		case pe.Model != "":
			out.Text = fmt.Sprintf("The model %q of %q cannot be used: %s.", pe.Model, pe.Provider, pe.Message)
		case pe.Provider != "":
			out.Text = fmt.Sprintf("The connection %q cannot be used: %s.", pe.Provider, pe.Message)
		}
	}
	return out
}

func readScript(path string) (rehearsal.Script, error) {
	if !filepath.IsAbs(path) {
		return rehearsal.Script{}, errors.New("the path is not absolute")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return rehearsal.Script{}, errors.New(reason(err))
	}
	return rehearsal.Parse(filepath.Base(path), string(text))
}

// maxKeys bounds how many states of providers.json redact remembers.
const maxKeys = 16

// redact hides every key that providers.json holds or has held while this
// process ran: a key that was replaced may still be good.
func (m *models) redact(text string) string {
	for _, reg := range m.keys() {
		text = reg.Redact(text)
	}
	return text
}

// keys reads the file only when it is not the one that was read last.
func (m *models) keys() []*profiles.Registry {
	file, err := m.file()
	if err != nil {
		return nil
	}
	info, err := os.Stat(file)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil || m.read != nil && os.SameFile(m.read, info) && m.read.ModTime().Equal(info.ModTime()) && m.read.Size() == info.Size() {
		return m.known
	}
	if reg, err := profiles.Load(file); err == nil {
		m.read = info
		m.known = append(slices.Clone(m.known), reg)
		m.known = m.known[max(0, len(m.known)-maxKeys):]
	}
	return m.known
}

// warnings are sentences about providers.json that a person should read. A file
// that cannot be used is reported by the first message.
func (m *models) warnings() []string {
	reg, err := m.load()
	if err != nil {
		return nil
	}
	return reg.Warnings()
}

func (m *models) list(context.Context) agent.Catalog {
	cat := agent.Catalog{Models: []agent.ModelInfo{}}
	reg, err := m.load()
	if err != nil {
		cat.Problem = fmt.Sprint(err)
	} else {
		for _, e := range reg.List() {
			cat.Models = append(cat.Models, agent.ModelInfo{
				Choice: agent.Choice{Provider: e.Provider, Model: e.Model}, ProviderName: e.Name, Context: e.Limits.Context, Known: e.Known,
			})
		}
	}
	cat.Models = append(cat.Models, agent.ModelInfo{
		Choice: agent.Choice{Provider: rehearsalID, Model: rehearsalTour}, ProviderName: "Rehearsal (a script, not a model)", Known: true,
	})
	return cat
}

func (m *models) close() {
	m.mu.Lock()
	servers := m.servers
	m.servers = nil
	m.mu.Unlock()
	for _, s := range servers {
		s.Close()
	}
}
