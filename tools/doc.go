// Package tools is the contract between the agent and what it can do: a [Tool]
// is an opaque value that only a [Runner] can run, a [Registry] holds them, and
// a [View] is what one role may see of it.
//
// Invariants, as absences: nothing outside this package can run a Tool except
// through Runner.Invoke, so a model's call and a call from an eval cell take
// the same steps; a tool that a role may not use is not in its View; no package
// below this one knows the agent, an editor or a provider.
//
//	read, err := tools.New(tools.Spec{Name: "read_file", Tier: tools.Read, Description: "..."},
//		func(ctx context.Context, in Args, io *tools.IO) (tools.Output, error) { ... })
package tools
