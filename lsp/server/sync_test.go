package server

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lakecode/lakecode/agent"
	"github.com/lakecode/lakecode/lsp/overlay"
	"github.com/lakecode/lakecode/lsp/wire"
)

const doc = "file:///ws/a.go"

func didOpen(uri string, version int, text string) string {
	return fmt.Sprintf(`{"textDocument":{"uri":%q,"languageId":"go","version":%d,"text":%s}}`, uri, version, quote(text))
}

func didChange(uri string, version int, changes string) string {
	return fmt.Sprintf(`{"textDocument":{"uri":%q,"version":%d},"contentChanges":[%s]}`, uri, version, changes)
}

func insert(line, char int, text string) string {
	return fmt.Sprintf(`{"range":{"start":{"line":%d,"character":%d},"end":{"line":%[1]d,"character":%[2]d}},"text":%s}`, line, char, quote(text))
}

// covers ED-8 partly
func TestCommandSeesTheChangesBeforeIt(t *testing.T) {
	const n = 5000
	e := serve(t, full)
	c := e.conversation()
	var seen []overlay.Doc
	c.do = func(context.Context, agent.Command) (agent.Receipt, error) {
		seen = e.docs.Docs()
		return agent.Receipt{RequestID: "t1"}, nil
	}
	e.notify("textDocument/didOpen", didOpen(doc, 0, ""))
	want := make([]byte, n)
	for i := range n {
		want[i] = 'a' + byte(i%26)
		e.notify("textDocument/didChange", didChange(doc, i+1, insert(0, i, string(want[i]))))
	}
	e.ok(wire.ConversationSubmit, `{"conversationId":"s1","text":"look"}`)
	if len(seen) != 1 || seen[0].Version != n || seen[0].Text != string(want) || seen[0].Unsure {
		t.Errorf("the command saw version %d, %d bytes", seen[0].Version, len(seen[0].Text))
	}
}

