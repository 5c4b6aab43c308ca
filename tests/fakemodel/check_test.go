package fakemodel

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lakecode/lakecode/providers/rehearsal"
	"github.com/lakecode/lakecode/tools"
)

const (
	system = `{"role":"system","content":"be kind"}`
	user   = `{"role":"user","content":"hello"}`
	tool   = `{"type":"function","function":{"name":"read_file","description":"reads","parameters":{"type":"object"}}}`
)

// calls is an assistant message with calls of these ids, result a result.
func calls(ids ...string) string {
	var all []string
	for _, id := range ids {
		all = append(all, fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":"read_file","arguments":"{}"}}`, id))
	}
	return `{"role":"assistant","content":null,"tool_calls":[` + strings.Join(all, ",") + `]}`
}

func result(id string) string {
	return fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":"text"}`, id)
}

// talk is a whole body with these messages.
func talk(messages ...string) string {
	return body(`[`+tool+`]`, messages...)
}

func body(tools string, messages ...string) string {
	return `{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[` + strings.Join(messages, ",") + `],"tools":` + tools + `}`
}

// request is what a client with the key "k" sends.
func request(body string) *rehearsal.Request {
	return &rehearsal.Request{
		Path: "/v1/chat/completions", Body: []byte(body),
		Header: http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer k"}},
	}
}

func TestCheckerFindsWhatIsWrong(t *testing.T) {
	check := func(name, body string, want ...string) {
		t.Helper()
		got := NewChecker(Config{Key: "k", Canary: []string{"canary-7"}, MaxBody: 5000}).Check(request(body))
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got)\n%s", name, d)
		}
	}
	check("nothing", talk(system, user))
	check("nothing, with calls", talk(system, user, calls("1", "2"), result("1"), result("2"), calls("3"), result("3")))
	check("no result at the end", talk(system, user, calls("1")),
		`the last message is of the role "assistant", so there is nothing to answer`, "the call 1 has no result before message 4")
	check("one of two results", talk(system, user, calls("1", "2"), result("1"), user), "the call 2 has no result before message 5")
	check("result too late", talk(system, user, calls("1"), user, result("1")),
		"the call 1 has no result before message 4", "message 5 is a result of 1, which no call right before it has")
	check("result twice", talk(system, user, calls("1"), result("1"), result("1")), "message 5 is a second result of the call 1")
	check("result of nothing", talk(system, user, result("9")), "message 3 is a result of 9, which no call right before it has")
	check("results out of order", talk(system, user, calls("1", "2"), result("2"), result("1")),
		"message 4 is the result of 2, out of order: 1 comes first")
	check("call id twice", talk(system, user, calls("1"), result("1"), calls("1"), result("1")),
		"the call id 1 is used twice", "message 6 is a second result of the call 1")
	check("result without id", talk(system, user, `{"role":"tool","content":"x"}`),
		"message 3 is a result without the id of its call", "message 3 is a result of , which no call right before it has")
	check("bad arguments", talk(system, user, strings.Replace(calls("1"), `"{}"`, `"{"`, 1), result("1")),
		"the arguments of the call 1 in message 3 are no JSON object")
	check("call without type", talk(system, user, strings.Replace(calls("1"), `"type":"function",`, ``, 1), result("1")),
		`a call in message 3 lacks its id, type or name: {ID:1 Type: Name:read_file Args:{}}`)
	check("no messages", talk(), "the request has no messages")
	check("system in the middle", talk(system, user, system, user), "message 3 is a system message, which may only come first")
	check("unknown role", talk(`{"role":"developer","content":"x"}`, user), `message 1 is of the role "developer"`)
	check("empty user", talk(system, `{"role":"user","content":""}`), "message 2 (user) is empty")
	check("empty result", talk(system, user, calls("1"), `{"role":"tool","tool_call_id":"1","content":""}`), "message 4 (tool) is empty")
	check("empty answer", talk(system, user, `{"role":"assistant","content":""}`, user), "message 3 (assistant) is empty")
	check("empty calls", talk(system, user, `{"role":"assistant","content":"x","tool_calls":[]}`, user), "message 3 has an empty list of calls")
	check("calls of a user", talk(system, strings.Replace(calls("1"), "assistant", "user", 1), result("1")), "message 2 (user) holds calls")
	check("picture", talk(system, `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}`),
		"message 2 (user) holds a picture, which this model or this role cannot have")
	check("canary", talk(system, `{"role":"user","content":"my canary-7 sings"}`), "canary 1 stands in the body")
	check("size", talk(system, `{"role":"user","content":"`+strings.Repeat("x", 6000)+`"}`), "the body has 6262 bytes, more than 5000")
	check("not UTF-8", talk(system, "{\"role\":\"user\",\"content\":\"\xff\"}"), "the body is not UTF-8")
	check("not JSON", "hello", "the body is not a chat request: invalid character 'h' looking for beginning of value")
	check("no stream, usage or model", `{"messages":[`+user+`]}`,
		"the request does not say stream: true", "the request does not ask for the usage (stream_options.include_usage)", "the request names no model")
	check("forbidden tool", body(`[`+strings.Replace(tool, "read_file", "format_disk", 1)+`]`, system, user),
		`the tool "format_disk" is offered, which the role may not have`)
	check("tool twice", body(`[`+tool+`,`+tool+`]`, system, user), `the tool "read_file" is offered twice`)
	check("no tools", body(`[]`, system, user), "the list of tools is there and empty, which servers refuse; it must be left out")
	check("tool without description", body(`[`+strings.Replace(tool, "reads", "", 1)+`]`, system, user),
		`the tool "read_file" lacks a type, a proper name or a description`)
	check("tool without schema", body(`[`+strings.Replace(tool, `"object"`, `"string"`, 1)+`]`, system, user),
		`the parameters of the tool "read_file" are no object schema`)
}

