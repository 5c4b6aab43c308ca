package rehearsal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// step is one thing that an answer does. play returns an error when the client
// has left or the server closes; the answer then ends.
type step interface{ play(p *player) error }

// usage is what an answer reports, in tokens.
type usage struct {
	given, none                bool
	in, out, cached, reasoning int
}

// player is one answer while it is sent. It belongs to one handler.
type player struct {
	w      http.ResponseWriter
	rc     *http.ResponseController
	ctx    context.Context // ends when the client leaves or the server closes
	srv    *Server
	req    *Request
	n      int // of the answer, from 1
	model  string
	opened bool // the headers are decided
	own    bool // the stream ends as the script says: no finish is added
	reason string
	sent   int // fragments
	last   time.Time
	buf    []byte
}

var errCut = errors.New("the script cuts the connection")

// open decides the headers of a stream, once.
func (p *player) open() {
	if p.opened {
		return
	}
	p.opened = true
	h := p.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	p.w.WriteHeader(http.StatusOK)
}

// write sends bytes of the stream now.
func (p *player) write(b []byte) error {
	p.open()
	if _, err := p.w.Write(b); err != nil {
		return err
	}
	return p.rc.Flush()
}

// delta sends one chunk with the given JSON object as its delta.
func (p *player) delta(obj string) error {
	return p.chunk(`[{"index":0,"delta":`+obj+`,"finish_reason":null}]`, "")
}

// chunk sends one event; more is further fields, with a leading comma.
func (p *player) chunk(choices, more string) error {
	p.buf = fmt.Appendf(p.buf[:0], `data: {"id":"chatcmpl-%d","object":"chat.completion.chunk","created":%d,"model":%s,"choices":%s%s}`+"\n\n",
		p.n, p.srv.born, p.model, choices, more)
	return p.write(p.buf)
}

// fragment sends one piece of text, not faster than rate.
func (p *player) fragment(field, text string, rate int) error {
	if err := p.pace(rate); err != nil {
		return err
	}
	p.sent++
	return p.delta(`{"` + field + `":` + quote(text) + `}`)
}

// pace waits until the next fragment is due.
func (p *player) pace(rate int) error {
	if rate <= 0 {
		return p.ctx.Err()
	}
	due := p.last.Add(time.Second / time.Duration(rate))
	if now := time.Now(); due.Before(now) {
		due = now
	}
	p.last = due
	return p.sleep(time.Until(due))
}

func (p *player) sleep(d time.Duration) error {
	if d <= 0 {
		return p.ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
}

// finish ends an answer as a well-behaved server does.
func (p *player) finish(u usage) error {
	if p.own {
		return nil
	}
	if err := p.chunk(`[{"index":0,"delta":{},"finish_reason":`+quote(p.reason)+`}]`, ""); err != nil {
		return err
	}
	if !u.none {
		if !u.given {
			u.in, u.out = len(p.req.Body)/4, p.sent
		}
		err := p.chunk("[]", fmt.Sprintf(`,"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,`+
			`"prompt_tokens_details":{"cached_tokens":%d},"completion_tokens_details":{"reasoning_tokens":%d}}`,
			u.in, u.out, u.in+u.out, u.cached, u.reasoning))
		if err != nil {
			return err
		}
	}
	return p.write([]byte("data: [DONE]\n\n"))
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("rehearsal: a string has no JSON form: %v", err)) // cannot happen
	}
	return string(b)
}

type sayStep struct {
	text, field string
	rate        int
}

func parseSay(p *parser, line int, rest string) (step, error) {
	s, err := p.some(line, rest, "say wants a text")
	return sayStep{text: s, field: "content", rate: p.rate}, err
}

func parseThink(p *parser, line int, rest string) (step, error) {
	s, err := p.some(line, rest, "think wants a text")
	return sayStep{text: s, field: "reasoning_content", rate: p.rate}, err
}

