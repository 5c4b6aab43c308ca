//go:build unix && !linux

package proc

import (
	"syscall"
	"time"
)

// sweepOnce can only reach the group here: without /proc nothing tells the
// environment of a process.
func sweepOnce(t target) (out []found, unsure bool) {
	if t.group <= 1 || syscall.Kill(-t.group, 0) != nil {
		return nil, false
	}
	if syscall.Kill(-t.group, syscall.SIGKILL) != nil {
		return nil, false // only zombies are left, or nothing that is ours
	}
	return []found{{process{pid: t.group}, "group"}}, false
}

func exists(p process) bool { return syscall.Kill(-p.pid, 0) == nil }

func bornAt(int) uint64 { return 0 }

// settle waits for the end of the child and kills what is left of its group.
// Waiting without reaping is not reliable here (golang/go#19314), so the group
// is killed after the leader was reaped.
func (c *Child) settle() (left []string, took time.Duration, err error) {
	err = c.cmd.Wait()
	took = time.Since(c.began)
	c.setReaped()
	return sweep(c.target(), sweepLimit, nil), took, err
}
