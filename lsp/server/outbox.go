package server

import (
	"context"
	"errors"
	"io"
	"strconv"
	"sync"
)

// Limits of what waits for the editor to read.
const (
	outboxLimit = 64 << 20 // bytes; more before another message, and the editor is gone
	outboxRoom  = 1 << 20  // bytes up to which pumps go on: a stalled editor fills their subscriptions, not this
	keepOutbox  = 1 << 20  // bytes of a buffer that stay for the next use
)

var (
	errGone   = errors.New("the editor does not read any more")
	errClosed = errors.New("the connection is closed")
)

// outbox holds the frames that the editor has not taken yet. Putting never
// blocks, so a response from the read loop cannot stop reading; one goroutine,
// run, writes.
type outbox struct {
	out  io.WriteCloser
	wake chan struct{} // capacity 1: there is work, or the end
	done chan struct{} // closed when nothing is taken any more

	mu      sync.Mutex    // guards all below; never held while writing
	room    chan struct{} // closed and replaced whenever something was written
	queued  []byte
	writing int // bytes that run has taken
	spare   []byte
	err     error // why nothing is taken any more
}

func newOutbox(out io.WriteCloser) *outbox {
	return &outbox{out: out, wake: make(chan struct{}, 1), done: make(chan struct{}), room: make(chan struct{})}
}

// frame queues a message whose body appendBody appends. It returns errGone when
// too much waits, and whatever ended the outbox before.
func (o *outbox) frame(appendBody func([]byte) []byte) (int64, error) {
	const reserve = len("Content-Length: 9223372036854775807\r\n\r\n")
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	if len(o.queued)+o.writing > outboxLimit {
		o.end(errGone)
		return 0, errGone
	}
	start := len(o.queued)
	o.queued = append(o.queued, make([]byte, reserve)...)
	o.queued = appendBody(o.queued)
	size := len(o.queued) - start - reserve
	// The header is as long as its number, so the body moves up to it.
	head := append(o.queued[start:start:start+reserve], "Content-Length: "...)
	head = strconv.AppendInt(head, int64(size), 10)
	head = append(head, "\r\n\r\n"...)
	copy(o.queued[start+len(head):], o.queued[start+reserve:])
	o.queued = o.queued[:start+len(head)+size]
	o.signal()
	return int64(len(o.queued) - start), nil
}

// waitRoom returns when little enough waits to add more, or with the reason why
// that will not happen.
func (o *outbox) waitRoom(ctx context.Context) error {
	for {
		o.mu.Lock()
		err, room, waiting := o.err, o.room, len(o.queued)+o.writing
		o.mu.Unlock()
		if err != nil {
			return err
		}
		if waiting < outboxRoom {
			return nil
		}
		select {
		case <-room:
		case <-o.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// run writes until close, and then what is left; or until a write fails. It
// returns the error of a write.
func (o *outbox) run() error {
	for {
		o.mu.Lock()
		buf, err := o.queued, o.err
		o.queued, o.writing = o.spare[:0:cap(o.spare)], len(buf)
		o.spare = nil
		o.mu.Unlock()
		if len(buf) == 0 {
			if err != nil {
				return nil
			}
			<-o.wake
			continue
		}
		if errors.Is(err, errGone) {
			return nil
		}
		_, err = o.out.Write(buf)
		o.mu.Lock()
		o.writing = 0
		if cap(buf) <= keepOutbox {
			o.spare = buf
		}
		if err != nil {
			o.end(err)
		} else {
			close(o.room)
			o.room = make(chan struct{})
		}
		o.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// close takes no more frames; run writes the rest and returns.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.end(errClosed)
}

// failure returns why the outbox ended, unless it was closed.
func (o *outbox) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if errors.Is(o.err, errClosed) {
		return nil
	}
	return o.err
}

// end is called with mu held.
func (o *outbox) end(err error) {
	if o.err != nil {
		return
	}
	o.err = err
	if errors.Is(err, errGone) {
		o.queued = nil
	}
	close(o.done)
	o.signal()
}

func (o *outbox) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}
