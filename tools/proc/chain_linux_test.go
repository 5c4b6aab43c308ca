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
	chain := strings.Repeat("( ", 8) + "setsid sleep 600 </dev/null >/dev/null 2>&1 & " + strings.Repeat(") & ", 8)
	for range 15 {
		var all []*proc.Child
		for range 8 {
			all = append(all, start(t, s, proc.Spec{Argv: []string{"bash", "-c", chain}, Env: []string{mark}}))
		}
		for _, c := range all {
			wait(t, c)
		}
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
