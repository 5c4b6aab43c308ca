package rehearsal

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// statusStep answers with a status and a body instead of a stream.
type statusStep struct {
	code   int
	header http.Header
	body   string
}

func parseStatus(p *parser, line int, rest string) (step, error) {
	word, rest, _ := strings.Cut(rest, " ")
	code, err := strconv.Atoi(word)
	if err != nil || code < 200 || code > 599 {
		return nil, p.fail(line, "status wants a code from 200 to 599; it has %q", word)
	}
	s := statusStep{code: code, header: http.Header{"Content-Type": {"application/json"}}}
	for rest = strings.TrimSpace(rest); rest != ""; rest = strings.TrimSpace(rest) {
		field, after, _ := strings.Cut(rest, " ")
		name, value, ok := strings.Cut(field, "=")
		if !ok || strings.ContainsAny(name, "\"`{<") {
			break
		}
		s.header.Set(name, value)
		rest = after
	}
	if s.body, err = text(rest); err != nil {
		return nil, p.fail(line, "%v", err)
	}
	if rest == "" {
		s.body = errorBody(strings.ToLower(http.StatusText(code)))
	}
	return s, nil
}

func (s statusStep) play(p *player) error {
	for k, v := range s.header {
		p.w.Header()[k] = v
	}
	p.opened, p.own = true, true
	p.w.WriteHeader(s.code)
	_, err := p.w.Write([]byte(s.body))
	return err
}

// errorBody is an error as OpenAI's servers write it.
func errorBody(message string) string {
	text, err := json.Marshal(message)
	if err != nil {
		panic(fmt.Sprintf("rehearsal: a string has no JSON form: %v", err)) // cannot happen
	}
	return `{"error":{"message":` + string(text) + `,"type":"rehearsal","param":null,"code":null}}`
}

// garbageStep sends what is neither an event stream nor UTF-8.
type garbageStep struct{}

func (garbageStep) play(p *player) error {
	p.own = true
	return p.write([]byte("\x00\x01\xff\xfe garbage \xc3\x28\ndata: <html>\xf0\x28\x8c\x28</html>\n\n"))
}

// bombStep sends a gzip body that unpacks to size bytes.
type bombStep struct{ size int64 }

func parseBomb(p *parser, line int, rest string) (step, error) {
	for unit, shift := range map[string]int{"KiB": 10, "MiB": 20, "GiB": 30} {
		num, ok := strings.CutSuffix(rest, unit)
		n, err := strconv.ParseInt(num, 10, 64)
		if ok && err == nil && n > 0 && n <= maxBomb>>shift {
			return bombStep{n << shift}, nil
		}
	}
	return nil, p.fail(line, "bomb wants a size such as 1GiB, at most 64GiB; it has %q", rest)
}

func (s bombStep) play(p *player) error {
	p.own = true
	p.w.Header().Set("Content-Encoding", "gzip")
	head, err := pack([]byte("data: "))
	if err != nil {
		return err
	}
	// A gzip stream may be made of members, so one member is sent many times.
	piece := min(s.size, 1<<20)
	member, err := pack(bytes.Repeat([]byte("a"), int(piece)))
	if err != nil {
		return err
	}
	if err := p.write(head); err != nil {
		return err
	}
	for range s.size / piece {
		if err := p.write(member); err != nil {
			return err
		}
	}
	return nil
}

func pack(data []byte) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(data); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
