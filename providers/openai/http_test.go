package openai

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lakecode/lakecode/providers"
)

// reply answers with a status and a body.
func reply(status int, contentType, text string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
}

// Every refusal of a server becomes an error that says whose it is, of which
// kind, and what to do, without the key.
func TestRefusals(t *testing.T) {
	const js = "application/json"
	c := client(t, Config{Attempts: 1})
	for _, v := range []struct {
		name   string
		answer http.HandlerFunc
		want   want
		next   string
	}{
		{
			"401 that quotes the key masked", reply(401, js, `{"error":{"message":"Incorrect API key provided: sk-canar*************WXYZ. You can find it at https://u:p@host/keys?token=`+testKey+`","type":"invalid_request_error","code":"invalid_api_key"}}`),
			want{kind: providers.Auth, message: "Local server (m): HTTP 401: Incorrect API key provided: [key]"},
			`Check the key of connection "local"`,
		},
		{
			"401 that quotes the key", reply(401, js, `{"error":{"message":"bad key `+testKey+` or sk-canary-0123 (ends in WXYZ), sent Bearer `+testKey+`"}}`),
			want{kind: providers.Auth, message: "bad key [key] or [key] (ends in [key]), sent Bearer [key]"},
			"Check the key",
		},
		{"403", reply(403, js, `{"error":{"message":"not for you"}}`), want{kind: providers.Permission, message: "not for you"}, `may use model "m"`},
		{"404", reply(404, js, `{"error":{"message":"no such model","code":"model_not_found"}}`), want{kind: providers.NotFound, message: "no such model"}, "BaseUrl"},
		{"405 with a string", reply(405, js, `{"error":"not allowed"}`), want{kind: providers.NotFound, message: "not allowed"}, ""},
		{"402", reply(402, js, `{"error":{"message":"Insufficient Balance"}}`), want{kind: providers.Quota}, "balance"},
		{"429 for money", reply(429, js, `{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}`), want{kind: providers.Quota}, ""},
		{"429", reply(429, js, `{"error":{"message":"slow down"}}`), want{kind: providers.RateLimited, message: "slow down"}, "later"},
		{"400 too long", reply(400, js, `{"error":{"message":"This model's maximum context length is 8192 tokens","code":"context_length_exceeded"}}`), want{kind: providers.TooLong}, "new conversation"},
		{"413", reply(413, "text/plain", "too big"), want{kind: providers.TooLong, message: "too big"}, ""},
		{"400 filter", reply(400, js, `{"error":{"message":"flagged","code":"content_filter"}}`), want{kind: providers.Filtered}, ""},
		{"400", reply(400, js, `{"error":{"message":"unknown field"}}`), want{kind: providers.Invalid, message: "HTTP 400: unknown field"}, `model "m" supports`},
		{"400 in a list", reply(400, js, `[{"error":{"code":400,"message":"API key not valid","status":"INVALID_ARGUMENT"}}]`), want{kind: providers.Invalid, message: "API key not valid"}, ""},
		{"422 that repeats the request", reply(422, js, `{"detail":[{"type":"missing","loc":["body","model"],"msg":"Field required","input":{"messages":"SECRET PROMPT"}}]}`), want{kind: providers.Invalid, message: "HTTP 422: body.model: Field required"}, ""},
		{"500 vLLM", reply(500, js, `{"object":"error","message":"boom","type":"InternalServerError","code":500}`), want{kind: providers.Overloaded, message: "boom"}, ""},
		{"502 page", reply(502, "text/html", "<html><body>"+strings.Repeat("x", 10000)+"</body></html>"), want{kind: providers.Overloaded, message: "HTTP 502: an HTML page, not an API answer"}, ""},
		{"404 page", reply(404, "text/html", "\n <!DOCTYPE html>"), want{kind: providers.NotFound, message: "is the base URL right?"}, "BaseUrl"},
		{"500 empty", reply(500, "text/plain", ""), want{kind: providers.Overloaded, message: "internal server error"}, ""},
		{"500 long, many lines, control characters", reply(500, "text/plain", strings.Repeat("line\r\n\x1b[31m\x00\xff", 1000)), want{kind: providers.Overloaded, message: "line"}, ""},
		{"204", reply(204, "text/plain", ""), want{kind: providers.BrokenStream, message: "broke off"}, ""},
		{"304", reply(304, "text/plain", ""), want{kind: providers.BrokenStream, message: "304"}, ""},
	} {
		t.Run(v.name, func(t *testing.T) {
			h := listen(t, c, t.Context(), serve(t, v.answer), ask("hi"))
			check(t, h, v.want)
			if !strings.Contains(h.Err.Next, v.next) {
				t.Errorf("next step %q, want %q in it", h.Err.Next, v.next)
			}
			s := h.Err.Error()
			for _, bad := range []string{"SECRET", "WXYZ", "canar", "token=", "u:p@", "\x1b", "\x00"} {
				if strings.Contains(s, bad) {
					t.Errorf("the text holds %q: %q", bad, s)
				}
			}
			if len(s) > 700 || len(h.Retries) > 0 {
				t.Errorf("%d bytes, %d retries: %q", len(s), len(h.Retries), s)
			}
		})
	}
}

