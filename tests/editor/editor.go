// Package editor is a small LSP client for tests, benches and the
// demonstration: it starts the built binary over standard input and output as
// an editor does, keeps every message, and lets a test wait for one.
//
// Goroutines: one reads messages, one waits for the process; Close and Kill
// join both.
package editor

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Config says what to start.
type Config struct {
	Binary string
	Args   []string
	Dir    string
	Env    []string // the whole environment
	// Offer is the value of capabilities.experimental.lakecode; nil for a plain
	// LSP client.
	Offer any
	// Seen is called with each message from the server, on the reader.
	Seen func(Message)
}

// Message is a message of the server, as it came.
type Message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *Error          `json:"error"`
	At     time.Time       `json:"-"` // when it was read
}

// Error is the error of a response.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

// Error returns code and message.
func (e *Error) Error() string { return fmt.Sprintf("%d: %s", e.Code, e.Message) }

// Editor is a running server with its client. Safe for concurrent use.
type Editor struct {
	cfg    Config
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stderr bytes.Buffer
	wg     sync.WaitGroup
	exited chan struct{}

	write sync.Mutex // keeps frames whole

	mu      sync.Mutex // guards all below
	next    int
	pending map[string]chan Message
	seen    []Message
	changed chan struct{} // closed and replaced with each message
	ended   error         // set when the reader has ended
}

// Start starts the process. It does not initialize.
func Start(cfg Config) (*Editor, error) {
	cmd := exec.Command(cfg.Binary, cfg.Args...)
	cmd.Dir, cmd.Env = cfg.Dir, cfg.Env
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	e := &Editor{cfg: cfg, cmd: cmd, stdin: stdin, pending: map[string]chan Message{}, changed: make(chan struct{}), exited: make(chan struct{})}
	cmd.Stderr = &e.stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	read := make(chan struct{})
	e.wg.Go(func() { defer close(read); e.read(bufio.NewReaderSize(stdout, 64<<10)) })
	e.wg.Go(func() { <-read; _ = cmd.Wait(); close(e.exited) })
	return e, nil
}

// Pid is the process id of the server.
func (e *Editor) Pid() int { return e.cmd.Process.Pid }

func (e *Editor) read(r *bufio.Reader) {
	var err error
	for {
		var m Message
		if m, err = readMessage(r); err != nil {
			break
		}
		m.At = time.Now()
		e.take(m)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = err
	for id, ch := range e.pending {
		delete(e.pending, id)
		close(ch)
	}
	e.wake()
}

func (e *Editor) take(m Message) {
	if e.cfg.Seen != nil {
		e.cfg.Seen(m)
	}
	e.mu.Lock()
	e.seen = append(e.seen, m)
	var answer chan Message
	if m.Method == "" {
		answer = e.pending[string(m.ID)]
		delete(e.pending, string(m.ID))
	}
	e.wake()
	e.mu.Unlock()
	if answer != nil {
		answer <- m
	}
	if m.Method != "" && m.ID != nil { // a request of the server: accept it
		_ = e.Send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": nil})
	}
}

func (e *Editor) wake() {
	close(e.changed)
	e.changed = make(chan struct{})
}

func readMessage(r *bufio.Reader) (Message, error) {
	var m Message
	n := -1
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return m, err
		}
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			break
		}
		if k, v, _ := strings.Cut(line, ":"); strings.EqualFold(k, "Content-Length") {
			if n, err = strconv.Atoi(strings.TrimSpace(v)); err != nil {
				return m, err
			}
		}
	}
	if n < 0 {
		return m, errors.New("a message without Content-Length")
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return m, err
	}
	return m, json.Unmarshal(body, &m)
}

// Send writes any value as one message.
func (e *Editor) Send(v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return e.Raw([]byte(fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)))
}

// Raw writes bytes as they are.
func (e *Editor) Raw(b []byte) error {
	e.write.Lock()
	defer e.write.Unlock()
	_, err := e.stdin.Write(b)
	return err
}

// Notify sends a notification.
func (e *Editor) Notify(method string, params any) error {
	return e.Send(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
}

// Go sends a request and returns the channel on which its response comes; it is
// closed without one when the server ends.
func (e *Editor) Go(method string, params any) (<-chan Message, error) {
	e.mu.Lock()
	e.next++
	id := strconv.Itoa(e.next)
	ch := make(chan Message, 1)
	if e.ended != nil {
		e.mu.Unlock()
		return nil, e.ended
	}
	e.pending[id] = ch
	e.mu.Unlock()
	return ch, e.Send(map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(id), "method": method, "params": params})
}

