package server

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/lakecode/lakecode/agent"
	"github.com/lakecode/lakecode/lsp/overlay"
	"github.com/lakecode/lakecode/lsp/wire"
)

// BenchmarkRoundTrip is one request and its answer over pipes.
func BenchmarkRoundTrip(b *testing.B) {
	e := connect(b)
	in := bufio.NewReader(e.from)
	call := func(body string) {
		e.send(body)
		if _, err := readMessage(in); err != nil {
			b.Fatal(err)
		}
	}
	call(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"rootUri":"file:///ws","capabilities":{}}}`)
	call(`{"jsonrpc":"2.0","id":2,"method":"lakecode/conversation/create","params":{}}`)
	for name, body := range map[string]string{
		"state/get":         `{"jsonrpc":"2.0","id":3,"method":"lakecode/state/get","params":{"conversationId":"s1"}}`,
		"conversation/stop": `{"jsonrpc":"2.0","id":3,"method":"lakecode/conversation/stop","params":{"conversationId":"s1"}}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				call(body)
			}
		})
	}
}

// BenchmarkDidChange is one small change to a document of 100 KB.
func BenchmarkDidChange(b *testing.B) {
	s := New(Config{Host: newFakeHost(), Docs: overlay.NewStore(), Log: zap.NewNop()})
	if err := s.didOpen([]byte(didOpen(doc, 0, string(make([]byte, 100<<10))))); err != nil {
		b.Fatal(err)
	}
	version := 0
	b.ReportAllocs()
	for b.Loop() {
		version++
		if err := s.didChange([]byte(didChange(doc, version, insert(0, version, "x")))); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTenMegabyteDidOpen is from the first byte to the overlay.
func BenchmarkTenMegabyteDidOpen(b *testing.B) {
	e := serve(b, full)
	text := make([]byte, 10<<20)
	for i := range text {
		text[i] = "func f() { return }\n"[i%20]
	}
	body := frame(fmt.Sprintf(`{"jsonrpc":"2.0","method":"textDocument/didOpen","params":%s}`, didOpen(doc, 1, string(text))))
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		e.raw(body)
		e.alive()
	}
}

// BenchmarkStream is what a fragment of a stream costs the front, without a
// pause between them.
func BenchmarkStream(b *testing.B) {
	e := connect(b)
	go io.Copy(io.Discard, e.from)
	e.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"rootUri":"file:///ws","capabilities":` + full + `}}`)
	e.send(`{"jsonrpc":"2.0","id":2,"method":"lakecode/conversation/create","params":{}}`)
	eventually(b, "a conversation", func() bool {
		e.srv.mu.Lock()
		defer e.srv.mu.Unlock()
		return e.srv.open["s1"] != nil
	})
	c := e.host.conv("s1")
	e.send(`{"jsonrpc":"2.0","id":3,"method":"lakecode/conversation/subscribe","params":{"conversationId":"s1"}}`)
	b.ReportAllocs()
	for b.Loop() {
		c.publish(agent.TextAdded{Item: "a", Text: "word "})
	}
}

// BenchmarkDeliveryLatency is the time from a fragment's publication to its
// arrival in the editor, at 200 fragments a second, and that of a first fragment
// after silence.
func BenchmarkDeliveryLatency(b *testing.B) {
	e, c := subscribed(b)
	measure := func(n int, pause time.Duration) (waits []time.Duration) {
		e.mu.Lock()
		from := len(e.got)
		e.mu.Unlock()
		sent := map[uint64]time.Time{}
		first := c.last() + 1
		for range n {
			at := time.Now()
			c.publish(agent.CallStarted{Call: "c"}) // is never merged
			sent[c.last()] = at
			time.Sleep(pause)
		}
		for len(waits) < n {
			waits = waits[:0]
			for _, m := range e.messages()[from:] {
				if m.Method != wire.EventsNote {
					continue
				}
				var batch wire.Events
				into(b, m.Params, &batch)
				for _, ev := range batch.Events {
					if seq := ev.Header().Seq; seq >= first {
						waits = append(waits, m.at.Sub(sent[seq]))
					}
				}
			}
			time.Sleep(time.Millisecond)
		}
		slices.Sort(waits)
		return waits
	}
	for b.Loop() {
		fast, silent := measure(400, 5*time.Millisecond), measure(40, 50*time.Millisecond)
		b.ReportMetric(ms(fast[len(fast)/2]), "p50-ms")
		b.ReportMetric(ms(fast[len(fast)*99/100]), "p99-ms")
		b.ReportMetric(ms(silent[len(silent)/2]), "first-p50-ms")
		b.ReportMetric(ms(silent[len(silent)*99/100]), "first-p99-ms")
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