// A redirect is an error that names the address, and nothing is sent there.
func TestRedirectNeverCarriesTheKey(t *testing.T) {
	var hits atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	t.Cleanup(other.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		for name, target := range map[string]string{"another server": other.URL + "/v1/chat/completions?token=abc", "the same server": "/elsewhere"} {
			t.Run(fmt.Sprint(status, " to ", name), func(t *testing.T) {
				var here atomic.Int32
				snap := serve(t, func(w http.ResponseWriter, r *http.Request) {
					here.Add(1)
					http.Redirect(w, r, target, status)
				})
				c := client(t, Config{})
				h := listen(t, c, t.Context(), snap, ask("hi"))
				check(t, h, want{kind: providers.Invalid, message: "redirects are not followed"})
				if h.Err.Status != status || hits.Load() != 0 || here.Load() != 1 {
					t.Errorf("status %d, %d requests there and %d here", h.Err.Status, hits.Load(), here.Load())
				}
				if strings.Contains(h.Err.Error(), "token") || !strings.Contains(h.Err.Next, "BaseUrl") {
					t.Errorf("%q, next %q", h.Err, h.Err.Next)
				}
			})
		}
	}
}

// A compressed answer is read, and one that is a bomb ends at the limit.
func TestCompressedAnswers(t *testing.T) {
	squeeze := func(fill func(io.Writer)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
				t.Error("the server may not compress")
			}
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Type", "text/event-stream")
			z := gzip.NewWriter(w)
			fill(z)
			_ = z.Close()
		}
	}
	repeat := func(s string, n int) func(io.Writer) {
		return func(w io.Writer) {
			for range n {
				if _, err := io.WriteString(w, s); err != nil {
					return
				}
			}
		}
	}
	page := strings.Repeat(": x\n", 64<<10/4)
	c := client(t, Config{Attempts: 1})
	c.maxBody = 24 << 20
	for _, v := range []struct {
		name string
		fill func(io.Writer)
		want want
	}{
		{"sound", repeat(text(hello)+end("stop")+fin, 1), want{text: hello, stop: providers.StopEnd}},
		{"bomb of comments", repeat(page, 500), want{kind: providers.BrokenStream, message: "bigger than the limit"}},
		{"bomb of one line", repeat(strings.Repeat("x", 64<<10), 300), want{kind: providers.BrokenStream, message: "limit"}},
		{"bomb of one document", func(w io.Writer) { repeat(strings.Repeat("[", 64<<10), 300)(w) }, want{kind: providers.BrokenStream, message: "limit"}},
	} {
		t.Run(v.name, func(t *testing.T) {
			check(t, listen(t, c, t.Context(), serve(t, squeeze(v.fill)), ask("hi")), v.want)
		})
	}
	t.Run("bomb as an error", func(t *testing.T) {
		var z bytes.Buffer
		g := gzip.NewWriter(&z)
		repeat(strings.Repeat("x", 64<<10), 1000)(g)
		_ = g.Close()
		h := listen(t, c, t.Context(), serve(t, reply(400, "text/plain", z.String(), "Content-Encoding", "gzip")), ask("hi"))
		check(t, h, want{kind: providers.Invalid, message: "HTTP 400: xxx"})
	})
	t.Run("error without end", func(t *testing.T) {
		h := listen(t, client(t, Config{Attempts: 1, FirstByte: time.Minute}), t.Context(), serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(400)
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, page)
			}
		}), ask("hi"))
		check(t, h, want{kind: providers.Invalid, message: "HTTP 400: : x"})
	})
	t.Run("not gzip at all", func(t *testing.T) {
		h := listen(t, c, t.Context(), serve(t, reply(200, "text/event-stream", text(hello), "Content-Encoding", "gzip")), ask("hi"))
		check(t, h, want{kind: providers.BrokenStream, message: "broke"})
	})
}

// What cannot be reached is named, in words and without the address's secrets.
func TestUnreachable(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	addr := srv.Listener.Addr().String()
	srv.Close()
	for _, v := range []struct{ name, base, message string }{
		{"nobody listens", "http://" + addr + "/v1", "no answer from " + addr + ": dial: connect: connection refused"},
		{"no such name", "http://no-such-host.invalid/v1", "the name no-such-host.invalid cannot be resolved"},
		{"no such scheme", "ftp://" + addr + "/v1", "no answer from"},
	} {
		t.Run(v.name, func(t *testing.T) {
			c := client(t, Config{Attempts: 1})
			check(t, listen(t, c, t.Context(), snapshot(v.base), ask("hi")), want{kind: providers.Network, message: v.message})
		})
	}
}

