// Package shell is the bash tool: one command line, judged, run in the
// workspace, with bounded output.
//
// [Check] judges the syntax tree of the command. It lets through simple
// commands, chains of them by &&, ||, ; and line ends, globs, plain $VAR and
// assignments before a command, and it knows the commands for which there is a
// better tool or which would run another command unseen. It is a filter that
// leads to the right tool, not a sandbox: what a program, a build script or a
// project's configuration does is not examined.
//
// Invariants, as absences: no construct runs that the tree walk does not name,
// since unknown nodes are refused; no command runs whose name is not written
// out in the text; nothing a command started is alive after its result; no
// profile, BASH_ENV, ENV or imported function is read; no output takes more
// memory than [outputHead] and three times [outputTail].
//
// The package starts no goroutine of its own; tools/proc owns those of a child.
//
//	bash, err := shell.New(shell.Config{Workspace: ws, Proc: sup, Docs: ws.Unsaved})
//	err = shell.Check("go vet ./... | head", nil) // a *tools.Error: pipes are refused
package shell
