package openai

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"time"

	"github.com/lakecode/lakecode/providers"
)

// Limits and waits that are policy.
const (
	maxBodyBytes  = 128 << 20 // of one answer, decompressed
	maxLineBytes  = 16 << 20  // of one line or event of the stream
	maxErrorBytes = 64 << 10  // of the body of an error answer

	firstWait = 500 * time.Millisecond // before the second attempt
	maxWait   = 8 * time.Second        // between attempts, when the server names none
	maxAfter  = 30 * time.Second       // a Retry-After beyond it is for the person

	lastWords = 5 * time.Second       // from the finish reason to the end of the stream
	drainFor  = 50 * time.Millisecond // from [DONE] to the end of the body
)

// Config says how patient a Client is. The zero value of a field is its default.
type Config struct {
	// FirstByte bounds the wait from the start of a request to the first byte of
	// the answer's body. Default 90 s.
	FirstByte time.Duration
	// Idle bounds the silence between two reads of the answer. Default 60 s.
	Idle time.Duration
	// Silence bounds the time in which nothing but keep-alive comments comes.
	// Default 10 min.
	Silence time.Duration
	// Attempts bounds how often a request is sent. Default 4.
	Attempts int
	// UserAgent is sent with each request. Default "lakecode".
	UserAgent string
}

// Client sends Chat Completions requests. Use New. It is safe for concurrent
// use, keeps no state of a conversation, and shares connections between all
// providers.Snapshot values.
type Client struct {
	cfg     Config
	http    *http.Client
	heads   heads
	maxBody int // bytes of an answer; less in tests
}

var _ providers.Client = (*Client)(nil)

// New returns a client. It opens no connection.
func New(c Config) *Client {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&c.FirstByte, 90*time.Second)
	def(&c.Idle, 60*time.Second)
	def(&c.Silence, 10*time.Minute)
	if c.Attempts <= 0 {
		c.Attempts = 4
	}
	if c.UserAgent == "" {
		c.UserAgent = "lakecode"
	}
	return &Client{cfg: c, http: newHTTP(), maxBody: maxBodyBytes}
}

// Close ends idle connections. Streams that are running are not touched.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Stream implements providers.Client. Everything happens in the goroutine that
// runs the iteration.
//
// Sent again are, before the first delta only, requests that got no connection or
// lost it before an answer, and answers 408, 409, 429 and 5xx, the same codes
// inside a 200 included. A Retry-After over 30 s is not waited for.
func (c *Client) Stream(ctx context.Context, snap providers.Snapshot, req providers.Request) iter.Seq2[providers.Delta, error] {
	return func(yield func(providers.Delta, error) bool) {
		body, err := c.body(&snap, &req)
		if err != nil {
			e := report{snap}.of(&wireError{kind: providers.Misconfigured, message: "the request cannot be encoded: " + err.Error()}, err)
			yield(nil, e)
			return
		}
		for n := 1; ; n++ {
			a := &attempt{c: c, report: report{snap}, req: &req, yield: yield}
			f := a.run(ctx, body)
			if f == nil {
				return
			}
			wait, again := c.again(n, a, f)
			if !again {
				yield(nil, f.err)
				return
			}
			if !yield(providers.Retrying{Attempt: n + 1, Wait: wait, Err: f.err}, nil) {
				return
			}
			if err := sleep(ctx, wait); err != nil {
				yield(nil, a.cancelled(err).err)
				return
			}
		}
	}
}

// failure is why an attempt failed, and whether another one makes sense.
type failure struct {
	err   *providers.Error
	again bool
}

// again decides about attempt n+1 after f, and completes f's text when there is
// none.
func (c *Client) again(n int, a *attempt, f *failure) (time.Duration, bool) {
	if !f.again || a.shown {
		return 0, false
	}
	if f.err.RetryAfter > maxAfter {
		f.err.Next = fmt.Sprintf("The server asks to wait %s; send the message again then.", f.err.RetryAfter.Round(time.Second))
		return 0, false
	}
	if n >= c.cfg.Attempts {
		if n > 1 {
			f.err.Message += fmt.Sprintf(" (after %d attempts)", n)
		}
		return 0, false
	}
	if f.err.RetryAfter > 0 {
		return f.err.RetryAfter, true
	}
	return backoff(n + 1), true
}

// attempt is one request and its answer.
type attempt struct {
	report
	c     *Client
	req   *providers.Request
	yield func(providers.Delta, error) bool

	shown  bool // a delta was yielded
	broken bool // the consumer wants no more
	answer answer
	watch  *watch
	reader *reader
}

// run returns nil when the consumer got providers.Done or broke off.
func (a *attempt) run(parent context.Context, body []byte) *failure {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	a.watch = newWatch(a.c.cfg, cancel)
	defer a.watch.rest()

	res, err := a.c.post(ctx, &a.snap, body)
	inTime := a.watch.rest()
	if res != nil {
		defer func() { _ = res.Body.Close() }()
	}
	switch {
	case parent.Err() != nil:
		return a.cancelled(context.Cause(parent))
	case !inTime:
		return a.silent()
	case res == nil || errors.As(err, new(*redirect)):
		return a.unreached(err)
	case res.StatusCode < 200 || res.StatusCode > 299:
		return a.refused(res)
	}
	a.watch.body = res.Body
	a.reader = newReader(a.watch, maxLineBytes, a.c.maxBody)
	f := a.read()
	if f != nil && parent.Err() != nil {
		return a.cancelled(context.Cause(parent))
	}
	return f
}

