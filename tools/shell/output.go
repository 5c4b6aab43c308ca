package shell

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	outputHead = 10 << 10 // bytes kept of the beginning of the output
	outputTail = 20 << 10 // bytes kept of its end
	// longLine is how much of a line is held back, in bytes, so that a carriage
	// return can still take it away.
	longLine = 8 << 10
	// progressPart bounds one progress text, in bytes.
	progressPart = 4 << 10
	// oddShare is the part of the output, in percent, that may be other than
	// text before it counts as binary.
	oddShare = 20
)

// recorder turns what a command writes into text for the model: escape
// sequences and control characters removed, progress bars reduced to their last
// state, UTF-8 made valid, the middle left out when it is long. Its memory does
// not grow with the output. Safe for concurrent use.
type recorder struct {
	dirty chan struct{} // holds one element when there is progress to take

	mu      sync.Mutex // guards the fields below
	escape  escape
	line    []byte // the last line so far, before it counts as output
	sent    int    // bytes of line that were already taken as progress
	back    bool   // a carriage return came: line goes unless a line end follows
	raw     int64  // bytes written
	odd     int64  // of these, bytes that are no text
	clean   int64  // bytes of text after cleaning
	lines   int64  // line ends among them
	head    []byte
	tail    []byte // at most twice outputTail
	news    []byte // progress that nobody has taken yet, at most twice progressPart
	skipped bool   // news has lost its beginning
}

func newRecorder() *recorder { return &recorder{dirty: make(chan struct{}, 1)} }

// write takes the next bytes of the output and keeps none of p.
func (r *recorder) write(p []byte) {
	r.mu.Lock()
	r.raw += int64(len(p))
	for len(p) > 0 {
		if r.escape.state == ground && !r.back {
			if n := plainRun(p); n > 0 {
				r.append(p[:n])
				p = p[n:]
				continue
			}
		}
		r.special(p[0])
		p = p[1:]
	}
	r.mu.Unlock()
	select {
	case r.dirty <- struct{}{}:
	default:
	}
}

// plainRun counts the leading bytes that are text and no line end.
func plainRun(p []byte) int {
	for i, c := range p {
		if c < ' ' && c != '\t' || c == 0x7f {
			return i
		}
	}
	return len(p)
}

func (r *recorder) append(p []byte) {
	for len(p) > 0 {
		n := min(len(p), longLine-len(r.line))
		r.line = append(r.line, p[:n]...)
		p = p[n:]
		if len(r.line) == longLine {
			cut := len(r.line) - partial(r.line)
			rest := bytes.Clone(r.line[cut:])
			r.line = r.line[:cut]
			r.flush()
			r.line = append(r.line, rest...)
		}
	}
}

// special handles a byte outside a run of text.
func (r *recorder) special(c byte) {
	if r.escape.eat(c) {
		return
	}
	if r.back && c != '\r' {
		r.back = false
		if c != '\n' {
			r.erase()
		}
	}
	switch {
	case c == '\n':
		r.line = append(r.line, '\n')
		r.flush()
	case c == '\r':
		r.back = true
	case c == '\b':
		_, n := utf8.DecodeLastRune(r.line)
		r.line = r.line[:max(len(r.line)-n, r.sent)]
	case c == 0: // separates names in lists made for machines
		r.odd++
		r.line = append(r.line, '\n')
		r.flush()
	case c < ' ' && c != '\t' || c == 0x7f:
		r.odd++
	default:
		r.append([]byte{c})
	}
}

// erase takes the line away, as a carriage return before other text does.
func (r *recorder) erase() {
	if r.sent > 0 {
		r.tell([]byte{'\n'})
	}
	r.line, r.sent = r.line[:0], 0
}

// flush counts the line as output.
func (r *recorder) flush() {
	text, fresh := r.line, r.line[r.sent:]
	if !utf8.Valid(text) {
		r.odd += invalid(text)
		text, fresh = bytes.ToValidUTF8(text, []byte("\uFFFD")), bytes.ToValidUTF8(fresh, []byte("\uFFFD"))
	}
	r.clean += int64(len(text))
	if n := len(text); n > 0 && text[n-1] == '\n' {
		r.lines++
	}
	r.tell(fresh)
	if room := outputHead - len(r.head); room > 0 && len(r.tail) == 0 {
		n := min(room, len(text))
		n -= partial(text[:n])
		r.head = append(r.head, text[:n]...)
		text = text[n:]
	}
	r.tail = append(r.tail, text...)
	if len(r.tail) > 2*outputTail {
		r.tail = append(r.tail[:0], r.tail[len(r.tail)-outputTail:]...)
	}
	r.line, r.sent = r.line[:0], 0
}

// tell adds to what the next progress will show.
func (r *recorder) tell(text []byte) {
	r.news = append(r.news, text...)
	if len(r.news) > 2*progressPart {
		r.skipped = true
		r.news = append(r.news[:0], r.news[len(r.news)-progressPart:]...)
	}
}

// progress takes the text that came since the last call; of a long one only the
// end.
func (r *recorder) progress() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if fresh := r.line[r.sent:]; len(fresh) > 0 && !r.back {
		whole := fresh[:len(fresh)-partial(fresh)]
		r.tell(bytes.ToValidUTF8(whole, []byte("\uFFFD")))
		r.sent += len(whole)
	}
	text := r.news
	if len(text) > progressPart {
		r.skipped = true
		text = text[len(text)-progressPart:]
	}
	out := strings.ToValidUTF8(string(text), "")
	if r.skipped {
		out = "[...]\n" + out
	}
	r.news, r.skipped = r.news[:0], false
	return out
}

// text returns the output for the model, without a final line end; empty when
// there was none.
func (r *recorder) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.line) > 0 {
		r.back = false
		r.flush()
	}
	if r.odd*100 > r.raw*oddShare {
		return fmt.Sprintf("[%d bytes of output that is not text: not shown]", r.raw)
	}
	left := r.clean - int64(len(r.head)) - outputTail
	if left <= 0 {
		return strings.TrimRight(string(r.head)+string(r.tail), "\n")
	}
	head, tail := string(r.head), r.tail[len(r.tail)-outputTail:]
	if i := strings.LastIndexByte(head, '\n'); i > outputHead/2 {
		head = head[:i+1]
	} else {
		head += "\n"
	}
	if i := bytes.IndexByte(tail, '\n'); i >= 0 && i < outputTail/2 {
		tail = tail[i+1:]
	}
	end := strings.ToValidUTF8(string(tail), "")
	bytesOut := r.clean - int64(len(head)) - int64(len(end))
	linesOut := r.lines - int64(strings.Count(head, "\n")) - int64(strings.Count(end, "\n"))
	return fmt.Sprintf("%s[... %d bytes, %d lines left out ...]\n%s", head, bytesOut, max(linesOut, 0), strings.TrimRight(end, "\n"))
}

// partial counts the bytes at the end of p that begin a rune and do not end it.
func partial(p []byte) int {
	for i := 1; i <= min(len(p), utf8.UTFMax-1); i++ {
		if c := p[len(p)-i]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(p[len(p)-i:]) {
				return i
			}
			return 0
		}
	}
	return 0
}

// invalid counts the bytes of p that are not UTF-8.
func invalid(p []byte) (n int64) {
	for len(p) > 0 {
		r, size := utf8.DecodeRune(p)
		if r == utf8.RuneError && size == 1 {
			n++
		}
		p = p[size:]
	}
	return n
}
