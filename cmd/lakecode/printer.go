//go:build !windows

package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"syscall"
	"unicode"
)

// printer writes what a turn says to standard output and standard error, in the
// order in which it was said. Whoever prints never waits for a terminal that is
// held or a pipe that nobody reads: such a reader costs the memory of the text,
// and neither events nor the effect of a signal. One goroutine, which close
// joins, unless it is stuck in a write when the process ends.
type printer struct {
	wake chan struct{} // capacity 1: there is text, or the end
	done chan struct{} // closed when everything is written

	mu     sync.Mutex // guards all below; never held while writing
	queue  []printed
	closed bool
	err    error // the first of a write, but not that the reader has left
}

// printed is text for one of the two.
type printed struct {
	w    io.Writer
	text []byte
}

func newPrinter() *printer {
	p := &printer{wake: make(chan struct{}, 1), done: make(chan struct{})}
	go p.run()
	return p
}

// to returns a writer whose text the printer writes to w.
func (p *printer) to(w io.Writer) io.Writer { return printerTo{p, w} }

type printerTo struct {
	p *printer
	w io.Writer
}

// Write never fails; close tells.
func (t printerTo) Write(b []byte) (int, error) {
	t.p.mu.Lock()
	defer t.p.mu.Unlock()
	if n := len(t.p.queue); n > 0 && t.p.queue[n-1].w == t.w {
		t.p.queue[n-1].text = append(t.p.queue[n-1].text, b...)
	} else {
		t.p.queue = append(t.p.queue, printed{t.w, append([]byte(nil), b...)})
	}
	t.p.signal()
	return len(b), nil
}

func (p *printer) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *printer) run() {
	defer close(p.done)
	for {
		p.mu.Lock()
		queue, closed := p.queue, p.closed
		p.queue = nil
		p.mu.Unlock()
		for _, q := range queue {
			if _, err := q.w.Write(q.text); err != nil && !errors.Is(err, syscall.EPIPE) {
				p.mu.Lock()
				p.err = cmp.Or(p.err, err)
				p.mu.Unlock()
			}
		}
		switch {
		case len(queue) > 0:
		case closed:
			return
		default:
			<-p.wake
		}
	}
}

// close returns when everything is written, or with ctx; the error is that of
// the writes so far.
func (p *printer) close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	p.signal()
	p.mu.Unlock()
	select {
	case <-p.done:
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// plain takes out of a text what would steer a terminal: it comes from a model,
// and the model may have it from a file.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r':
			return -1
		case unicode.IsControl(r), r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069: // also what turns the order of letters
			return '\uFFFD'
		}
		return r
	}, s)
}