func (s sayStep) play(p *player) error {
	for rest := s.text; rest != ""; {
		n := word(rest)
		if err := p.fragment(s.field, rest[:n], s.rate); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// word returns the length of the first word of s with the space after it, cut
// after 16 runes, since not every language has spaces.
func word(s string) int {
	space, runes := false, 0
	for i, r := range s {
		if unicode.IsSpace(r) {
			space = true
		} else if space || runes == 16 {
			return i
		}
		runes++
	}
	return len(s)
}

type tokensStep struct{ n, rate int }

func parseTokens(p *parser, line int, rest string) (step, error) {
	n, err := strconv.Atoi(rest)
	if err != nil || n < 1 || n > maxTokens {
		return nil, p.fail(line, "tokens wants a number from 1 to %d; it has %q", maxTokens, rest)
	}
	return tokensStep{n: n, rate: p.rate}, nil
}

func (s tokensStep) play(p *player) error {
	for i := range s.n {
		if err := p.fragment("content", "t"+strconv.Itoa(i+1)+" ", s.rate); err != nil {
			return err
		}
	}
	return nil
}

type callStep struct {
	name, id, args string
	index, rate    int
}

func parseCall(p *parser, line int, rest string) (step, error) {
	c, err := parseAnyCall(p, line, rest)
	if err == nil && !json.Valid([]byte(c.args)) {
		return nil, p.fail(line, "the arguments of this call are not JSON; rawcall sends them all the same: %s", brief(c.args))
	}
	return c, err
}

func parseRawCall(p *parser, line int, rest string) (step, error) {
	return parseAnyCall(p, line, rest)
}

func parseAnyCall(p *parser, line int, rest string) (callStep, error) {
	name, args, _ := strings.Cut(rest, " ")
	if name == "" {
		return callStep{}, p.fail(line, "a call wants the name of a tool and its arguments")
	}
	args = strings.TrimSpace(args)
	c := callStep{name: name, id: fmt.Sprintf("call_%d_%d", len(p.script.answers)+1, p.calls+1), index: p.calls, rate: p.rate}
	if more, ok := strings.CutPrefix(args, "id="); ok {
		c.id, args, _ = strings.Cut(more, " ")
		args = strings.TrimSpace(args)
	}
	var err error
	if c.args, err = text(args); err != nil {
		return callStep{}, p.fail(line, "%v", err)
	}
	p.calls++
	return c, nil
}

func (s callStep) play(p *player) error {
	if err := p.pace(s.rate); err != nil {
		return err
	}
	p.reason = "tool_calls"
	p.sent++
	err := p.delta(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%s,"type":"function","function":{"name":%s,"arguments":""}}]}`,
		s.index, quote(s.id), quote(s.name)))
	if err != nil {
		return err
	}
	// Like a tokeniser's, the pieces respect neither words nor JSON.
	size := max(12, len(s.args)/256)
	for rest := s.args; rest != ""; {
		n := min(size, len(rest))
		for n < len(rest) && !utf8.RuneStart(rest[n]) {
			n++
		}
		if err := p.pace(s.rate); err != nil {
			return err
		}
		p.sent++
		if err := p.delta(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, s.index, quote(rest[:n]))); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

type finishStep struct{ reason string }

func parseFinish(p *parser, line int, rest string) (step, error) {
	s, err := text(rest)
	if err != nil || rest == "" {
		return nil, p.fail(line, `finish wants a reason, as in: finish content_filter`)
	}
	return finishStep{s}, nil
}

func (s finishStep) play(p *player) error { p.reason = s.reason; return nil }

type openStep struct{}

func (openStep) play(p *player) error { return p.write(nil) }

type waitStep struct{ d time.Duration }

func parseWait(p *parser, line int, rest string) (step, error) {
	d, err := time.ParseDuration(rest)
	if err != nil || d < 0 {
		return nil, p.fail(line, "wait wants a duration such as 200ms; it has %q", rest)
	}
	return waitStep{d}, nil
}

func (s waitStep) play(p *player) error { return p.sleep(s.d) }

type gateStep struct{ name string }

func parseGate(p *parser, line int, rest string) (step, error) {
	if rest == "" || strings.ContainsAny(rest, " \t") {
		return nil, p.fail(line, "gate wants a name of one word; it has %q", rest)
	}
	if first, taken := p.gates[rest]; taken {
		return nil, p.fail(line, "line %d has a gate of the name %q already", first, rest)
	}
	p.gates[rest] = line
	return gateStep{rest}, nil
}

func (s gateStep) play(p *player) error {
	g := p.srv.gates[s.name]
	g.arrive()
	select {
	case <-g.open:
		return nil
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
}

type stallStep struct{}

func (stallStep) play(p *player) error {
	<-p.ctx.Done()
	return p.ctx.Err()
}

type cutStep struct{}

func (cutStep) play(p *player) error {
	if err := p.write([]byte(`data: {"id":"chatcmpl-cut","object":"chat.compl`)); err != nil {
		return err
	}
	return errCut
}

type eofStep struct{}

func (eofStep) play(p *player) error {
	p.own = true
	return p.write(nil)
}

type rawStep struct{ text string }

func parseRaw(p *parser, line int, rest string) (step, error) {
	s, err := text(rest)
	if err != nil {
		return nil, p.fail(line, "%v", err)
	}
	return rawStep{s}, nil
}

func (s rawStep) play(p *player) error {
	p.own = true
	return p.write([]byte(s.text))
}