func TestCommandsKeepTheirOrder(t *testing.T) {
	const n = 200
	e := serve(t, full)
	c := e.conversation()
	var ids []string
	var want []agent.Command
	for i := range n {
		title := fmt.Sprint("t", i)
		want = append(want, agent.Rename{Title: title})
		ids = append(ids, e.request(wire.ConversationRename, fmt.Sprintf(`{"conversationId":"s1","title":%q}`, title)))
	}
	for _, id := range ids {
		e.response(id)
	}
	if d := cmp.Diff(want, c.commands()); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// covers ED-8 partly
func TestTenMegabyteDocument(t *testing.T) {
	e := serve(t, full)
	text := strings.Repeat("func f() { println(\"<tag> & é 😀\\n\") }\n", 10<<20/42)
	e.notify("textDocument/didOpen", didOpen(doc, 1, text))
	e.notify("textDocument/didChange", didChange(doc, 2, insert(1000, 3, "XX")))
	e.alive()
	docs := e.docs.Docs()
	lines := strings.SplitAfter(text, "\n")
	lines[1000] = lines[1000][:3] + "XX" + lines[1000][3:]
	if len(docs) != 1 || docs[0].Text != strings.Join(lines, "") {
		t.Error("the text is another one")
	}
}

// covers ED-8 partly
func TestWrongChangesAreSurvived(t *testing.T) {
	tests := []struct {
		name, changes string // notifications after a didOpen of "one\ntwo\n" in version 5
		want          overlay.Doc
	}{
		{"out of range", didChange(doc, 6, insert(99, 99, "end")), overlay.Doc{Version: 6, Text: "one\ntwo\nend"}},
		{"beyond 32 bits", didChange(doc, 6, insert(1<<40, 1<<40, "end")), overlay.Doc{Version: 6, Text: "one\ntwo\nend"}},
		{"old version", didChange(doc, 5, insert(0, 0, "x")), overlay.Doc{Version: 5, Text: "one\ntwo\n", Unsure: true}},
		{"negative position", didChange(doc, 6, insert(-1, 0, "x")), overlay.Doc{Version: 5, Text: "one\ntwo\n", Unsure: true}},
		{"range that is a number", didChange(doc, 6, `{"range":1,"text":"x"}`), overlay.Doc{Version: 5, Text: "one\ntwo\n", Unsure: true}},
		{"changes that are none", didChange(doc, 6, `7`), overlay.Doc{Version: 5, Text: "one\ntwo\n", Unsure: true}},
		{"null range is a whole text", didChange(doc, 6, `{"range":null,"text":"new"}`), overlay.Doc{Version: 6, Text: "new"}},
		{"backwards range", didChange(doc, 6, `{"range":{"start":{"line":0,"character":3},"end":{"line":0,"character":0}},"text":"x"}`), overlay.Doc{Version: 6, Text: "x\ntwo\n"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := serve(t, full)
			e.notify("textDocument/didOpen", didOpen(doc, 5, "one\ntwo\n"))
			e.notify("textDocument/didChange", tt.changes)
			e.alive()
			tt.want.URI, tt.want.Path, tt.want.Language = doc, "/ws/a.go", "go"
			check := func() {
				t.Helper()
				if d := cmp.Diff([]overlay.Doc{tt.want}, e.docs.Docs()); d != "" {
					t.Errorf("-want +got:\n%s", d)
				}
			}
			check()
			if tt.want.Unsure {
				if e.logs.FilterMessage("notification was ignored").Len() != 1 {
					t.Error("it was not logged")
				}
				e.notify("textDocument/didChange", didChange(doc, 7, `{"text":"whole"}`))
				e.alive()
				tt.want.Version, tt.want.Text, tt.want.Unsure = 7, "whole", false
				check()
			}
		})
	}
}

func TestChangeOfADocumentThatIsNotOpenIsLogged(t *testing.T) {
	e := serve(t, full)
	e.notify("textDocument/didChange", didChange(doc, 1, insert(0, 0, "x")))
	e.alive()
	if e.logs.FilterMessage("notification was ignored").Len() != 1 || len(e.docs.Docs()) != 0 {
		t.Errorf("logs %v, documents %v", e.logs.All(), e.docs.Docs())
	}
}

func TestDocumentsCloseAndAreSaved(t *testing.T) {
	e := serve(t, full)
	const untitled = "untitled:Untitled-1"
	e.notify("textDocument/didOpen", didOpen(untitled, 1, "a"))
	e.notify("textDocument/didSave", `{"textDocument":{"uri":"untitled:Untitled-1"},"text":"b"}`)
	e.alive()
	want := []overlay.Doc{{URI: untitled, Language: "go", Version: 1, Text: "b"}}
	if d := cmp.Diff(want, e.docs.Docs()); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	e.notify("textDocument/didClose", `{"textDocument":{"uri":"untitled:Untitled-1"}}`)
	e.alive()
	if docs := e.docs.Docs(); len(docs) != 0 {
		t.Errorf("still open: %v", docs)
	}
}

func TestEncodingIsNegotiated(t *testing.T) {
	for offered, want := range map[string]string{`["utf-16","utf-8"]`: "é😀x", `["utf-16"]`: "é😀x", `["utf-32"]`: "é😀x", `[]`: "é😀x"} {
		e := connect(t).listen()
		var got initialized
		into(t, e.ok("initialize", `{"capabilities":{"general":{"positionEncodings":`+offered+`}}}`), &got)
		char := map[string]int{"utf-8": 6, "utf-16": 3}[got.Capabilities.PositionEncoding]
		e.notify("textDocument/didOpen", didOpen(doc, 1, "é😀"))
		e.notify("textDocument/didChange", didChange(doc, 2, insert(0, char, "x")))
		e.alive()
		if docs := e.docs.Docs(); docs[0].Text != want || (got.Capabilities.PositionEncoding == "utf-8") != strings.Contains(offered, "utf-8") {
			t.Errorf("%s: %s, text %q", offered, got.Capabilities.PositionEncoding, docs[0].Text)
		}
	}
}
