package openai

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lakecode/lakecode/providers"
)

// pipes is a listener in memory, so that a whole HTTP exchange runs on the fake
// clock of a synctest bubble.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.done:
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: net.ErrClosed}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// inMemory serves h to a client, inside a bubble. stop ends both.
func inMemory(t *testing.T, cfg Config, h http.HandlerFunc) (c *Client, dials *int, stop func()) {
	p := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	base, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	srv := &http.Server{
		BaseContext: func(net.Listener) context.Context { return base },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			wg.Add(1)
			defer wg.Done()
			sent, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(sent))
			h(w, r)
		}),
	}
	wg.Go(func() { _ = srv.Serve(p) })
	c, dials = New(cfg), new(int)
	c.http.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		*dials++
		return p.dial(ctx, network, addr)
	}
	return c, dials, func() {
		c.Close()
		cancel()
		_ = srv.Close()
		wg.Wait()
	}
}

// bubble runs one exchange on a fake clock and returns what was heard and how
// long it took.
func bubble(t *testing.T, cfg Config, h http.HandlerFunc) (got heard, took time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c, _, stop := inMemory(t, cfg, h)
		defer stop()
		start := time.Now()
		got = listen(t, c, t.Context(), snapshot("http://test/v1"), ask("hi"))
		took = time.Since(start)
	})
	return got, took
}

// flush sends a piece of the answer now.
func flush(w http.ResponseWriter, s string) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, s)
	_ = http.NewResponseController(w).Flush()
}

// SSE-16 and its kin: a server that goes silent is given up in time, and one that
// is only slow is not.
// covers PROV-17
func TestStall(t *testing.T) {
	wait := func(r *http.Request, d time.Duration) {
		select {
		case <-time.After(d):
		case <-r.Context().Done():
		}
	}
	for _, v := range []struct {
		name string
		h    http.HandlerFunc
		want want
		took time.Duration
	}{
		{
			"before the headers", func(w http.ResponseWriter, r *http.Request) { wait(r, time.Hour) },
			want{kind: providers.Timeout, message: "did not begin to answer (waited 1m30s)"},
			90 * time.Second,
		},
		{
			"after the headers", func(w http.ResponseWriter, r *http.Request) { flush(w, ""); wait(r, time.Hour) },
			want{kind: providers.Timeout, message: "did not begin"},
			90 * time.Second,
		},
		{"inside an error answer", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(400)
			flush(w, "half")
			wait(r, time.Hour)
		}, want{kind: providers.Timeout}, 90 * time.Second},
		{
			"in the middle", func(w http.ResponseWriter, r *http.Request) { flush(w, text(hello)); wait(r, time.Hour) },
			want{text: hello, kind: providers.Timeout, message: "in the middle of the answer (waited 1m0s)"},
			60 * time.Second,
		},
		{
			"inside a line", func(w http.ResponseWriter, r *http.Request) { flush(w, text(hello)+"data: {"); wait(r, time.Hour) },
			want{text: hello, kind: providers.Timeout},
			60 * time.Second,
		},
		{"keep-alives for ever", func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				flush(w, ": ping\n\n")
				wait(r, 10*time.Second)
			}
		}, want{kind: providers.Timeout, message: "waited 10m0s"}, 10 * time.Minute},
		{"keep-alives, then the answer", func(w http.ResponseWriter, r *http.Request) {
			for range 50 {
				flush(w, ": ping\n\n")
				wait(r, 10*time.Second)
			}
			flush(w, text(hello)+end("stop")+fin)
		}, ok, 500 * time.Second},
		{"slow but steady", func(w http.ResponseWriter, r *http.Request) {
			for _, s := range hello {
				flush(w, text(string(s)))
				wait(r, 59*time.Second)
			}
			flush(w, end("stop")+fin)
		}, ok, 5 * 59 * time.Second},
		{"after the finish reason", func(w http.ResponseWriter, r *http.Request) {
			flush(w, text(hello)+end("stop"))
			wait(r, time.Hour)
		}, want{text: hello, stop: providers.StopEnd, warning: "fell silent after"}, 5 * time.Second},
		{"after [DONE]", func(w http.ResponseWriter, r *http.Request) {
			flush(w, text(hello)+end("stop")+fin)
			wait(r, time.Hour)
		}, ok, 50 * time.Millisecond},
	} {
		t.Run(v.name, func(t *testing.T) {
			h, took := bubble(t, Config{}, v.h)
			check(t, h, v.want)
			if took != v.took {
				t.Errorf("took %v, want %v", took, v.took)
			}
			if len(h.Retries) > 0 {
				t.Errorf("sent again: %+v", h.Retries)
			}
		})
	}
}

// A consumer that takes its time is not a silent server.
func TestBusyConsumerIsNoStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Config{})
		c.http.Transport = body(func() io.Reader { return strings.NewReader(text("a") + text("b") + end("stop") + fin) })
		for _, err := range c.Stream(t.Context(), snapshot("http://test/v1"), ask("hi")) {
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
		}
	})
}

