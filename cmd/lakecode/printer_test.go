//go:build !windows

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// held is a writer that writes only once it is let go.
type held struct {
	free chan struct{}
	mu   sync.Mutex // guards b
	b    strings.Builder
}

func (h *held) Write(p []byte) (int, error) {
	<-h.free
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.b.Write(p)
}

func (h *held) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.b.String()
}

// failing is a writer that fails.
type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestHeldReaderHoldsNothingUpAndLosesNothing(t *testing.T) {
	h := &held{free: make(chan struct{})}
	p := newPrinter()
	out := p.to(h)
	var want strings.Builder
	for i := range 100_000 { // some 10 MB, far more than a pipe takes
		line := fmt.Sprintf("%06d %s\n", i, strings.Repeat("x", 100))
		want.WriteString(line)
		fmt.Fprint(out, line)
	}
	close(h.free)
	if err := p.close(t.Context()); err != nil {
		t.Error(err)
	}
	if h.String() != want.String() {
		t.Errorf("%d bytes came, want %d", len(h.String()), want.Len())
	}
}

func TestOutputAndErrorsKeepTheirOrder(t *testing.T) {
	both := &held{free: make(chan struct{})}
	close(both.free)
	p := newPrinter()
	out, errs := p.to(both), p.to(struct{ *held }{both})
	var want strings.Builder
	for i := range 1000 {
		w, name := out, "out"
		if i%3 == 0 {
			w, name = errs, "err"
		}
		fmt.Fprintln(w, name, i)
		fmt.Fprintln(&want, name, i)
	}
	if err := p.close(t.Context()); err != nil || both.String() != want.String() {
		t.Errorf("%v\n%s", err, both)
	}
}

func TestPrinterGivesUpOnAStuckReader(t *testing.T) {
	h := &held{free: make(chan struct{})}
	p := newPrinter()
	fmt.Fprintln(p.to(h), "text")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.close(ctx); err != nil {
		t.Error(err)
	}
	close(h.free)
	<-p.done
}

func TestFailedWriteIsTold(t *testing.T) {
	for err, want := range map[error]error{syscall.ENOSPC: syscall.ENOSPC, syscall.EIO: syscall.EIO, syscall.EPIPE: nil} {
		p := newPrinter()
		out := p.to(failing{fmt.Errorf("write: %w", err)})
		fmt.Fprintln(out, "a")
		fmt.Fprintln(out, "b")
		if got := p.close(t.Context()); !errors.Is(got, want) {
			t.Errorf("%v: got %v, want %v", err, got, want)
		}
	}
}

func TestPlainTextSteersNoTerminal(t *testing.T) {
	for in, want := range map[string]string{
		"plain ünï 日本 🙂\n\tx":         "plain ünï 日本 🙂\n\tx",
		"a\x1b]52;c;aGk=\x07b\x1b[2J": "a\uFFFD]52;c;aGk=\uFFFDb\uFFFD[2J",
		"one\r\ntwo\rthree\x00\x7f":   "one\ntwothree\uFFFD\uFFFD",
		"\u009b31m":                   "\uFFFD31m",
		"a\u202eb\u2066c":             "a\uFFFDb\uFFFDc",
		"\u200f\u05d0":                "\u200f\u05d0", // right-to-left letters are text
	} {
		if got := plain(in); got != want {
			t.Errorf("plain(%q) = %q, want %q", in, got, want)
		}
	}
}
