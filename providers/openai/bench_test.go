package openai

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lakecode/lakecode/providers"
)

// cpu is the processor time this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func tokens(n int) []string {
	out := make([]string, 0, n+3)
	for i := range n {
		out = append(out, text(fmt.Sprintf(" tok%d", i%100)))
	}
	return append(out, end("stop"), usageEv, fin)
}

// BenchmarkStream reads 4 000 tokens, each its own chunk, from a loopback server
// that sends them as one body. The CPU figure holds the server's share too.
// Bar: 13 us of CPU a token.
func BenchmarkStream(b *testing.B) {
	raw := strings.Join(tokens(4000), "")
	snap := serve(b, events(raw))
	benchStream(b, snap)
}

// BenchmarkStreamFlushed is the same with one write of the server for each token,
// which is how tokens come from a model. The server's share is the bigger one.
func BenchmarkStreamFlushed(b *testing.B) {
	chunks := tokens(4000)
	snap := serve(b, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		for _, c := range chunks {
			_, _ = io.WriteString(w, c)
			_ = http.NewResponseController(w).Flush()
		}
	})
	benchStream(b, snap)
}

func benchStream(b *testing.B, snap providers.Snapshot) {
	c := client(b, Config{})
	b.ReportAllocs()
	start := cpu()
	for b.Loop() {
		n := 0
		for d, err := range c.Stream(context.Background(), snap, ask("hi")) {
			if err != nil {
				b.Fatal(err)
			}
			if _, ok := d.(providers.TextDelta); ok {
				n++
			}
		}
		if n != 4000 {
			b.Fatalf("%d tokens", n)
		}
	}
	b.ReportMetric(float64((cpu()-start).Microseconds())/float64(b.N)/4000, "cpu-us/token")
}

// history is a conversation of about the given size: turns of a call and a
// result of 4 KiB.
func history(bytes int) []*providers.Message {
	result := strings.Repeat("\tif a < b && c > d { return \"x\" }\n", 120)
	out := ask("fix the test").Messages
	for size := 0; size < bytes; size += len(result) + 250 {
		id := fmt.Sprint("call_", len(out))
		out = append(out,
			says(providers.Assistant, providers.Text{Text: "I read the next file."}, providers.ToolCall{ID: id, Name: "read_file", Args: `{"path":"a.go"}`}),
			says(providers.Tool, providers.ToolResult{ID: id, Text: result}))
	}
	return out
}

// BenchmarkBody puts a request together whose history is encoded already, but for
// its last two messages.
func BenchmarkBody(b *testing.B) {
	for _, kb := range []int{100, 350, 1200} {
		b.Run(fmt.Sprint(kb, "KB"), func(b *testing.B) {
			c, snap := client(b, Config{}), snapshot("http://test/v1")
			req := providers.Request{System: strings.Repeat("Be brief. ", 600), Messages: history(kb << 10)}
			last := req.Messages[len(req.Messages)-2:]
			b.ReportAllocs()
			for b.Loop() {
				for i, m := range last {
					req.Messages[len(req.Messages)-2+i] = says(m.Role, m.Parts...)
				}
				body, err := c.body(&snap, &req)
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(len(body)))
			}
		})
	}
}

// BenchmarkRoundTrip sends such a request and reads a short answer.
func BenchmarkRoundTrip(b *testing.B) {
	for _, kb := range []int{1, 100, 350, 1200} {
		b.Run(fmt.Sprint(kb, "KB"), func(b *testing.B) {
			snap := serve(b, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				events(text(hello)+end("stop")+fin)(w, r)
			})
			c := client(b, Config{})
			req := providers.Request{System: strings.Repeat("Be brief. ", 600), Messages: history(kb << 10)}
			b.ReportAllocs()
			start := cpu()
			for b.Loop() {
				for _, err := range c.Stream(context.Background(), snap, req) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64((cpu()-start).Microseconds())/float64(b.N), "cpu-us/op")
		})
	}
}