// The key travels in one header only, nothing comes from the environment, and
// the headers that describe this machine are not sent.
func TestHeaders(t *testing.T) {
	for _, name := range []string{"OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_BASE_URL", "OPENAI_CUSTOM_HEADERS"} {
		t.Setenv(name, "X-Leak: from-environment")
	}
	var got http.Header
	var path string
	snap := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got, path = r.Header.Clone(), r.URL.Path
		events(text(hello)+end("stop")+fin)(w, r)
	})
	c := client(t, Config{UserAgent: "lakecode/1"})
	for _, key := range []string{testKey, ""} {
		snap.Key = providers.NewSecret(key)
		check(t, listen(t, c, t.Context(), snap, ask("hi")), ok)
		auth := ""
		if key != "" {
			auth = "Bearer " + key
		}
		if got.Get("Authorization") != auth || path != "/v1/chat/completions" || got.Get("User-Agent") != "lakecode/1" ||
			got.Get("Accept") != "text/event-stream" || got.Get("Content-Type") != "application/json" {
			t.Errorf("%s %v", path, got)
		}
		for name, values := range got {
			if strings.HasPrefix(name, "X-Stainless") || strings.HasPrefix(name, "Openai-") || strings.Contains(strings.Join(values, " "), "environment") {
				t.Errorf("header %s: %v", name, values)
			}
		}
	}
}

// Breaking off the loop ends the request at the server at once.
func TestBreakClosesTheConnection(t *testing.T) {
	gone := make(chan struct{})
	snap := serve(t, func(w http.ResponseWriter, r *http.Request) {
		events(text(hello))(w, r)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(gone)
	})
	for _, err := range client(t, Config{}).Stream(t.Context(), snap, ask("hi")) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	select {
	case <-gone:
	case <-time.After(10 * time.Second):
		t.Fatal("the server still sees the connection")
	}
}

// A cancelled request says so, whatever it was doing, and sends nothing again.
func TestCancel(t *testing.T) {
	stopped := errors.New("stopped by the person")
	for _, when := range []string{"before headers", "in the middle", "while waiting"} {
		t.Run(when, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			var hits atomic.Int32
			snap := serve(t, func(w http.ResponseWriter, r *http.Request) {
				hits.Add(1)
				_, _ = io.Copy(io.Discard, r.Body)
				switch when {
				case "before headers":
					cancel(stopped)
					<-r.Context().Done()
				case "in the middle":
					events(text(hello))(w, r)
					w.(http.Flusher).Flush()
					<-r.Context().Done()
				default:
					w.Header().Set("Retry-After", "20")
					w.WriteHeader(503)
				}
			})
			var last error
			for d, err := range client(t, Config{}).Stream(ctx, snap, ask("hi")) {
				last = err
				switch d.(type) {
				case providers.TextDelta, providers.Retrying:
					cancel(stopped)
				}
			}
			var e *providers.Error
			if !errors.As(last, &e) || e.Kind != providers.Cancelled || !errors.Is(last, stopped) || hits.Load() != 1 {
				t.Errorf("%#v after %d requests", last, hits.Load())
			}
		})
	}
}

// Credentials are taken out of a text in whatever form a server quotes them.
func TestRedact(t *testing.T) {
	for _, v := range []struct{ key, in, want string }{
		{"pass.word:x/y", "key pass.word:x/y is bad, pass.word:x/y!", "key [key] is bad, [key]!"},
		{"", "sk-proj-abcdefghijk is not yours", "[key] is not yours"},
		{"", "key abc*****xyz", "key [key]"},
		{"", "Authorization: Bearer abcdef.ghi", "Authorization: Bearer [key]"},
		{"0123456789abcdef", "begins with 012345, ends with cdef, holds 3456789a", "begins with [key], ends with [key], holds [key]"},
		{"none", "none of these", "[key] of these"},
		{"x", "x marks the spot", "x marks the spot"},
		{"", "see https://user:pw@host:1/p/q?key=1#f.", "see https://host:1/p/q"},
		{"", "see http://host/%zz?key=1", "see [address]"},
		{"", "the task-based sky-high monkey-business", "the task-based sky-high monkey-business"},
	} {
		if got := redact(v.in, v.key); got != v.want {
			t.Errorf("%q with key %q: %q, want %q", v.in, v.key, got, v.want)
		}
	}
}

// A server that never stops talking fills no memory, whichever way it talks.
func TestEndlessAnswer(t *testing.T) {
	word := strings.Repeat("x", 64<<10)
	for name, piece := range map[string]string{
		"text":      text(word),
		"reasoning": ch(`{"reasoning_content":"`+word+`"}`, "null"),
		"arguments": tc(`{"index":0,"function":{"name":"f","arguments":"` + word + `"}}`),
	} {
		t.Run(name, func(t *testing.T) {
			snap := serve(t, func(w http.ResponseWriter, r *http.Request) {
				for r.Context().Err() == nil {
					if _, err := io.WriteString(w, piece); err != nil {
						return
					}
				}
			})
			h := listen(t, client(t, Config{Attempts: 1}), t.Context(), snap, ask("hi"))
			if h.Err == nil || h.Err.Kind != providers.BrokenStream || !strings.Contains(h.Err.Error(), "longer than any") {
				t.Errorf("got %+v", h.Err)
			}
			if n := len(h.Text) + len(h.Reasoning); n > maxAnswer {
				t.Errorf("%d bytes were shown", n)
			}
		})
	}
}