// CallTimeout bounds Call.
const CallTimeout = 60 * time.Second

// Call sends a request and decodes its result into result unless that is nil.
// The error is an *Error when the server refused.
func (e *Editor) Call(method string, params, result any) error {
	ch, err := e.Go(method, params)
	if err != nil {
		return err
	}
	timer := time.NewTimer(CallTimeout)
	defer timer.Stop()
	select {
	case m, ok := <-ch:
		switch {
		case !ok:
			return fmt.Errorf("%s: the server ended: %s", method, e.Stderr())
		case m.Error != nil:
			return m.Error
		case result == nil:
			return nil
		}
		return json.Unmarshal(m.Result, result)
	case <-timer.C:
		return fmt.Errorf("%s: no response in %s", method, CallTimeout)
	}
}

// Initialize does the handshake for a workspace.
func (e *Editor) Initialize(root string) (json.RawMessage, error) {
	caps := map[string]any{
		"general": map[string]any{"positionEncodings": []string{"utf-8", "utf-16"}},
		"window":  map[string]any{"workDoneProgress": true},
	}
	if e.cfg.Offer != nil {
		caps["experimental"] = map[string]any{"lakecode": e.cfg.Offer}
	}
	var res json.RawMessage
	err := e.Call("initialize", map[string]any{
		"processId": os.Getpid(), "clientInfo": map[string]any{"name": "test editor", "version": "1"},
		"rootUri": FileURI(root), "workspaceFolders": []any{map[string]any{"uri": FileURI(root), "name": "w"}},
		"capabilities": caps,
	}, &res)
	if err != nil {
		return nil, err
	}
	return res, e.Notify("initialized", map[string]any{})
}

// FileURI returns the file URI of a path of plain characters.
func FileURI(path string) string { return "file://" + strings.ReplaceAll(path, " ", "%20") }

// Wait returns the first message, from index `from` of all on, for which ok is
// true, and the index after it. It fails when none comes in time or the server
// ends; the error then holds all messages since from.
func (e *Editor) Wait(from int, timeout time.Duration, ok func(Message) bool) (Message, int, error) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	at := from
	for {
		e.mu.Lock()
		for ; at < len(e.seen); at++ {
			if ok(e.seen[at]) {
				m := e.seen[at]
				e.mu.Unlock()
				return m, at + 1, nil
			}
		}
		changed, ended := e.changed, e.ended
		e.mu.Unlock()
		if ended != nil {
			return Message{}, at, fmt.Errorf("the server ended (%v)\n%s\nstderr: %s", ended, e.Log(from), e.Stderr())
		}
		select {
		case <-changed:
		case <-timer.C:
			return Message{}, at, fmt.Errorf("nothing in %s; messages:\n%s", timeout, e.Log(from))
		}
	}
}

// Count is how many messages have come so far.
func (e *Editor) Count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.seen)
}

// Log prints the messages since from, shortened.
func (e *Editor) Log(from int) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var b strings.Builder
	for _, m := range e.seen[min(from, len(e.seen)):] {
		line, err := json.Marshal(m)
		if err != nil {
			line = []byte(err.Error())
		}
		if len(line) > 600 {
			line = append(line[:600], "..."...)
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	return b.String()
}

// Stderr is what the server wrote to standard error, once it has ended.
func (e *Editor) Stderr() string {
	select {
	case <-e.exited:
		return e.stderr.String()
	case <-time.After(time.Second):
		return "(still running)"
	}
}

// Exited is closed when the process has ended.
func (e *Editor) Exited() <-chan struct{} { return e.exited }

// CloseInput ends the server's standard input, as an editor that dies does.
func (e *Editor) CloseInput() error { return e.stdin.Close() }

// Shutdown ends the server as an editor does and returns its exit code.
func (e *Editor) Shutdown() (int, error) {
	if err := e.Call("shutdown", nil, nil); err != nil {
		return -1, err
	}
	if err := e.Notify("exit", nil); err != nil {
		return -1, err
	}
	select {
	case <-e.exited:
		e.wg.Wait()
		return e.cmd.ProcessState.ExitCode(), nil
	case <-time.After(10 * time.Second):
		e.Kill()
		return -1, errors.New("the server did not exit in 10 s after exit")
	}
}

// Kill ends the server with SIGKILL and joins.
func (e *Editor) Kill() {
	_ = e.cmd.Process.Kill()
	e.wg.Wait()
}

// ExitCode is the code of an ended server.
func (e *Editor) ExitCode() int { return e.cmd.ProcessState.ExitCode() }
