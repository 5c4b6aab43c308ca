package profiles

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"sort"
	"strings"

	"github.com/lakecode/lakecode/providers"
)

const (
	openaiCompatible    = "openai-compatible"
	anthropicCompatible = "anthropic-compatible"
	reserved            = "rehearsal" // the scripted model is no connection of the file
)

// efforts are the words for reasoning that the OpenAI protocols know, spec 30.
var efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// Registry is what providers.json says. It never changes; read the file again
// for a newer one. Safe for concurrent use.
type Registry struct {
	path        string
	connections []*connection // in the order of the file
	warnings    []string
}

// Entry is a model that the file names.
type Entry struct {
	Provider, Model string // ids
	Name            string // what a person calls the connection
	ModelName       string // what a person calls the model; the id when not said
	Limits          providers.Limits
	Known           bool   // the file describes it; otherwise its limits mean nothing
	Problem         string // why it cannot be used; empty when it can
}

// List returns the models that the file names, connections in the order of the
// file, models by id. A connection works with other model ids too.
func (r *Registry) List() []Entry {
	var out []Entry
	for _, c := range r.connections {
		for _, id := range c.ids() {
			m := c.models[id]
			e := Entry{
				Provider: c.id, Model: id, Name: c.title(), ModelName: m.name,
				Limits: m.limits, Known: m.defined || m.limits.Context > 0,
			}
			if e.ModelName == "" {
				e.ModelName = id
			}
			if _, err := r.Resolve(c.id, id, ""); err != nil {
				e.Problem = err.Error()
			}
			out = append(out, e)
		}
	}
	return out
}

// minRedacted is the length in bytes below which a key is too likely to be an
// ordinary word to be hidden wherever it stands.
const minRedacted = 8

// Redact hides the keys of the connections in a text that comes from elsewhere,
// as from a tool that came by a copy of the file.
func (r *Registry) Redact(text string) string {
	for _, c := range r.connections {
		if key := c.key.Reveal(); len(key) >= minRedacted && strings.Contains(text, key) {
			text = strings.ReplaceAll(text, key, "[secret]")
		}
	}
	return text
}

// Warnings returns sentences for a person about things that are unsafe and work.
func (r *Registry) Warnings() []string { return slices.Clone(r.warnings) }

// Default returns the only choice there is: of exactly one connection with
// exactly one model marked Manual.
func (r *Registry) Default() (provider, model string, ok bool) {
	if len(r.connections) != 1 {
		return "", "", false
	}
	c := r.connections[0]
	model = c.only()
	return c.id, model, model != ""
}

// Resolve returns the snapshot for a choice. Two empty ids mean the [Registry.Default],
// an empty model alone the only Manual one of the connection. A model that the
// file does not name works with a custom connection; its limits are unknown.
//
// Errors are *providers.Error of kind Misconfigured, and say what to change:
// unknown connection, definition or protocol that this version does not support,
// bad BaseUrl or key, no model, unsupported effort.
func (r *Registry) Resolve(provider, model, effort string) (providers.Snapshot, error) {
	c, err := r.choose(provider, model)
	if err != nil {
		return providers.Snapshot{}, err
	}
	if model == "" {
		if model = c.only(); model == "" {
			return providers.Snapshot{}, c.bad("", fmt.Sprintf("no model is named and there is not exactly one Manual model; its models: %s", quoted(c.ids())),
				"Name a model.")
		}
	}
	if err := c.check(r.path, model); err != nil {
		return providers.Snapshot{}, err
	}
	m := c.models[model]
	if len(m.outputs) > 0 && !slices.Contains(m.outputs, "Text") {
		return providers.Snapshot{}, c.bad(model, "the model writes no text, so it cannot be talked with", "Choose another model.")
	}
	if err := c.allows(model, effort); err != nil {
		return providers.Snapshot{}, err
	}
	limits := m.limits
	limits.Efforts = slices.Clone(limits.Efforts)
	return providers.Snapshot{
		Provider: c.id, Name: c.title(), Revision: c.revision, Protocol: providers.ChatCompletions,
		BaseURL: strings.TrimRight(c.base, "/"), Model: model, Effort: effort, Key: c.key.Secret, Limits: limits,
	}, nil
}