// read reads the body of a successful answer. Its first byte tells a stream from
// a document; Content-Type does not, because proxies lose or invent it.
func (a *attempt) read() *failure {
	first, err := a.reader.peek()
	switch {
	case err != nil:
		return a.ended(err)
	case first == '<':
		return a.fail(&wireError{kind: providers.BrokenStream, message: htmlAnswer}, nil)
	case first == '{' || first == '[':
		return a.document()
	}
	for {
		ev, err := a.reader.next()
		if err != nil {
			return a.ended(err)
		}
		a.watch.heard()
		if string(bytes.TrimSpace(ev.data)) == "[DONE]" {
			a.watch.drain()
			return a.done(true)
		}
		if f := a.event(ev); f != nil || a.broken {
			return f
		}
		a.watch.finished = a.answer.finish != ""
	}
}

// document reads an answer that is one JSON document in place of a stream: an
// error, or the whole completion.
func (a *attempt) document() *failure {
	data, err := a.reader.rest()
	if err != nil {
		return a.ended(err)
	}
	if f := a.event(event{data: data}); f != nil || a.broken {
		return f
	}
	return a.done(true)
}

// event takes one event in.
func (a *attempt) event(ev event) *failure {
	named := ev.failed || ev.name == "error"
	if data := bytes.TrimSpace(ev.data); !named && (len(data) == 0 || data[0] == ':') {
		return nil // a keep-alive comment that a proxy wrapped into an event
	}
	c, err := decode(ev.data, named)
	if err != nil {
		if ev.cut {
			return a.fail(&wireError{kind: providers.BrokenStream, message: "the stream broke off in the middle of an event"}, err)
		}
		msg := "the server sent something that is not JSON"
		if ev.data[0] == '<' {
			msg = htmlAnswer
		}
		return a.fail(&wireError{kind: providers.BrokenStream, message: msg}, err)
	}
	more, failed := a.answer.take(&c, a.show)
	if !more {
		a.broken = true
		return nil
	}
	if failed != nil {
		return a.fail(failed, nil)
	}
	return nil
}

func (a *attempt) show(d providers.Delta) bool {
	a.shown = true
	return a.yield(d, nil)
}

// ended judges the end of the body. Once the model has given its reason to stop,
// the answer is whole, whatever becomes of the connection.
func (a *attempt) ended(err error) *failure {
	switch {
	case a.answer.finish != "" && !errors.Is(err, errLongLine) && !errors.Is(err, errBigBody):
		if !errors.Is(err, io.EOF) {
			a.answer.warn("the connection broke or fell silent after the answer was complete")
		}
		return a.done(false)
	case errors.Is(err, errSilent):
		return a.silent()
	case errors.Is(err, io.EOF):
		if a.reader.stray != "" && a.answer.empty() {
			return a.fail(&wireError{kind: providers.BrokenStream, message: "the answer is no event stream: " + a.reader.stray}, nil)
		}
		return a.done(false)
	case errors.Is(err, errLongLine), errors.Is(err, errBigBody):
		return a.fail(&wireError{kind: providers.BrokenStream, message: err.Error()}, err)
	}
	return a.fail(&wireError{kind: providers.BrokenStream, message: "the connection broke in the middle of the answer: " + network(err)}, err)
}

// done yields providers.Done, or says why the answer is not whole.
func (a *attempt) done(ended bool) *failure {
	d, failed := a.answer.done(ended, a.req)
	if failed != nil {
		return a.fail(failed, nil)
	}
	a.yield(d, nil)
	return nil
}

func (a *attempt) fail(e *wireError, cause error) *failure {
	err := a.of(e, cause)
	switch s := err.Status; {
	case s == http.StatusTooManyRequests && err.Kind != providers.RateLimited:
		return &failure{err, false} // waiting brings no money
	case s == http.StatusRequestTimeout, s == http.StatusConflict, s == http.StatusTooManyRequests, s >= 500:
		err.RetryAfter = retryAfter(nil, e.message)
		return &failure{err, true}
	}
	return &failure{err, false}
}

func (a *attempt) cancelled(cause error) *failure {
	return a.fail(&wireError{kind: providers.Cancelled, message: "the request was stopped"}, cause)
}

func (a *attempt) silent() *failure {
	msg := "the server did not begin to answer"
	if a.shown || a.watch.begun {
		msg = "the server fell silent in the middle of the answer"
	}
	waited := time.Since(a.watch.last).Round(time.Second)
	return a.fail(&wireError{kind: providers.Timeout, message: fmt.Sprintf("%s (waited %s)", msg, waited)}, errSilent)
}
