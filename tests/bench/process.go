package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/lakecode/lakecode/lsp/wire"
	"github.com/lakecode/lakecode/tests/editor"
)

// cpu is the user and system time of a process so far. /proc/PID/schedstat is
// in nanoseconds, per thread.
func cpu(pid int) (time.Duration, error) {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return 0, err
	}
	var sum time.Duration
	for _, t := range tasks {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/schedstat", pid, t.Name()))
		if err != nil {
			continue // a thread that has just ended
		}
		ns, err := strconv.ParseInt(string(bytes.Fields(b)[0]), 10, 64)
		if err != nil {
			return 0, err
		}
		sum += time.Duration(ns)
	}
	return sum, nil
}

// field reads a "Name: N kB" line of a /proc file, in MiB.
func field(file, name string) (float64, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	for l := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(l, name+":"); ok {
			kb, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb / 1024, err
		}
	}
	return 0, fmt.Errorf("%s has no %s", file, name)
}

// tree lists a process and its descendants.
func tree(pid int) []int {
	out := []int{pid}
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, t := range tasks {
		b, _ := os.ReadFile(t)
		for _, f := range strings.Fields(string(b)) {
			if child, err := strconv.Atoi(f); err == nil {
				out = append(out, tree(child)...)
			}
		}
	}
	return out
}

// client is an editor with one conversation.
type client struct {
	*editor.Editor
	conv string
}

// fresh makes an empty home and workspace.
func (b *bench) fresh(name string) (home, root string, err error) {
	dir, err := os.MkdirTemp(b.dir, name+"-")
	if err != nil {
		return "", "", err
	}
	home, root = filepath.Join(dir, "home"), filepath.Join(dir, "w")
	return home, root, os.Mkdir(root, 0o755)
}

func env(home string) []string {
	return []string{"LAKECODE_HOME=" + home, "HOME=" + filepath.Dir(home), "PATH=" + os.Getenv("PATH")}
}

func (b *bench) editor(home, root string, seen func(editor.Message)) (*client, error) {
	e, err := editor.Start(editor.Config{
		Binary: b.bin, Dir: root, Env: env(home), Seen: seen,
		Offer: map[string]any{"versions": []int{wire.Version}, "cards": true, "events": true},
	})
	if err != nil {
		return nil, err
	}
	if _, err := e.Initialize(root); err != nil {
		e.Kill()
		return nil, err
	}
	c := &client{Editor: e}
	return c, c.create()
}

func (c *client) create() error {
	var res wire.OpenResult
	if err := c.Call(wire.ConversationCreate, wire.CreateParams{}, &res); err != nil {
		return err
	}
	c.conv = res.ConversationID
	return c.Call(wire.ConversationSubscribe, wire.SubscribeParams{ConversationID: c.conv, SinceSeq: res.State.Seq, Epoch: res.State.Epoch}, nil)
}

// turn sends a message and waits until its turn has ended and is saved.
func (c *client) turn(text string) error {
	from := c.Count()
	var sent wire.SubmitResult
	err := c.Call(wire.ConversationSubmit, wire.SubmitParams{ConversationID: c.conv, Text: text, Model: wire.Model{Provider: "bench", Model: "m"}}, &sent)
	if err != nil {
		return err
	}
	m, at, err := c.Wait(from, time.Minute, func(m editor.Message) bool {
		return m.Method == wire.EventsNote && bytes.Contains(m.Params, []byte(`"turnFinished"`)) && bytes.Contains(m.Params, []byte(sent.TurnID))
	})
	if err != nil {
		return err
	}
	if !bytes.Contains(m.Params, []byte(`"how":"completed"`)) {
		return fmt.Errorf("the turn ended badly: %s", m.Params)
	}
	_, _, err = c.Wait(at, time.Minute, func(m editor.Message) bool {
		return m.Method == wire.StateNote && bytes.Contains(m.Params, []byte(`"idle"`))
	})
	return err
}
