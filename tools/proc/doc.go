// Package proc owns every child process of the program. A [Supervisor] starts
// them, each in its own session and process group, and sees to it that none
// outlives the call, the conversation or the program.
//
// Each child carries LAKECODE_RUN=<run>:<n> in its environment, and what it
// starts inherits it. Stopping a child kills its group and, on Linux, every
// process that bears its mark, sits in its session or descends from one that
// does: a setsid grandchild, a double fork, a daemon. The same is done when a
// child ends by itself, so a background process does not stay behind.
//
// A reaper process holds the read end of a pipe, starts with the first child
// and does the same for the whole run when the pipe closes, so a SIGKILL of the
// program is covered too. See [ReapMain].
//
// Invariants, as absences: nothing else in the program starts a process; no
// child inherits a variable of ours (LAKECODE_*), a shell start-up hook or an
// exported shell function; no Pdeathsig, which fires when the thread that
// forked ends; no wait for a child's output goes on after [drainDelay], however
// long somebody holds the pipe.
//
// Goroutines: two for each child until it has ended and its output is read, one for the reaper, and those of os/exec that copy
// output. [Supervisor.Close] joins them. Without /proc (macOS) the group is
// killed and a process that left it may survive.
//
//	child, err := sup.Start(ctx, proc.Spec{Argv: []string{"go", "test"}, Dir: root, Output: ring.Write})
//	state, err := child.Wait()
package proc