// Only what may pass by itself is sent again, only before the first delta, and
// not sooner than the server asked for.
func TestRetries(t *testing.T) {
	type step = func(w http.ResponseWriter, r *http.Request)
	status := func(code int, h ...string) step {
		return reply(code, "application/json", `{"error":{"message":"boom"}}`, h...)
	}
	good := events(text(hello) + end("stop") + fin)
	drop := func(w http.ResponseWriter, _ *http.Request) {
		if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
			_ = conn.Close()
		}
	}
	inside := func(body string) step { return events(body) }
	later := time.Date(2000, 1, 1, 0, 0, 9, 0, time.UTC).Format(http.TimeFormat) // the bubble's clock starts 2000-01-01
	for _, v := range []struct {
		name  string
		steps []step
		want  want
		sent  int
		waits []time.Duration // exact; negative: any of at least that
	}{
		{"408, then well", []step{status(408), good}, ok, 2, []time.Duration{-375 * time.Millisecond}},
		{"409, then well", []step{status(409), good}, ok, 2, []time.Duration{-375 * time.Millisecond}},
		{"500, 502, 503, then well", []step{status(500), status(502), status(503), good}, ok, 4, []time.Duration{-375 * time.Millisecond, -750 * time.Millisecond, -1500 * time.Millisecond}},
		{"529 four times", []step{status(529), status(529), status(529), status(529), good}, want{kind: providers.Overloaded, message: "boom (after 4 attempts)"}, 4, []time.Duration{-1, -1, -1}},
		{"Retry-After in seconds", []step{status(429, "Retry-After", "7"), good}, ok, 2, []time.Duration{7 * time.Second}},
		{"Retry-After as a date", []step{status(503, "Retry-After", later), good}, ok, 2, []time.Duration{9 * time.Second}},
		{"Retry-After in milliseconds", []step{status(429, "Retry-After-Ms", "1500"), good}, ok, 2, []time.Duration{1500 * time.Millisecond}},
		{"Retry-After of rubbish", []step{status(429, "Retry-After", "soon"), good}, ok, 2, []time.Duration{-375 * time.Millisecond}},
		{"delay in the words", []step{reply(429, "application/json", `{"error":{"message":"Please try again in 6.5s."}}`), good}, ok, 2, []time.Duration{6500 * time.Millisecond}},
		{"Retry-After too long", []step{status(429, "Retry-After", "3600"), good}, want{kind: providers.RateLimited, message: "boom"}, 1, nil},
		{"Retry-After beyond all numbers", []step{status(429, "Retry-After", "1"+strings.Repeat("0", 400)), good}, want{kind: providers.RateLimited}, 1, nil},
		{"no connection", []step{drop, good}, ok, 2, []time.Duration{-375 * time.Millisecond}},
		{"code inside a 200", []step{inside(data(`{"error":{"message":"busy","code":503}}`)), good}, ok, 2, []time.Duration{-375 * time.Millisecond}},
		{"error without a code inside a 200", []step{inside(data(`{"error":{"message":"busy"}}`)), good}, want{kind: providers.Overloaded, message: "busy"}, 1, nil},
		{"code after a token", []step{inside(text("Hel") + data(`{"error":{"message":"busy","code":503}}`)), good}, want{text: "Hel", kind: providers.Overloaded, message: "busy"}, 1, nil},
		{"cut after a token", []step{inside(text("Hel")), good}, want{text: "Hel", kind: providers.BrokenStream}, 1, nil},
		{"cut before a token", []step{inside(": ping\n\n"), good}, want{kind: providers.BrokenStream}, 1, nil},
		{"400", []step{status(400), good}, want{kind: providers.Invalid}, 1, nil},
		{"401", []step{status(401), good}, want{kind: providers.Auth}, 1, nil},
		{"404", []step{status(404), good}, want{kind: providers.NotFound}, 1, nil},
		{"429 for money", []step{reply(429, "application/json", `{"error":{"message":"x","code":"insufficient_quota"}}`), good}, want{kind: providers.Quota}, 1, nil},
	} {
		t.Run(v.name, func(t *testing.T) {
			sent := 0
			h, _ := bubble(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				if !strings.HasSuffix(string(b), "}") {
					t.Errorf("attempt %d has a broken body: %q", sent+1, b)
				}
				v.steps[sent](w, r)
				sent++
			})
			check(t, h, v.want)
			if sent != v.sent {
				t.Errorf("sent %d times, want %d", sent, v.sent)
			}
			var waits, wanted []time.Duration
			for i, r := range h.Retries {
				if r.Attempt != i+2 || r.Err == nil {
					t.Errorf("announced %+v as number %d", r, i)
				}
				waits = append(waits, r.Wait)
			}
			for i, d := range v.waits {
				if d < 0 && i < len(waits) && waits[i] >= -d && waits[i] <= maxWait*5/4 {
					d = waits[i]
				}
				wanted = append(wanted, d)
			}
			if diff := cmp.Diff(wanted, waits); diff != "" {
				t.Errorf("waits (-want +got):\n%s", diff)
			}
		})
	}
}

// The error of a wait that is too long says how long it is.
func TestLongRetryAfterIsSaid(t *testing.T) {
	h, took := bubble(t, Config{}, reply(429, "application/json", `{"error":{"message":"slow down"}}`, "Retry-After", "90"))
	if took != 0 || h.Err.RetryAfter != 90*time.Second || !strings.Contains(h.Err.Next, "1m30s") {
		t.Errorf("after %v: %+v", took, h.Err)
	}
}

// The wait between attempts doubles and stays within its bounds.
func TestBackoff(t *testing.T) {
	for n, base := range map[int]time.Duration{2: firstWait, 3: 2 * firstWait, 4: 4 * firstWait, 12: maxWait} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			for range 1000 {
				if d := backoff(n); d < base*3/4 || d > base*5/4 {
					t.Fatalf("%v is not within a quarter of %v", d, base)
				}
			}
		})
	}
}

// A connection that has served an answer serves the next one too, also when the
// end of the body comes a little after [DONE].
func TestConnectionIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, dials, stop := inMemory(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
			flush(w, text(hello)+end("stop")+fin)
			time.Sleep(drainFor / 2)
		})
		defer stop()
		for range 5 {
			check(t, listen(t, c, t.Context(), snapshot("http://test/v1"), ask("hi")), ok)
		}
		if *dials != 1 {
			t.Errorf("%d connections for five answers in a row", *dials)
		}
	})
}
