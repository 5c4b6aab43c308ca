package proc

import (
	"slices"
	"strings"
)

// runVar names the mark in a child's environment.
const runVar = "LAKECODE_RUN"

// hooks change what a shell does before or while it runs a command.
var hooks = []string{
	"BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "BASH_XTRACEFD", "PS4",
	"PROMPT_COMMAND", "CDPATH", "GLOBIGNORE", "IFS",
}

// inherited returns what of env a child may see: everything of the person's
// own, but nothing of ours (LAKECODE_*), no start-up hook of a shell and no
// exported shell function. Provider keys are never in the environment; they
// live in providers.json only.
func inherited(env []string) []string {
	out := make([]string, 0, len(env))
	for _, kv := range env {
		name, _, ok := strings.Cut(kv, "=")
		if !ok || name == "" || strings.HasPrefix(name, "LAKECODE_") ||
			strings.HasPrefix(name, "BASH_FUNC_") || slices.Contains(hooks, name) {
			continue
		}
		out = append(out, kv)
	}
	return out
}

// lookup returns the last value of name, as the kernel's readers do.
func lookup(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}
