// Package rehearsal plays a written script as if it were a language model, over
// the real Chat Completions protocol on a loopback HTTP server. It needs no key
// and no network, so the first command of a newcomer, demonstrations and tests
// all run through the same transports as a real model.
//
// A [Script] is read by [Parse]; its language is in script.md, which [Manual]
// returns. [Start] serves it: the first request gets the first answer of the
// script, and so on. [Tour] is the built-in script and [DemoFiles] the small
// project that it mends.
//
// Invariants, as absences: no answer is chosen by guessing, a request that the
// script does not foresee is refused with the line and the reason; nothing is
// listened to beyond loopback; no connection, handler or goroutine outlives
// [Server.Close]; nothing of the rest of the program is imported.
//
// Goroutines: one per Server that accepts, joined by Close; net/http's own, one
// per connection, whose handlers Close waits for.
//
//	script, err := rehearsal.Parse("hello", "expect user contains hello\nsay Hello to you.")
//	srv, err := rehearsal.Start(ctx, script, rehearsal.Options{})
//	defer srv.Close()
//	use(srv.URL()) // http://127.0.0.1:40123/v1
package rehearsal
