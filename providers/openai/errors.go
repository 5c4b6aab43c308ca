package openai

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/lakecode/lakecode/providers"
)

// maxMessage bounds what is shown of a server's own words, in bytes.
const maxMessage = 500

// wireError is a failure as the server, or this package, put it.
type wireError struct {
	kind    providers.Kind // "" to derive it from the rest
	status  int            // HTTP status, or the one a body inside a 200 claims
	message string
	code    string // the server's code and type, for classification only
}

const htmlAnswer = "an HTML page, not an API answer; is the base URL right?"

// parseError reads an error body of any shape that is known: OpenAI's object, a
// bare string, FastAPI's detail, vLLM's older object, a list around one of them.
// Of FastAPI's list only the places and messages are taken: it repeats the whole
// request.
func parseError(body []byte) *wireError {
	body = []byte(strings.TrimSpace(string(body)))
	if len(body) > 0 && body[0] == '<' {
		return &wireError{message: htmlAnswer}
	}
	if !json.Valid(body) {
		return &wireError{message: string(body)}
	}
	if body[0] == '[' {
		e := array(body)
		if first, ok := e.next(); ok {
			body = first
		}
	}
	if body[0] == '"' {
		return &wireError{message: str(body)}
	}
	e := &wireError{}
	for _, part := range [...][]byte{get(body, "error"), get(body, "detail"), body} {
		e.read(part)
	}
	return e
}

// read takes what is not known yet from one object of an error body.
func (e *wireError) read(raw []byte) {
	if null(raw) {
		return
	}
	if s := str(raw); s != "" && e.message == "" {
		e.message = s
	}
	var places []string
	for a := array(raw); ; {
		item, ok := a.next()
		if !ok {
			break
		}
		var loc []string
		for l := array(get(item, "loc")); ; {
			at, ok := l.next()
			if !ok {
				break
			}
			loc = append(loc, strings.Trim(string(at), `"`))
		}
		places = append(places, strings.Join(loc, ".")+": "+str(get(item, "msg")))
	}
	if len(places) > 0 && e.message == "" {
		e.message = strings.Join(places, "; ")
	}
	if s := str(get(raw, "message")); s != "" && e.message == "" {
		e.message = s
	}
	for _, key := range [...]string{"code", "type", "error_type"} {
		v := get(raw, key)
		if n, ok := number(v); ok {
			if n >= 400 && n < 600 && e.status == 0 {
				e.status = n
			}
			continue
		}
		if s := str(v); s != "" {
			e.code += " " + strings.ToLower(s)
			if e.message == "" && key != "type" {
				e.message = s
			}
		}
	}
	if n, ok := number(get(raw, "status")); ok && n >= 400 && n < 600 && e.status == 0 {
		e.status = n
	}
}

// finishError is the failure that a finish reason tells of.
func finishError(finish string) *wireError {
	switch strings.ToLower(finish) {
	case "error", "network_error", "insufficient_system_resource", "abort", "aborted", "cancelled":
		return &wireError{kind: providers.Overloaded, message: fmt.Sprintf("the server gave up in the middle of the answer (finish_reason %q)", clip(finish, 60))}
	}
	return &wireError{kind: providers.BrokenStream, message: fmt.Sprintf("the server ended the answer for an unknown reason (finish_reason %q)", clip(finish, 60))}
}

// classify sorts a failure by status, and where that says little, by the code
// and the words of the server.
func classify(e *wireError) providers.Kind {
	if e.kind != "" {
		return e.kind
	}
	text := e.code + " " + strings.ToLower(e.message)
	says := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(text, w) {
				return true
			}
		}
		return false
	}
	tooLong := says("context_length_exceeded", "context length", "maximum context", "context window", "context size",
		"prompt is too long", "too many tokens", "reduce the length", "input is too long")
	broke := says("insufficient_quota", "current quota", "billing", "insufficient balance", "insufficient credit",
		"insufficient_balance", "insufficient_credits", "usage_not_included")
	switch {
	case e.status == http.StatusUnauthorized || says("invalid_api_key", "authentication_error"):
		return providers.Auth
	case e.status == http.StatusProxyAuthRequired:
		return providers.Network
	case e.status == http.StatusPaymentRequired || broke && (e.status == 0 || e.status == 429 || e.status == 403 || e.status == 400):
		return providers.Quota
	case e.status == http.StatusRequestEntityTooLarge || tooLong && e.status < 500:
		return providers.TooLong
	case says("content_filter", "content_policy") && e.status < 500:
		return providers.Filtered
	case e.status == http.StatusForbidden || says("permission_error"):
		return providers.Permission
	case e.status == http.StatusNotFound || e.status == http.StatusMethodNotAllowed || says("model_not_found"):
		return providers.NotFound
	case e.status == http.StatusTooManyRequests || e.status == 0 && says("rate_limit", "rate limit"):
		return providers.RateLimited
	case e.status == http.StatusRequestTimeout || e.status == http.StatusConflict || e.status >= 500:
		return providers.Overloaded
	case e.status == 0 && says("invalid_request"):
		return providers.Invalid
	case e.status == 0:
		return providers.Overloaded // inside a 200: the server failed while it answered
	}
	return providers.Invalid
}

