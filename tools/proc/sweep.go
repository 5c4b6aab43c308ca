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
	above int    // nothing with a smaller number belongs to it; spares reading most of /proc
}

// maxUnsure bounds how often sweep looks again although it found nothing: on a
// busy machine somebody is always starting something.
const maxUnsure = 8

// sweep kills what belongs to t until a look finds for sure nothing alive and all
// that was killed has ended, and names it. It gives up after limit or when quit
// closes.
func sweep(t target, limit time.Duration, quit <-chan struct{}) (killed []string) {
	end := time.NewTimer(limit)
	defer end.Stop()
	seen := map[process]bool{}
	for doubts := 0; ; {
		found, unsure := sweepOnce(t)
		for _, p := range found {
			if !seen[p.process] {
				seen[p.process] = true
				killed = append(killed, p.name)
			}
		}
		busy := false
		if unsure && doubts < maxUnsure {
			busy = true
			doubts++
		}
		for p, alive := range seen {
			// One that is ending has lost its mark before it is gone.
			if alive && exists(p) {
				busy = true
			} else {
				seen[p] = false
			}
		}
		if !busy {
			return killed
		}
		again := time.NewTimer(2 * time.Millisecond)
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

// process is one process of all that ever have its number.
type process struct {
	pid  int
	born uint64
}

// found is a process that sweepOnce has sent SIGKILL.
type found struct {
	process
	name string // as the kernel has it, at most 15 bytes
}
