package server

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.lsp.dev/jsonrpc2"

	"github.com/lakecode/lakecode/agent"
	"github.com/lakecode/lakecode/lsp/wire"
)

// covers ED-8 partly
func TestStalledReaderCostsLittleAndStopsNothing(t *testing.T) {
	e := connect(t) // nobody reads
	e.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"rootUri":"file:///ws","capabilities":` + full + `}}`)
	e.send(`{"jsonrpc":"2.0","id":2,"method":"lakecode/conversation/create","params":{}}`)
	eventually(t, "a conversation", func() bool { return e.host.conv("s1") != nil })
	c := e.host.conv("s1")
	eventually(t, "it to be open", func() bool {
		e.srv.mu.Lock()
		defer e.srv.mu.Unlock()
		return e.srv.open["s1"] != nil
	})
	e.send(`{"jsonrpc":"2.0","id":3,"method":"lakecode/conversation/subscribe","params":{"conversationId":"s1"}}`)
	c.mu.Lock()
	c.maxLag = 5000
	c.mu.Unlock()
	for i := range 200 { // 100 MB
		facts := make([]agent.Fact, 50)
		for j := range facts {
			facts[j] = agent.CallEnded{Call: strconv.Itoa(i), Text: strings.Repeat("x", 10<<10)}
		}
		c.publish(facts...)
	}
	e.notify("textDocument/didOpen", didOpen(doc, 1, "still read"))
	eventually(t, "the document", func() bool { return len(e.docs.Docs()) == 1 })
	e.send(`{"jsonrpc":"2.0","id":4,"method":"lakecode/conversation/stop","params":{"conversationId":"s1"}}`)
	eventually(t, "the command", func() bool { return len(c.commands()) == 1 })
	e.srv.outbox.mu.Lock()
	waiting := len(e.srv.outbox.queued) + e.srv.outbox.writing
	e.srv.outbox.mu.Unlock()
	if waiting > outboxRoom+2*batchSize {
		t.Errorf("%d bytes wait", waiting)
	}
	e.listen() // it comes back
	e.response("4")
	e.event(wire.KindLagged)
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for limit := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("waited for %s", what)
		}
	}
}

func TestEditorThatNeverReadsAnswersIsGone(t *testing.T) {
	e := connect(t)
	big := jsonrpc2.RawMessage(`"` + strings.Repeat("x", 8<<20) + `"`)
	e.srv.methods["test/big"] = func(context.Context, []byte) (any, waiting, error) { return big, nil, nil }
	e.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"rootUri":"file:///ws","capabilities":{}}}`)
	for i := range 10 {
		if _, err := e.to.Write([]byte(frame(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"test/big"}`, i+2)))); err != nil {
			break // gone already
		}
	}
	e.wait()
	if !errors.Is(e.err, errGone) {
		t.Errorf("error %v", e.err)
	}
}

// One message may be larger than what may wait: that says nothing about whether
// the editor reads.
func TestMessageLargerThanTheOutboxIsSent(t *testing.T) {
	e := serve(t, full)
	huge := jsonrpc2.RawMessage(`"` + strings.Repeat("x", outboxLimit) + `"`)
	e.srv.methods["test/huge"] = func(context.Context, []byte) (any, waiting, error) { return huge, nil, nil }
	for range 2 {
		if got := e.ok("test/huge", `{}`); len(got) != len(huge) {
			t.Fatalf("%d bytes came, want %d", len(got), len(huge))
		}
	}
}
