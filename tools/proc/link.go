package proc

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"
)

// tellLimit bounds one write to the reaper, in case somebody has suspended it.
const tellLimit = 200 * time.Millisecond

// link is our end of the reaper: it is started when first needed, told what
// lives, and started again when it is found dead.
type link struct {
	argv []string
	run  string
	log  *zap.Logger
	work *sync.WaitGroup

	mu     sync.Mutex // guards the fields below; held while the reaper is forked
	pipe   *os.File   // nil: not running
	gone   chan struct{}
	closed bool
	groups map[int]uint64 // start times, see Child.born
}

// ensure returns once a reaper exists that will learn of our run.
func (l *link) ensure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return ErrClosed
	case len(l.argv) == 0:
		return nil
	}
	if l.pipe != nil {
		select {
		case <-l.gone:
			l.log.Warn("reaper is gone, starting another")
			_ = l.pipe.Close()
			l.pipe = nil
		default:
			return nil
		}
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	cmd := exec.Command(l.argv[0], l.argv[1:]...)
	cmd.Dir, cmd.Stdin = "/", r
	cmd.Env = []string{"GOMAXPROCS=1"} // no mark: a sweep must not kill it
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		_ = w.Close()
		return err
	}
	gone := make(chan struct{})
	l.work.Go(func() { _ = cmd.Wait(); close(gone) })
	l.pipe, l.gone = w, gone
	var say strings.Builder
	fmt.Fprintf(&say, "run %s\n", l.run)
	for g, born := range l.groups {
		fmt.Fprintf(&say, "add %d %d\n", g, born)
	}
	return l.tell(say.String())
}

// tell writes lines; the caller holds mu.
func (l *link) tell(lines string) error {
	if l.pipe == nil {
		return nil
	}
	_ = l.pipe.SetWriteDeadline(time.Now().Add(tellLimit))
	_, err := l.pipe.WriteString(lines)
	return err
}

// add and del only serve a group whose processes have lost the mark; a lost
// line is no reason to refuse the child.
func (l *link) add(group int, born uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.groups == nil {
		l.groups = map[int]uint64{}
	}
	l.groups[group] = born
	if err := l.tell(fmt.Sprintf("add %d %d\n", group, born)); err != nil {
		l.log.Warn("reaper does not listen", zap.Error(err))
	}
}

func (l *link) del(group int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.groups, group)
	if err := l.tell(fmt.Sprintf("del %d\n", group)); err != nil {
		l.log.Warn("reaper does not listen", zap.Error(err))
	}
}

// close ends the reaper. Everything has been swept before.
func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.pipe != nil {
		_ = l.tell("end\n") // a reaper that does not hear it sweeps once more
		_ = l.pipe.Close()
		l.pipe = nil
	}
}
