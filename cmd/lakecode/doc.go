// Command lakecode is a coding agent that lives in the editor. Without a
// subcommand it speaks LSP on standard input and output; "run" works from a
// terminal; see "lakecode help".
//
// This package is the wiring: it alone reads the environment and flags, owns
// the standard streams and signals, and knows which tool gets which resource.
// What is decided here is how parts fit together, never how one of them works.
package main