func (r *Registry) choose(provider, model string) (*connection, error) {
	fail := func(message, next string) error {
		return &providers.Error{Kind: providers.Misconfigured, Provider: provider, Message: message, Next: next}
	}
	if len(r.connections) == 0 {
		return nil, fail("no connection to a model is set up", "Add one to "+r.path+".")
	}
	if provider == "" {
		if _, _, ok := r.Default(); ok || model != "" && len(r.connections) == 1 {
			return r.connections[0], nil
		}
		return nil, fail("no connection is named, and there is not exactly one with exactly one Manual model", "Name one of "+quoted(r.names())+".")
	}
	if c := r.find(provider); c != nil {
		return c, nil
	}
	return nil, fail("there is no connection with this id in "+r.path, "Name one of "+quoted(r.names())+", or add it.")
}

func (r *Registry) find(id string) *connection {
	for _, c := range r.connections {
		if c.id == id {
			return c
		}
	}
	return nil
}

func (r *Registry) names() []string {
	var out []string
	for _, c := range r.connections {
		out = append(out, c.id)
	}
	return out
}

func (c *connection) title() string {
	if c.name != "" {
		return c.name
	}
	return c.id
}

// ids returns the models that the file names, sorted.
func (c *connection) ids() []string {
	var out []string
	for id := range c.models {
		out = append(out, id)
	}
	sort.Strings(out)
	return out
}

// only returns the one Manual model, or "".
func (c *connection) only() (only string) {
	for id, m := range c.models {
		if !m.manual {
			continue
		}
		if only != "" {
			return ""
		}
		only = id
	}
	return only
}

func (c *connection) bad(model, message, next string) error {
	return &providers.Error{Kind: providers.Misconfigured, Provider: c.title(), Model: model, Message: message, Next: next}
}

// check says why the connection cannot be used.
func (c *connection) check(path, model string) error {
	here := fmt.Sprintf("connection %q in %s", c.id, path)
	switch {
	case c.definition == anthropicCompatible:
		return c.bad(model, fmt.Sprintf("DefinitionId %q is not supported yet", anthropicCompatible), fmt.Sprintf("Use a server with Chat Completions and DefinitionId %q in %s.", openaiCompatible, here))
	case c.definition != openaiCompatible:
		return c.bad(model, "this version does not know DefinitionId "+shown(c.definition), fmt.Sprintf("Use DefinitionId %q with BaseUrl and Protocol in %s.", openaiCompatible, here))
	case c.protocol == "":
		return c.bad(model, "Protocol is missing", fmt.Sprintf("Set Protocol of %s to %q.", here, providers.ChatCompletions))
	case c.protocol != string(providers.ChatCompletions):
		return c.bad(model, "Protocol "+shown(c.protocol)+" is not supported yet", fmt.Sprintf("Set Protocol of %s to %q if the server offers it.", here, providers.ChatCompletions))
	}
	if why := badURL(c.base); why != "" {
		return c.bad(model, "BaseUrl "+why, "Set BaseUrl of "+here+" to an address like http://127.0.0.1:8080/v1.")
	}
	key := c.key.Reveal()
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return c.bad(model, "ApiKey holds a space, a line end or a character that no key has", "Copy the key of "+here+" again.")
	}
	return nil
}

// badURL says what is wrong with an address, without repeating it.
func badURL(base string) string {
	if base == "" {
		return "is missing"
	}
	u, err := url.Parse(base)
	switch {
	case err != nil:
		return "is not an address"
	case u.Scheme != "http" && u.Scheme != "https":
		return "must begin with http:// or https://"
	case u.Hostname() == "":
		return "names no server"
	case u.User != nil:
		return "holds a user name or password; credentials belong into ApiKey"
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "must not hold ? or #"
	case strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/chat/completions"):
		return "must end before /chat/completions"
	}
	return ""
}

// exposed reports whether a key goes over a network in clear text.
func (c *connection) exposed() bool {
	u, err := url.Parse(c.base)
	if err != nil || u.Scheme != "http" || c.key.IsZero() || u.Hostname() == "localhost" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return ip == nil || !ip.IsLoopback()
}

// allows checks an effort. Without a list in the file every word of the protocol
// may be tried.
func (c *connection) allows(model, effort string) error {
	if effort == "" || effort == "none" {
		return nil
	}
	allowed := c.models[model].limits.Efforts
	if len(allowed) == 0 {
		allowed = efforts
	}
	if slices.Contains(allowed, effort) {
		return nil
	}
	return c.bad(model, fmt.Sprintf("reasoning effort %q is not supported", effort), "Choose one of "+quoted(allowed)+".")
}

func quoted(words []string) string {
	if len(words) == 0 {
		return "(none)"
	}
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = fmt.Sprintf("%q", w)
	}
	return strings.Join(out, ", ")
}
