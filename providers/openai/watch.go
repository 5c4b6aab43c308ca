package openai

import (
	"context"
	"errors"
	"io"
	"time"
)

var errSilent = errors.New("the server went silent")

// watch is the stall watchdog of one attempt. It bounds every wait for the
// server and no time in which the consumer is busy. The timer's function only
// cancels a context; there is no goroutine to join.
type watch struct {
	cfg    Config
	cancel context.CancelCauseFunc
	timer  *time.Timer
	body   io.ReadCloser

	begun    bool      // the first byte of the body has arrived
	finished bool      // the model is done; only the end of the stream is missing
	last     time.Time // of the last event that was no keep-alive
}

func newWatch(cfg Config, cancel context.CancelCauseFunc) *watch {
	return &watch{cfg: cfg, cancel: cancel, last: time.Now(), timer: time.AfterFunc(cfg.FirstByte, func() { cancel(errSilent) })}
}

// rest stops the timer and reports whether it was in time.
func (w *watch) rest() bool { return w.timer.Stop() }

// heard says that an event came that was no keep-alive.
func (w *watch) heard() { w.last = time.Now() }

// Read reads the body within the budget that is left.
func (w *watch) Read(p []byte) (int, error) {
	budget := w.cfg.Idle
	switch {
	case w.finished:
		budget = min(budget, lastWords)
	case !w.begun:
		budget = w.cfg.FirstByte - time.Since(w.last)
	}
	if w.begun {
		// Keep-alives prolong the wait, but not for ever.
		budget = min(budget, w.cfg.Silence-time.Since(w.last))
	}
	if budget <= 0 {
		w.cancel(errSilent)
		return 0, errSilent
	}
	w.timer.Reset(budget)
	n, err := w.body.Read(p)
	if !w.rest() {
		return n, errSilent
	}
	w.begun = w.begun || n > 0
	return n, err
}

// drain reads what follows the end of the stream, so that the connection can
// serve the next request. A server that keeps it open loses it.
func (w *watch) drain() {
	w.timer.Reset(drainFor)
	_, _ = io.CopyN(io.Discard, w.body, 4<<10)
	w.rest()
}
