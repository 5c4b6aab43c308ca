// Package convo is the coordinator of one conversation: it owns the queue, the
// turn that runs, the history in memory, the numbering of events and the gate
// through which the agent asks a person.
//
// Invariants, as absences: until its end the owner goroutine does no I/O and
// waits for no worker outside its select; no state is shared with a worker; no
// turn starts before the former one's final save; nothing is accepted that is
// not on disk; a slow subscriber holds up nobody.
//
// Goroutines of a Convo: the owner (run), started by Start, ends in Close; at
// most one main worker (a turn or a save) and at most one accepting worker,
// started by the owner, which learns their end from their final message; one for
// each title or dropped message that is being written. All are joined before the
// store is closed.
//
//	c := convo.Start(ctx, convo.Config{Archive: a, Log: log, ...})
//	defer c.Close(ctx)
//	rcpt, err := c.Do(ctx, agent.Submit{Text: "fix it"})
package convo
