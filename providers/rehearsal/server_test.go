package rehearsal

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stage is a served script and a client for it.
type stage struct {
	*Server
	t      *testing.T
	client *http.Client

	mu      sync.Mutex
	failed  []string
	arrived []*Request
}

func start(t *testing.T, text string) *stage {
	t.Helper()
	script, err := Parse("test", text)
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{t: t, client: &http.Client{Transport: &http.Transport{}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	s.Server, err = Start(t.Context(), script, Options{
		Observe: func(r *Request) { s.mu.Lock(); s.arrived = append(s.arrived, r); s.mu.Unlock() },
		Failed:  func(err error) { s.mu.Lock(); s.failed = append(s.failed, err.Error()); s.mu.Unlock() },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.client.CloseIdleConnections(); s.Close() })
	return s
}

const hello = `{"model":"m","stream":true,"messages":[{"role":"system","content":"be kind"},{"role":"user","content":"hello there"}]}`

func (s *stage) send(ctx context.Context, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+"/chat/completions", strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	return s.client.Do(req)
}

// reply is what a client makes of an answer.
type reply struct {
	Status    int
	Text      string
	Reasoning string
	Calls     []Call
	Finish    string
	In, Out   int
	Done      bool
	Pieces    int
	Raw       string
	Err       error
}

// ask sends body and reads the whole answer.
func (s *stage) ask(body string) reply {
	s.t.Helper()
	resp, err := s.send(s.t.Context(), body)
	if err != nil {
		return reply{Err: err}
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	r := reply{Status: resp.StatusCode, Raw: string(raw), Err: err}
	sc := bufio.NewScanner(bytes.NewReader(raw))
	for sc.Scan() {
		data, ok := strings.CutPrefix(sc.Text(), "data: ")
		if data == "[DONE]" {
			r.Done = true
		}
		var c struct {
			Choices []struct {
				Delta struct {
					Content          string
					ReasoningContent string `json:"reasoning_content"`
					ToolCalls        []struct {
						Index    int
						ID, Type string
						Function struct{ Name, Arguments string }
					} `json:"tool_calls"`
				}
				Finish *string `json:"finish_reason"`
			}
			Usage struct {
				In  int `json:"prompt_tokens"`
				Out int `json:"completion_tokens"`
			}
		}
		if !ok || json.Unmarshal([]byte(data), &c) != nil {
			continue
		}
		r.In, r.Out = r.In+c.Usage.In, r.Out+c.Usage.Out
		for _, ch := range c.Choices {
			r.Pieces++
			r.Text += ch.Delta.Content
			r.Reasoning += ch.Delta.ReasoningContent
			for _, tc := range ch.Delta.ToolCalls {
				if tc.Index == len(r.Calls) {
					r.Calls = append(r.Calls, Call{ID: tc.ID, Type: tc.Type, Name: tc.Function.Name})
				}
				r.Calls[tc.Index].Args += tc.Function.Arguments
			}
			if ch.Finish != nil {
				r.Finish = *ch.Finish
			}
		}
	}
	return r
}

func TestAnswersArriveInOrderAndInPieces(t *testing.T) {
	s := start(t, `
think First, think.
say Hello, 世界! Good day.
usage in=10 out=4
call read_file {"path": "a.go"}
call bash id=mine {"command": "ls"}

expect result contains "package a"
say Done.
length
tokens 3`)
	got := s.ask(hello)
	if got.Pieces < 8 {
		t.Errorf("the answer came in %d pieces, want one per word and more", got.Pieces)
	}
	got.Pieces, got.Raw = 0, ""
	want := reply{
		Status: 200, Reasoning: "First, think.", Text: "Hello, 世界! Good day.", Finish: "tool_calls", In: 10, Out: 4, Done: true,
		Calls: []Call{{"call_1_1", "function", "read_file", `{"path": "a.go"}`}, {"mine", "function", "bash", `{"command": "ls"}`}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("first answer (-want +got)\n%s", d)
	}
	second := s.ask(`{"model":"m","stream":true,"messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[]},{"role":"tool","tool_call_id":"1","content":"package a"}]}`)
	if second.Text != "Done." || second.Finish != "length" {
		t.Errorf("second answer: %+v", second)
	}
	if third := s.ask(hello); third.Text != "t1 t2 t3 " || third.Finish != "stop" || third.Out != 3 || third.In != len(hello)/4 {
		t.Errorf("third answer: %+v", third)
	}
	if left := s.Unplayed(); left != nil || s.failed != nil {
		t.Errorf("unplayed %q, failed %q; want neither", left, s.failed)
	}
	if len(s.arrived) != 3 || s.arrived[0].N != 1 || string(s.arrived[0].Body) != hello || s.arrived[0].Arrived.After(s.arrived[0].Read) {
		t.Errorf("requests were not recorded as they came: %+v", s.arrived)
	}
}

func TestUnforeseenRequestIsRefusedWithTheReason(t *testing.T) {
	check := func(script, body, say string) {
		t.Helper()
		s := start(t, script)
		got := s.ask(body)
		var e struct{ Error struct{ Message string } }
		if got.Status != 400 || json.Unmarshal([]byte(got.Raw), &e) != nil || !strings.Contains(e.Error.Message, say) {
			t.Errorf("%s: got %d %s, want 400 and %q", script, got.Status, got.Raw, say)
		}
		if len(s.failed) != 1 || !strings.Contains(s.failed[0], say) {
			t.Errorf("%s: reported %q, want %q", script, s.failed, say)
		}
		if left := s.Unplayed(); left != nil {
			t.Errorf("%s: unplayed %q, although the answer was spent", script, left)
		}
	}
	talk := `{"model":"m","stream":true,"tools":[{"type":"function","function":{"name":"lsp_rename"}}],"messages":[{"role":"system","content":"be kind"},{"role":"user","content":[{"type":"text","text":"hello"}]},` +
		`{"role":"assistant","content":null,"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}},{"id":"2","function":{"name":"f","arguments":"{}"}}]},` +
		`{"role":"tool","tool_call_id":"1","content":"one"},{"role":"tool","tool_call_id":"2","content":"two"}]}`
	refused := []struct{ expect, say string }{
		{`user contains bye`, `test:1: request 1: expect user contains bye: the user message of the request: "hello"`},
		{`result contains three`, `the result of the request: "one", "two"`},
		{`result lacks two`, `"one", "two"`},
		{`result[2] contains one`, `the result 2 (of 2) of the request: "two"`},
		{`result[3] lacks one`, `the request has no result 3 (of 2)`},
		{`results is 1`, `the number of results of the request: "2"`},
		{`system is kind`, `"be kind"`},
		{`tools contains lsp`, `the tools of the request: "lsp_rename"`},
		{`tools lacks lsp_rename`, `"lsp_rename"`},
		{`model matches ^x`, `the model of the request: "m"`},
		{`body contains nothing`, `bytes in all`},
	}
	for _, c := range refused {
		check("expect "+c.expect+"\nsay x", talk, c.say)
	}
	check("say x", "{", "not a chat request")
	check("say x", `{"messages":[]}`, "does not ask for a stream")
	check("expect model is m\nsay x", `{"stream":true,"messages":[{"role":7}]}`, "message 1")
	held := start(t, `
expect user is hello
expect result contains one
expect result[2] is "two"
expect results is 2
expect system contains kind
expect tools contains lsp_rename
expect tools lacks lsp
expect model matches ^m$
expect body contains tool_call_id
expect result lacks three
say fine`)
	if got := held.ask(talk); got.Text != "fine" {
		t.Errorf("expectations that hold: %+v, %q", got, held.failed)
	}
	if got := held.ask(talk); got.Status != 400 || !strings.Contains(got.Raw, "ends after 1 answers, and request 2 came") {
		t.Errorf("request after the end: %+v", got)
	}
}

func TestFaults(t *testing.T) {
	check := func(script string, ok func(reply) bool) {
		t.Helper()
		s := start(t, script)
		got := s.ask(hello)
		if len(got.Raw) > 500 {
			got.Raw = got.Raw[:500]
		}
		if !ok(got) {
			t.Errorf("%s: %+v", script, got)
		}
		if left := s.Unplayed(); left != nil {
			t.Errorf("%s: unplayed %q", script, left)
		}
	}
	check("say part\ncut", func(r reply) bool {
		return errors.Is(r.Err, io.ErrUnexpectedEOF) && r.Text == "part" && strings.HasSuffix(r.Raw, "compl") && !r.Done
	})
	check("rawcall bash {\"comm\ncut", func(r reply) bool {
		return r.Err != nil && len(r.Calls) == 1 && r.Calls[0].Args == `{"comm`
	})
	check("say part\neof", func(r reply) bool { return r.Err == nil && r.Text == "part" && !r.Done && r.Finish == "" })
	check("say x\nusage none", func(r reply) bool { return r.Done && !strings.Contains(r.Raw, "usage") })
	check("say x\nfinish content_filter", func(r reply) bool { return r.Done && r.Finish == "content_filter" })
	check(`raw "\ufeffdata:{\r\n"`, func(r reply) bool { return r.Raw == "\ufeffdata:{\r\n" })
	check("raw <<EOF\ndata: x\n\nEOF", func(r reply) bool { return r.Raw == "data: x\n" })
	check("garbage", func(r reply) bool { return r.Status == 200 && strings.Contains(r.Raw, "\xff\xfe garbage") })
	check("status 429 retry-after=1", func(r reply) bool {
		return r.Status == 429 && strings.Contains(r.Raw, `"message":"too many requests"`)
	})
	check(`status 200 content-type=text/html <h1>a=b</h1>`, func(r reply) bool { return r.Status == 200 && r.Raw == "<h1>a=b</h1>" })
	check(`status 302 location=http://127.0.0.1:9/v1`, func(r reply) bool { return r.Status == 302 })
	check("bomb 3MiB", func(r reply) bool { return r.Err == nil && strings.HasPrefix(r.Raw, "data: aaaa") })
	check("open\nwait 1ms\nsay x", func(r reply) bool { return r.Text == "x" && r.Done })
}

func TestStatusCarriesItsHeaders(t *testing.T) {
	s := start(t, "status 429 retry-after=7 x-why=tired {\"slow\": true}")
	resp, err := s.send(t.Context(), hello)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	got := fmt.Sprint(resp.StatusCode, resp.Header["Retry-After"], resp.Header["X-Why"], resp.Header["Content-Type"], string(body))
	if want := `429[7] [tired] [application/json]{"slow": true}`; strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(want, " ", "") {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestBombUnpacksToItsSize(t *testing.T) {
	s := start(t, "bomb 5MiB")
	resp, err := s.send(t.Context(), hello)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	if want := int64(5<<20 + len("data: ")); n != want || err != nil || !resp.Uncompressed {
		t.Errorf("unpacked %d bytes (%v), want %d", n, err, want)
	}
}

func TestGateHoldsAnAnswerUntilReleased(t *testing.T) {
	s := start(t, "say before\ngate middle\nsay after")
	got := make(chan reply, 1)
	var wg sync.WaitGroup
	wg.Go(func() { got <- s.ask(hello) })
	defer wg.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := s.Reached(ctx, "middle"); err != nil {
		t.Fatal(err)
	}
	select {
	case r := <-got:
		t.Fatalf("the answer ended before the gate was released: %+v", r)
	default:
	}
	if err := s.Release("middle"); err != nil {
		t.Fatal(err)
	}
	if r := <-got; r.Text != "beforeafter" {
		t.Errorf("got %+v", r)
	}
	if err := s.Release("other"); err == nil {
		t.Error("released a gate that is not there")
	}
	if err := s.Reached(ctx, "other"); err == nil {
		t.Error("reached a gate that is not there")
	}
}

func TestClientThatLeavesEndsTheAnswer(t *testing.T) {
	s := start(t, "say a\ngate g\nsay b\nend\nstall")
	ctx, cancel := context.WithCancel(t.Context())
	resp, err := s.send(ctx, hello)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Reached(t.Context(), "g"); err != nil {
		t.Fatal(err)
	}
	cancel()
	resp.Body.Close()
	if err := s.arrived[0].Err(); !errors.Is(err, ErrLeft) {
		t.Errorf("the answer ended with %v, want ErrLeft", err)
	}
	want := []string{"test:3: answer 1 broke off before: say b", "test:5: answer 2 was never asked for"}
	if d := cmp.Diff(want, s.Unplayed()); d != "" {
		t.Errorf("unplayed (-want +got)\n%s", d)
	}
}

func TestCloseEndsAStalledAnswer(t *testing.T) {
	s := start(t, "stall")
	got := make(chan reply, 1)
	var wg sync.WaitGroup
	wg.Go(func() { got <- s.ask(hello) })
	defer wg.Wait()
	for deadline := time.Now().Add(10 * time.Second); ; {
		s.mu.Lock()
		n := len(s.arrived)
		s.mu.Unlock()
		if n == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the request did not arrive")
		}
		time.Sleep(time.Millisecond)
	}
	s.Close()
	if r := <-got; r.Err == nil || r.Status != 0 {
		t.Errorf("a stalled answer had headers or ended well: %+v", r)
	}
	s.Close()
}

func TestRateSlowsTheStream(t *testing.T) {
	s := start(t, "rate 200\ntokens 11")
	began := time.Now()
	if r := s.ask(hello); r.Out != 11 {
		t.Fatalf("got %+v", r)
	}
	if took := time.Since(began); took < 50*time.Millisecond {
		t.Errorf("11 fragments at 200 a second took %v, want 50ms at least", took)
	}
}

func TestModelsAreListed(t *testing.T) {
	s := start(t, "model big\nmodel small\nsay x")
	resp, err := s.client.Get(s.URL() + "/models")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var list struct{ Data []struct{ ID string } }
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]struct{ ID string }{{"big"}, {"small"}}, list.Data); d != "" {
		t.Errorf("models (-want +got)\n%s", d)
	}
	if resp, err := s.client.Get(s.URL() + "/nothing"); err != nil || resp.StatusCode != 404 || len(s.failed) != 1 {
		t.Errorf("an unknown path: %v %v, reported %q", resp, err, s.failed)
	} else {
		resp.Body.Close()
	}
}

func TestOnlyLoopbackIsServed(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0", "example.com:80", "127.0.0.1"} {
		if s, err := Start(t.Context(), Tour(), Options{Addr: addr}); err == nil {
			s.Close()
			t.Errorf("served on %q", addr)
		}
	}
}

// What the engine itself costs: a benchmark of a client must not measure it.
func BenchmarkFragment(b *testing.B) {
	script, err := Parse("bench", fmt.Sprintf("tokens %d", min(b.N, maxTokens)))
	if err != nil {
		b.Fatal(err)
	}
	srv, err := Start(b.Context(), script, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer srv.Close()
	resp, err := http.Post(srv.URL()+"/chat/completions", "application/json", strings.NewReader(hello))
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		b.Fatal(err)
	}
}
