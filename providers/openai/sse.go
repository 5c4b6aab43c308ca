package openai

import (
	"bytes"
	"errors"
	"io"
)

var (
	errLongLine = errors.New("a line of the stream is longer than the limit")
	errBigBody  = errors.New("the answer is bigger than the limit")
)

var bom = []byte("\xef\xbb\xbf")

// event is one server-sent event. data is valid until the next call of next.
type event struct {
	name string
	data []byte
	// failed is set by a field called "error", which old llama.cpp servers send
	// instead of data.
	failed bool
	cut    bool // the end of the body came before the end of the event
}

// reader takes a text/event-stream apart: line ends are LF, CRLF or CR, data
// lines of an event are joined by LF, and the last event needs no blank line.
// Its memory is bounded by maxLine for a line and for an event, and it reads no
// more than maxBody bytes in all, counted after decompression.
type reader struct {
	src              io.Reader
	maxLine, maxBody int

	buf      []byte
	r, w     int // unread bytes are buf[r:w]
	scanned  int // buf[r:scanned] is known to hold no line end
	total    int
	err      error // what ended src
	swallow  bool  // an LF that comes next belongs to the CR before it
	data     []byte
	stray    string // first line that was no field: the start of a page that is no stream
	comments bool   // a comment was seen since the last event
}

func newReader(src io.Reader, maxLine, maxBody int) *reader {
	return &reader{src: src, maxLine: maxLine, maxBody: maxBody, buf: make([]byte, 16<<10)}
}

// peek returns the first byte that is neither BOM nor white space, without
// consuming it. The bytes before it are dropped.
func (r *reader) peek() (byte, error) {
	first := true
	for {
		if first && r.w-r.r >= len(bom) {
			if bytes.HasPrefix(r.buf[r.r:r.w], bom) {
				r.r += len(bom)
			}
			first = false
		}
		if !first || r.err != nil {
			for ; r.r < r.w; r.r++ {
				if c := r.buf[r.r]; c != ' ' && c != '\t' && c != '\r' && c != '\n' {
					r.scanned = r.r
					return c, nil
				}
			}
			if r.err != nil {
				return 0, r.err
			}
		}
		r.fill()
	}
}

// rest returns everything that is left, up to maxLine bytes.
func (r *reader) rest() ([]byte, error) {
	for r.err == nil && r.w-r.r <= r.maxLine {
		r.fill()
	}
	if r.w-r.r > r.maxLine {
		return nil, errLongLine
	}
	if !errors.Is(r.err, io.EOF) {
		return nil, r.err
	}
	out := r.buf[r.r:r.w]
	r.r = r.w
	return out, nil
}

// next returns the next event that has data. At the end it returns io.EOF, or
// what ended the stream. An event that the end cut off is still delivered when
// the end is a regular one.
func (r *reader) next() (event, error) {
	var ev event
	has := false
	r.data = r.data[:0]
	for {
		line, err := r.line()
		if err != nil {
			if has && errors.Is(err, io.EOF) {
				ev.data, ev.cut = r.data, true
				return ev, nil
			}
			return event{}, err
		}
		if len(line) == 0 {
			if has {
				ev.data = r.data
				return ev, nil
			}
			ev = event{}
			continue
		}
		name, value := cut(line)
		switch string(name) {
		case "":
			r.comments = true
		case "data", "error":
			if has {
				r.data = append(r.data, '\n')
			}
			if len(r.data)+len(value) > r.maxLine {
				return event{}, errLongLine
			}
			r.data = append(r.data, value...)
			ev.failed = ev.failed || name[0] == 'e'
			has = true
		case "event":
			ev.name = string(value)
		case "id", "retry":
		default:
			if r.stray == "" {
				r.stray = string(line[:min(len(line), 200)])
			}
		}
	}
}

// cut splits a line at its first colon and drops one space after it.
func cut(line []byte) (name, value []byte) {
	name, value, _ = bytes.Cut(line, []byte{':'})
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	return name, value
}

// line returns the next line without its end. The last one needs no end.
func (r *reader) line() ([]byte, error) {
	for {
		if r.swallow && r.r < r.w {
			if r.buf[r.r] == '\n' {
				r.r++
			}
			r.swallow = false
			r.scanned = max(r.scanned, r.r)
		}
		if i := lineEnd(r.buf[r.scanned:r.w]); i >= 0 {
			end := r.scanned + i
			line := r.buf[r.r:end]
			r.swallow = r.buf[end] == '\r'
			r.r = end + 1
			r.scanned = r.r
			if len(line) > r.maxLine {
				return nil, errLongLine
			}
			return line, nil
		}
		r.scanned = r.w
		if r.w-r.r > r.maxLine {
			return nil, errLongLine
		}
		if r.err != nil {
			if r.r < r.w && errors.Is(r.err, io.EOF) {
				line := r.buf[r.r:r.w]
				r.r = r.w
				return line, nil
			}
			return nil, r.err
		}
		r.fill()
	}
}

// lineEnd returns the index of the first LF or CR, or -1.
func lineEnd(b []byte) int {
	lf := bytes.IndexByte(b, '\n')
	if lf >= 0 {
		b = b[:lf]
	}
	if cr := bytes.IndexByte(b, '\r'); cr >= 0 {
		return cr
	}
	return lf
}

// fill reads once, making room first. It sets err instead of returning it.
func (r *reader) fill() {
	if r.r > 0 {
		n := copy(r.buf, r.buf[r.r:r.w])
		r.scanned = max(r.scanned-r.r, 0)
		r.r, r.w = 0, n
	}
	if r.w == len(r.buf) {
		r.buf = append(r.buf, make([]byte, len(r.buf))...)
	}
	n, err := r.src.Read(r.buf[r.w:])
	r.w += n
	r.total += n
	if err != nil {
		r.err = err
	} else if r.total > r.maxBody {
		r.err = errBigBody
	}
}