func TestCheckerLooksAtTheHeaders(t *testing.T) {
	check := func(name string, conf Config, change func(http.Header), want ...string) {
		t.Helper()
		conf.Canary = []string{"k"}
		r := request(strings.ReplaceAll(talk(system, user), "k", "q"))
		r.Body = []byte(strings.NewReplacer("qind", "lovely").Replace(string(r.Body)))
		change(r.Header)
		if d := cmp.Diff(want, NewChecker(conf).Check(r)); d != "" {
			t.Errorf("%s (-want +got)\n%s", name, d)
		}
	}
	check("right key", Config{Key: "k"}, func(http.Header) {})
	check("wrong key", Config{Key: "other"}, func(http.Header) {}, "the Authorization header is not what the connection says (1 values of 8 bytes)")
	check("key where none belongs", Config{}, func(http.Header) {}, "the Authorization header is not what the connection says (1 values of 8 bytes)")
	check("no key", Config{Key: "k"}, func(h http.Header) { h.Del("Authorization") }, "the Authorization header is not what the connection says (0 values of 0 bytes)")
	check("key in another header", Config{Key: "k"}, func(h http.Header) { h.Set("X-Trace", "k") }, "canary 1 stands in the header X-Trace")
	check("content type", Config{Key: "k"}, func(h http.Header) { h.Set("Content-Type", "text/plain") }, `Content-Type is "text/plain", not application/json`)
}

func TestCheckerComparesWithTheRequestBefore(t *testing.T) {
	check := func(name string, conf Config, before, now string, want ...string) {
		t.Helper()
		conf.Key = "k"
		c := NewChecker(conf)
		if got := c.Check(request(before)); got != nil {
			t.Errorf("%s: the first request is wrong itself: %q", name, got)
		}
		if d := cmp.Diff(want, c.Check(request(now))); d != "" {
			t.Errorf("%s (-want +got)\n%s", name, d)
		}
	}
	grown := talk(system, user, calls("1"), result("1"))
	check("grown", Config{}, talk(system, user), grown)
	check("again", Config{}, grown, grown)
	check("spaces", Config{}, talk(system, user), talk(system, strings.Replace(user, `:"hello"`, `: "hello"`, 1)),
		`message 2 has changed since the last request: at byte 25, before "{\"role\":\"user\",\"content\":\"hello\"}", now "{\"role\":\"user\",\"content\": \"hello\"}"`)
	check("shorter", Config{}, grown, talk(system, user), "the history is shorter than in the last request: 2 messages, before 4")
	check("shorter, allowed", Config{Rewrites: true}, grown, talk(system, user))
	check("system", Config{Rewrites: true}, talk(system, user), talk(strings.Replace(system, "kind", "rude", 1), user),
		`the system prompt has changed since the last request: at byte 3, before "be kind", now "be rude"`)
	check("tools", Config{Rewrites: true}, talk(system, user), body(`[ `+tool+`]`, system, user),
		`the tools have changed since the last request: at byte 1, before "[{\"type\":\"function\",\"function\":{\"name\":\"read_file\",\"description\":\"reads\",\"paramet", now "[ {\"type\":\"function\",\"function\":{\"name\":\"read_file\",\"description\":\"reads\",\"parame"`)
	own := func(r *rehearsal.Request) string {
		return r.Header.Get("X-Session") + string(r.Body[len(r.Body)-1]) + fmt.Sprint(len(r.Body))
	}
	check("another session", Config{Session: own}, talk(system, user), talk(system, `{"role":"user","content":"other talk"}`))
	check("role", Config{Role: tools.Role{"read_file": tools.Free}}, talk(system, user), grown)
}

func TestRoleDecidesWhatMayBeOffered(t *testing.T) {
	bash := body(`[`+strings.Replace(tool, "read_file", "bash", 1)+`]`, system, user)
	if got := NewChecker(Config{Key: "k", Role: tools.Research}).Check(request(bash)); len(got) != 1 || !strings.Contains(got[0], `"bash"`) {
		t.Errorf("bash for research: %q", got)
	}
	if got := NewChecker(Config{Key: "k"}).Check(request(bash)); got != nil {
		t.Errorf("bash for build: %q", got)
	}
	picture := talk(system, `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:,"}}]}`)
	if got := NewChecker(Config{Key: "k", Images: true}).Check(request(picture)); got != nil {
		t.Errorf("a picture for a model with eyes: %q", got)
	}
}
