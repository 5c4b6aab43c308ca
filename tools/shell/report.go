package shell

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lakecode/lakecode/tools"
	"github.com/lakecode/lakecode/tools/proc"
)

// maxNamed bounds how many files or processes a result names.
const maxNamed = 10

// report is the result of a command that was started.
type report struct {
	how   ending
	docs  []string
	limit time.Duration
	cause error
	rec   *recorder
	child *proc.Child
}

// result is an error when the command did not come to its own end; an exit code
// is none.
func (r report) result() (tools.Output, error) {
	select {
	case <-r.child.Done():
	default:
		return tools.Output{}, tools.Errorf(tools.TimedOut, "Go on without it; it is killed as soon as the system lets it go.",
			"%s", r.text("stopped, but a process cannot be ended: it waits in the kernel"))
	}
	st, err := r.child.Wait()
	if err != nil {
		return tools.Output{}, tools.Errorf(tools.Other, "Its effects are unknown: check before you go on.", "%s", r.text(err.Error()))
	}
	switch r.how {
	case byTimeout:
		return tools.Output{}, tools.Errorf(tools.TimedOut, "Run a smaller part, or raise timeout_seconds (at most 600).",
			"%s", r.text(fmt.Sprintf("timed out after %s: the command and everything it had started were ended", spell(r.limit))))
	case byCancel:
		return tools.Output{}, tools.Errorf(tools.Cancelled, "",
			"%s", r.text(fmt.Sprintf("stopped after %s (%v): the command and everything it had started were ended", spell(st.Took), r.cause)))
	}
	return tools.Output{Text: r.text(ended(st))}, nil
}

// text puts the notes, the first line and the output together.
func (r report) text(first string) string {
	var b strings.Builder
	if len(r.docs) > 0 {
		fmt.Fprintf(&b, "Unsaved editor text was not seen by the command, which read the disk: %s\n", list(r.docs))
	}
	b.WriteString(first)
	select {
	case <-r.child.Done():
		st, _ := r.child.Wait()
		if len(st.Left) > 0 && !st.Stopped {
			fmt.Fprintf(&b, "\nIt left processes running, which were ended: %s", list(slices.Clone(st.Left)))
		}
		if st.Cut {
			b.WriteString("\nOutput after the end of the command was not waited for")
		}
	default:
	}
	out := r.rec.text()
	if out == "" {
		out = "no output"
	}
	b.WriteString("\n")
	b.WriteString(out)
	return b.String()
}

// ended is the first line for a command that came to its own end.
func ended(st proc.ExitState) string {
	if st.Signal != "" {
		return fmt.Sprintf("ended by signal %s in %s", st.Signal, spell(st.Took))
	}
	code := fmt.Sprintf("exit code %d", st.Code)
	if name := unix.SignalName(syscall.Signal(st.Code - 128)); st.Code > 128 && name != "" {
		code += fmt.Sprintf(" (128 + %s)", name)
	}
	return fmt.Sprintf("%s in %s", code, spell(st.Took))
}

func list(names []string) string {
	if n := len(names) - maxNamed; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), n)
	}
	return strings.Join(names, ", ")
}

// spell writes a duration as a person would.
func spell(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", d.Seconds()), ".0") + " s"
	}
	return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
}
