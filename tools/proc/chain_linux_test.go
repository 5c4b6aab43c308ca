package proc_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/lakecode/lakecode/tools/proc"
)

// Each process of the chain starts the next one and ends, so that a single look
// at the processes may fall between two of them.
func TestAChainOfForksIsCaught(t *testing.T) {
	s := newSupervisor(t)
	mark := fmt.Sprintf("CHAIN=%d-%s", os.Getpid(), t.Name())
	for range 60 {
		wait(t, start(t, s, proc.Spec{
			Argv: []string{"sh", "-c", "( ( ( setsid sleep 600 </dev/null >/dev/null 2>&1 & ) & ) & )"}, Env: []string{mark},
		}))
	}
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		env, err := os.ReadFile(f)
		if err != nil || !strings.Contains(string(env), mark) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		if err != nil {
			t.Fatal(err)
		}
		spare(t, pid)
		if alive(pid) {
			t.Errorf("process %d is alive", pid)
		}
	}
}