// report makes the errors of one connection.
type report struct{ snap providers.Snapshot }

// of makes the error that is shown: bounded, in one line, without the key, with
// what to do next.
func (r report) of(e *wireError, cause error) *providers.Error {
	kind := classify(e)
	msg := oneLine(redact(e.message, r.snap.Key.Reveal()))
	if msg == "" {
		if msg = strings.ToLower(http.StatusText(e.status)); msg == "" {
			msg = "the server gave no reason"
		}
	}
	out := &providers.Error{
		Kind: kind, Provider: r.snap.Name, Model: r.snap.Model, Status: e.status,
		Message: clip(msg, maxMessage), Next: r.next(kind), Err: cause,
	}
	if out.Provider == "" {
		out.Provider = r.snap.Provider
	}
	return out
}

func (r report) next(kind providers.Kind) string {
	conn := fmt.Sprintf("connection %q in providers.json", r.snap.Provider)
	switch kind {
	case providers.Auth:
		if r.snap.Key.IsZero() {
			return "Set ApiKey of " + conn + "."
		}
		return "Check the key of " + conn + "."
	case providers.Permission:
		return fmt.Sprintf("Check that the key of %s may use model %q.", conn, r.snap.Model)
	case providers.NotFound:
		return fmt.Sprintf("Check BaseUrl of %s, and that the server has model %q.", conn, r.snap.Model)
	case providers.RateLimited, providers.Overloaded:
		return "Send the message again later."
	case providers.Quota:
		return "Check balance and plan of " + conn + "."
	case providers.TooLong:
		return "Start a new conversation, or choose a model with a larger context window."
	case providers.Invalid:
		return fmt.Sprintf("Check that model %q supports what was sent: tools, images, reasoning effort.", r.snap.Model)
	case providers.Filtered:
		return "Put the message differently."
	case providers.Network:
		return "Check the network, HTTP_PROXY and HTTPS_PROXY where they are set, and BaseUrl of " + conn + ", then send the message again."
	case providers.Timeout, providers.BrokenStream:
		return "Send the message again; if it stays like this, check BaseUrl of " + conn + "."
	}
	return ""
}

var (
	reURL    = regexp.MustCompile(`https?://[^\s"'<>()]+`)
	reBearer = regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=*-]{6,}`)
	// A key as vendors mask it, and keys of the common forms, whoever owns them.
	reMasked = regexp.MustCompile(`[\w.-]*\*{3,}[\w.*-]*|\b(?:sk|pk|rk|gsk|xai|key|api|ghp|hf)[-_][\w*-]{8,}`)
	reWord   = regexp.MustCompile(`[\w-]{4,}`)
)

const redacted = "[key]"

// redact takes credentials out of a text: the key itself, the pieces of it that
// servers quote, what looks like a key, and the parts of addresses that may hold
// one.
func redact(s, key string) string {
	if len(s) > 16<<10 {
		s = s[:16<<10]
	}
	if len(key) >= 4 {
		s = strings.ReplaceAll(s, key, redacted)
	}
	s = reURL.ReplaceAllStringFunc(s, bare)
	s = reBearer.ReplaceAllString(s, "$1 "+redacted)
	s = reMasked.ReplaceAllString(s, redacted)
	if len(key) >= 12 {
		s = reWord.ReplaceAllStringFunc(s, func(w string) string {
			if strings.HasPrefix(key, w) || strings.HasSuffix(key, w) || len(w) >= 8 && strings.Contains(key, w) {
				return redacted
			}
			return w
		})
	}
	return s
}

// bare returns an address without user, query and fragment.
func bare(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return "[address]"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// oneLine joins lines and drops control characters and broken UTF-8.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f || r == 0x2028 || r == 0x2029 || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return strings.Join(strings.Fields(s), " ")
}

// clip cuts at a rune boundary at or before n bytes and marks the cut.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
