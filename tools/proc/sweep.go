package proc

import "time"

// target says which processes belong together: those that bear the mark, those
// of any mark of the run, and those in the group or session. Zero fields match
// nothing.
type target struct {
	mark  string // "<run>:<n>"
	run   string // "<run>:"
	group int
	born  uint64 // nothing older belongs to it, in clock ticks since boot
}

// sweep kills what belongs to t until a look finds nothing alive, and names
// what it killed. It gives up after limit or when quit closes.
func sweep(t target, limit time.Duration, quit <-chan struct{}) (killed []string) {
	end := time.NewTimer(limit)
	defer end.Stop()
	seen := map[int]bool{}
	for {
		found := sweepOnce(t)
		if len(found) == 0 {
			return killed
		}
		for _, p := range found {
			if !seen[p.pid] {
				seen[p.pid] = true
				killed = append(killed, p.name)
			}
		}
		again := time.NewTimer(3 * time.Millisecond)
		select {
		case <-again.C:
		case <-end.C:
			again.Stop()
			return killed
		case <-quit:
			again.Stop()
			return killed
		}
	}
}

// found is a process that sweepOnce has sent SIGKILL.
type found struct {
	pid  int
	name string // as the kernel has it, at most 15 bytes
}
