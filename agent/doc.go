// Package agent is the contract between the agent and whoever shows it: what a
// person may do ([Command]), what happened ([Event]), what is so now ([State]),
// one conversation ([Conversation]) and the process that holds them ([Host]).
//
// Invariants, as absences: nothing here knows LSP, an editor or a terminal; no
// type here holds a key; executing a command never waits for the work it
// starts; a front needs no other package of the agent.
//
//	rcpt, err := conv.Do(ctx, agent.Submit{Text: "fix the test", Mode: agent.Build})
//	sub, err := conv.Subscribe(rcpt.Seq)
//	for { ev, err := sub.Next(ctx); ... }
package agent
