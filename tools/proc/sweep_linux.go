package proc

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// maxEnviron bounds how much of a process's environment is searched, in bytes;
// the kernel takes at most 6 MiB of arguments and environment together.
const maxEnviron = 8 << 20

// quick is how long a child may have run for its descendants to be looked for
// among the greater process numbers alone: the numbers cannot have gone all the
// way round in that time.
const quick = 200 * time.Millisecond

// stat is what /proc/<pid>/stat tells, see proc_pid_stat(5).
type stat struct {
	pid, ppid, group, session int
	name                      string
	state                     byte
	born                      uint64
}

// dead is true for one that only waits to be reaped.
func (p stat) dead() bool { return p.state == 'Z' || p.state == 'X' }

func exists(p process) bool {
	now, ok := readStat(p.pid)
	return ok && now.born == p.born && !now.dead()
}

// sweepOnce sends SIGKILL to every living process of t. It is unsure when it
// may have missed one: a look takes time, and who forks and ends, or is being
// executed, in that time shows neither its child nor its mark.
func sweepOnce(t target) (out []found, unsure bool) {
	before := lastPid()
	all := processes(t.born, t.above)
	if t.group != 0 && t.born != 0 && slices.ContainsFunc(all, func(p stat) bool { return p.pid == t.group && p.born != t.born }) {
		t.group = 0 // the number stands for another process now, so the group had ended
	}
	self := os.Getpid()
	mine := map[int]bool{}
	for _, p := range all {
		if p.pid == self || p.pid == 1 {
			continue
		}
		owned, blank := t.owns(p)
		if owned {
			mine[p.pid] = true
		}
		unsure = unsure || blank && !p.dead()
	}
	for grown := true; grown; { // children of those found, whatever they did to their environment
		grown = false
		for _, p := range all {
			if mine[p.ppid] && !mine[p.pid] && p.pid != self {
				mine[p.pid], grown = true, true
			}
		}
	}
	for _, p := range all {
		if !mine[p.pid] || p.dead() {
			continue
		}
		if kill(p) {
			out = append(out, found{process{p.pid, p.born}, p.name})
		}
	}
	return out, unsure || lastPid() != before
}

// owns also accepts a zombie, which has no environment any more but may be the
// parent of somebody. blank says that there was no environment to judge by.
func (t target) owns(p stat) (owned, blank bool) {
	if t.group != 0 && (p.group == t.group || p.session == t.group) {
		return true, false
	}
	if t.mark == "" && t.run == "" {
		return false, false
	}
	mark, blank := markOf(p.pid)
	return t.marked(mark), blank
}

func (t target) marked(value string) bool {
	for m := range strings.SplitSeq(value, "/") {
		if m != "" && (m == t.mark || t.run != "" && strings.HasPrefix(m, t.run)) {
			return true
		}
	}
	return false
}

// kill goes through a pidfd where the kernel has one, so that a process which
// took the number in the meantime is not hit.
func kill(p stat) bool {
	h, err := os.FindProcess(p.pid)
	if err != nil {
		return false
	}
	defer h.Release()
	if now, ok := readStat(p.pid); !ok || now.born != p.born {
		return false
	}
	return h.Signal(syscall.SIGKILL) == nil
}

// processes lists what was started at or after born with a number from above on.
func processes(born uint64, above int) []stat {
	d, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	out := make([]stat, 0, 16)
	for _, n := range names {
		pid, err := strconv.Atoi(n)
		if err != nil || pid < above {
			continue
		}
		if p, ok := readStat(pid); ok && p.born >= born {
			out = append(out, p)
		}
	}
	return out
}

func readStat(pid int) (stat, bool) {
	var buf [1024]byte
	n := slurp("/proc/"+strconv.Itoa(pid)+"/stat", buf[:])
	line := buf[:n]
	open, end := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if open < 0 || end < open {
		return stat{}, false
	}
	f := bytes.Fields(line[end+1:]) // f[0] is field 3
	if len(f) < 20 {
		return stat{}, false
	}
	p := stat{pid: pid, name: string(line[open+1 : end]), state: f[0][0]}
	p.ppid, _ = strconv.Atoi(string(f[1]))
	p.group, _ = strconv.Atoi(string(f[2]))
	p.session, _ = strconv.Atoi(string(f[3]))
	born, err := strconv.ParseUint(string(f[19]), 10, 64)
	p.born = born
	return p, err == nil
}

// slurp fills buf from a file of /proc and returns how much there was. It goes
// past os.File, whose poller would cost two more calls a file.
func slurp(path string, buf []byte) int {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, buf)
	if err != nil {
		return 0
	}
	return n
}

// markOf returns the mark in the environment that pid was executed with. blank
// is true when there is none: the process was started without, has ended, or is
// being executed.
func markOf(pid int) (mark string, blank bool) {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return "", errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close()
	env, _ := io.ReadAll(io.LimitReader(f, maxEnviron))
	for kv := range bytes.SplitSeq(env, []byte{0}) {
		if v, ok := bytes.CutPrefix(kv, []byte(runVar+"=")); ok {
			return string(v), false
		}
	}
	return "", len(env) == 0
}

// lastPid is the number that was given last, see proc_loadavg(5).
func lastPid() int {
	var buf [128]byte
	f := bytes.Fields(buf[:slurp("/proc/loadavg", buf[:])])
	if len(f) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(string(f[len(f)-1]))
	return n
}

// bornAt returns the start time of a process that is not reaped yet.
func bornAt(pid int) uint64 {
	p, _ := readStat(pid)
	return p.born
}

// settle waits for the end of the child, kills what it left and reads the rest
// of its output. The leader is reaped last: until then its number cannot stand
// for another process or group.
func (c *Child) settle() (left []string, took time.Duration, err error) {
	for {
		var info unix.Siginfo
		if unix.Waitid(unix.P_PID, c.Pid(), &info, unix.WEXITED|unix.WNOWAIT, nil) != unix.EINTR {
			break
		}
	}
	took = time.Since(c.began)
	t := c.target()
	if took < quick && lastPid() >= c.Pid() {
		t.above = c.Pid()
	}
	left = sweep(t, sweepLimit, nil)
	c.setReaped()
	return left, took, c.cmd.Wait()
}
