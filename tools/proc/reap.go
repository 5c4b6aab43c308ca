package proc

import (
	"bufio"
	"io"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// reapLimit bounds the work of a reaper once its pipe has closed.
const reapLimit = 5 * time.Second

// ReapMain is the body of the reaper process. It reads lines from in:
//
//	run <id>           the mark of the run
//	add <pid> <born>   a child was started in a group and session of this
//	                   number; born as in the 22nd field of its stat, or 0
//	del <pid>          it has ended and what it left is gone
//	end                all is gone; the reaper ends without looking again
//
// At the end of in, which is the death of whoever writes it, it kills all that
// bears the mark or belongs to a group that is left, and returns the exit code:
// 0, or 1 when something was still alive after five seconds. Unknown lines are
// ignored. It ignores SIGINT, SIGTERM, SIGQUIT and SIGHUP from its start on.
//
// The caller runs it before anything else is set up, so that the process stays
// small.
func ReapMain(in io.Reader) int {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP)
	var run string
	groups := map[int]target{}
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 512), 4<<10)
	for lines.Scan() {
		word, arg, _ := strings.Cut(lines.Text(), " ")
		pid, born, _ := strings.Cut(arg, " ")
		n, err := strconv.Atoi(pid)
		switch {
		case word == "end":
			return 0
		case word == "run":
			run = arg
		case word == "add" && err == nil && n > 1:
			at, _ := strconv.ParseUint(born, 10, 64)
			groups[n] = target{group: n, born: at}
		case word == "del" && err == nil:
			delete(groups, n)
		}
	}
	return reapAll(run, groups)
}

// reapAll sweeps until two looks in a row, 50 ms apart, find nothing: a process
// that was just being executed when its parent died has no mark to be seen yet.
func reapAll(run string, groups map[int]target) int {
	targets := make([]target, 0, len(groups)+1)
	if run != "" {
		targets = append(targets, target{run: run + ":"})
	}
	for _, t := range groups {
		targets = append(targets, t)
	}
	end := time.Now().Add(reapLimit)
	for clean := 0; ; {
		clean++
		for _, t := range targets {
			if found, _ := sweepOnce(t); len(found) > 0 {
				clean = 0
			}
		}
		pause := 5 * time.Millisecond
		switch {
		case clean == 2:
			return 0
		case clean == 1:
			pause = 50 * time.Millisecond
		case time.Now().After(end):
			return 1
		}
		<-time.After(pause)
	}
}
