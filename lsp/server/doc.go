// Package server is the front for editors: it speaks LSP 3.18 and the protocol
// of lsp/wire on one pair of streams and turns both into the contracts of
// package agent, and back.
//
// [New] and [Server.Serve] run one connection. [EventOf], [StateOf], [TurnOf]
// and [ErrorOf] are the mappings; the headless front uses them too.
//
// Order: document changes and commands take effect in the order in which they
// arrive. A request that must wait enters its conversation's lane on the read
// loop and steps aside; nothing there touches a disk, waits or calls the editor.
//
// Invariants, as absences: no input, however broken, ends the connection, except
// its end; no panic of a handler ends it either; no request goes without an
// answer; a response never waits for the editor to read; no event is dropped
// without a lagged event saying so; nothing is asked of the editor from a
// handler.
//
// Goroutines of a connection, all joined by Serve (see there for the one
// exception): the writer of the outbox; the read loop, and one per request that
// stepped aside; one pump per open conversation; one per lane with work in it;
// the presenter of progress; the watch over the parent process; the look at
// providers.json after initialized.
//
//	s := server.New(server.Config{Host: host, Docs: docs, Version: "1.0", Log: log})
//	clean, err := s.Serve(ctx, stdin, stdout)
package server
