package tools

import (
	"fmt"
	"slices"
	"strings"
)

// Registry is the whole catalogue of one conversation. It is filled while the
// conversation is put together and not changed afterwards.
type Registry struct {
	tools []Tool
	names map[string]int // canonical names and aliases
}

// Add registers tools. It fails on a name or alias that is already taken.
func (r *Registry) Add(ts ...Tool) error {
	if r.names == nil {
		r.names = map[string]int{}
	}
	for _, t := range ts {
		for _, n := range append([]string{t.spec.Name}, t.spec.Aliases...) {
			if at, dup := r.names[n]; dup {
				return fmt.Errorf("tool name %s is taken by %s", n, r.tools[at].spec.Name)
			}
			r.names[n] = len(r.tools)
		}
		r.tools = append(r.tools, t)
	}
	return nil
}

// Confirm says what must happen before a call runs.
type Confirm uint8

// The terms of a tool in a role.
const (
	Free        Confirm = iota + 1 // runs without asking
	AskEachTime                    // every call needs its own approval
)

// Role is an allow table: what a role may use, tool by tool, and on what terms.
// A tool that is not in the table does not exist for the role.
type Role map[string]Confirm

// The allow tables of spec 00's catalogue. A name may stand here before its
// tool exists; a view holds only what is registered.
var (
	Build = Role{
		"read_file": Free, "list_directory": Free,
		"search_text": Free, "find_files": Free, "outline_file": Free, "trace_code": Free,
		"write_file": Free, "edit_file": Free, "apply_patch": Free,
		"lsp": Free, "lsp_rename": Free, "ast_grep": Free, "ast_edit": Free, "resolve": Free,
		"debug": Free, "eval": Free, "bash": Free, "ask_user": Free,
		"list_history": Free, "search_history": Free, "read_history": Free,
		"delegate": Free, "wait_subagents": Free, "send_subagent_message": Free,
		"load_skill": Free, "search_mcp_tools": Free, "generate_image": Free,
		"web_search": Free, "read_web": Free,
	}
	Plan = Role{
		"read_file": Free, "list_directory": Free,
		"search_text": Free, "find_files": Free, "outline_file": Free, "trace_code": Free,
		"lsp": Free, "ast_grep": Free,
		"eval": AskEachTime, "bash": AskEachTime, "ask_user": Free, "submit_plan": Free,
		"list_history": Free, "search_history": Free, "read_history": Free,
		"delegate": Free, "wait_subagents": Free, "send_subagent_message": Free,
		"load_skill": Free, "web_search": Free, "read_web": Free,
	}
	Research = Role{
		"read_file": Free, "list_directory": Free,
		"search_text": Free, "find_files": Free, "outline_file": Free, "trace_code": Free,
		"write_file": Free, "ask_user": Free,
		"list_history": Free, "search_history": Free, "read_history": Free,
		"generate_image": Free, "web_search": Free, "read_web": Free,
	}
)

// View is an immutable selection of a registry, in name order.
type View struct {
	tools []Tool
	index map[string]int // canonical names and aliases
	terms []Confirm
}

// View returns what role may see.
func (r *Registry) View(role Role) *View {
	v := &View{index: map[string]int{}}
	order := slices.SortedFunc(slices.Values(r.tools), func(a, b Tool) int { return strings.Compare(a.spec.Name, b.spec.Name) })
	for _, t := range order {
		terms, ok := role[t.spec.Name]
		if !ok {
			continue
		}
		v.index[t.spec.Name] = len(v.tools)
		for _, a := range t.spec.Aliases {
			v.index[a] = len(v.tools)
		}
		v.tools = append(v.tools, t)
		v.terms = append(v.terms, terms)
	}
	return v
}

// Specs lists the tools in name order.
func (v *View) Specs() []Spec {
	out := make([]Spec, len(v.tools))
	for i, t := range v.tools {
		out[i] = t.spec
	}
	return out
}

// Lookup finds a tool by its name or an alias.
func (v *View) Lookup(name string) (Spec, bool) {
	i, ok := v.index[name]
	if !ok {
		return Spec{}, false
	}
	return v.tools[i].spec, true
}

// Names lists the canonical names, in order.
func (v *View) Names() []string {
	out := make([]string, len(v.tools))
	for i, t := range v.tools {
		out[i] = t.spec.Name
	}
	return out
}
