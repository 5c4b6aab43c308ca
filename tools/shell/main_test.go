package shell

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/lakecode/lakecode/tools"
	"github.com/lakecode/lakecode/tools/proc"
	"github.com/lakecode/lakecode/tools/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stage is a workspace and a runner that has bash and nothing else.
type stage struct {
	t      *testing.T
	dir    string // the real root
	sup    *proc.Supervisor
	runner *tools.Runner

	mu    sync.Mutex // guards shown and at
	shown []string
	at    []time.Time
}

// open makes a stage; change may alter what bash is made of, env is added to
// the environment that the commands inherit.
func open(t *testing.T, change func(*Config), env ...string) *stage {
	t.Helper()
	s := &stage{t: t, dir: t.TempDir()}
	ws, err := workspace.Open(workspace.Config{Root: s.dir})
	must(t, err)
	s.sup = proc.New(proc.Config{Run: fmt.Sprintf("%s-%d", strings.ReplaceAll(t.Name(), "/", "_"), os.Getpid()), Env: append(os.Environ(), env...)})
	cfg := Config{Workspace: ws, Proc: s.sup}
	if change != nil {
		change(&cfg)
	}
	bash, err := New(cfg)
	must(t, err)
	var reg tools.Registry
	must(t, reg.Add(bash))
	s.runner = tools.NewRunner(tools.Config{View: reg.View(tools.Build), Observer: s, Log: zap.NewNop()})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		must(t, s.sup.Close(ctx))
		must(t, ws.Close())
	})
	return s
}

func (s *stage) Started(tools.Call, tools.Spec) {}

func (s *stage) Progress(_ tools.Call, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown, s.at = append(s.shown, text), append(s.at, time.Now())
}

func (s *stage) Ended(tools.Call, tools.Result, time.Duration) {}

// run runs a command through the runner.
func (s *stage) run(ctx context.Context, command string, more ...any) tools.Result {
	s.t.Helper()
	args := map[string]any{"command": command, "description": "a test"}
	for i := 0; i < len(more); i += 2 {
		args[more[i].(string)] = more[i+1]
	}
	raw, err := json.Marshal(args)
	must(s.t, err)
	return s.runner.Invoke(ctx, tools.Call{ID: "1", Name: "bash", Args: string(raw), Origin: tools.FromModel})
}

// script puts an executable bash script into the workspace.
func (s *stage) script(name, body string) {
	s.t.Helper()
	must(s.t, os.WriteFile(filepath.Join(s.dir, name), []byte("#!/bin/bash\n"+body+"\n"), 0o755))
}

// pidIn waits for a file of the workspace that holds a pid.
func (s *stage) pidIn(name string) (pid int) {
	s.t.Helper()
	eventually(s.t, "a pid in "+name, func() bool {
		b, err := os.ReadFile(filepath.Join(s.dir, name))
		if err != nil || !strings.HasSuffix(string(b), "\n") {
			return false
		}
		pid, err = strconv.Atoi(strings.TrimSpace(string(b)))
		return err == nil
	})
	s.t.Cleanup(func() { // what a failed test would leave
		if alive(pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return pid
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited 10 s for %s", what)
		}
	}
}

// alive is false for a zombie.
func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return rest != "" && rest[0] != 'Z' && rest[0] != 'X'
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
