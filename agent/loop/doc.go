// Package loop runs one turn: it sends the history to the model, streams the
// answer, runs the calls of the answer in order, and goes on until an answer
// has no calls. It also owns the projection of a stored session to a request
// ([History]) and the prompt.
//
// Invariants, as absences: nothing is sent before what it answers is in the
// log; no request leaves with a call that has no result or a result that has
// no call; a call of an answer that did not end properly is never run; nothing
// here knows who shows the facts.
//
// Goroutines: Run runs in its caller's; consecutive read calls of one answer
// get one each and are joined before the next call starts.
//
//	end, failure := loop.Run(ctx, loop.Config{Turn: id, Client: c, Snapshot: snap, History: h, ...})
package loop
