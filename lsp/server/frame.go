package server

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"

	"go.uber.org/zap"
)

// Limits of incoming frames.
const (
	maxBody     = 64 << 20 // bytes of a body; a longer one is skipped and refused
	maxBelieved = 1 << 30  // bytes; no editor sends this, so the header is garbage
	keepBody    = 1 << 20  // bytes of the body buffer that stay between messages
	maxHeader   = 4 << 10  // bytes of a header line; the end of a longer one counts
	readBuffer  = 32 << 10 // bytes
)

var contentLength = []byte("content-length:")

// errTooLong says that a body was longer than maxBody and was skipped.
var errTooLong = errors.New("message is too long")

// frames splits a stream into the bodies of messages (LSP 3.18, Base Protocol).
// Whatever is not a header is passed over up to the next Content-Length, so
// that a stray line costs at most the message that it broke.
type frames struct {
	in      *bufio.Reader
	log     *zap.Logger
	body    []byte
	partial []byte // of a header line
	garbage int64  // bytes passed over since the last message
}

func newFrames(in io.Reader, log *zap.Logger) *frames {
	return &frames{in: bufio.NewReaderSize(in, readBuffer), log: log}
}

// next returns the next body, which is valid until the call after. io.EOF comes
// at the end of the stream, io.ErrUnexpectedEOF when it ends inside a message;
// errTooLong is about one message only.
func (f *frames) next() ([]byte, error) {
	n, err := f.header()
	if f.garbage > 0 {
		f.log.Warn("input that is no message was passed over", zap.Int64("bytes", f.garbage))
		f.garbage = 0
	}
	if err != nil {
		return nil, err
	}
	if n > maxBody {
		f.log.Warn("message is too long and was skipped", zap.Int64("bytes", n), zap.Int64("limit", maxBody))
		if _, err := io.CopyN(io.Discard, f.in, n); err != nil {
			return nil, io.ErrUnexpectedEOF
		}
		return nil, errTooLong
	}
	if int64(cap(f.body)) < n || cap(f.body) > keepBody && n <= keepBody {
		f.body = make([]byte, n)
	}
	f.body = f.body[:n]
	if _, err := io.ReadFull(f.in, f.body); err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	return f.body, nil
}

// header reads header lines up to the blank one and returns the length that
// they declare.
func (f *frames) header() (int64, error) {
	length := int64(-1)
	for {
		line, err := f.line()
		if err != nil {
			if err == io.EOF && (length >= 0 || len(line) > 0) {
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			if length >= 0 {
				return length, nil
			}
			continue // blank lines between messages, or after garbage
		}
		at := lastFold(line, contentLength)
		switch {
		case at >= 0:
			f.garbage += int64(at)
			length = parseLength(line[at+len(contentLength):])
			if length < 0 {
				f.garbage += int64(len(line) - at)
			}
		case !isField(line):
			// A body that was longer than its header said, or a stray print; in the
			// middle of a header it takes nothing from what that says.
			f.garbage += int64(len(line))
		}
	}
}

// line reads up to the end of a line. Of an overlong one it keeps only what may
// still be the start of a header.
func (f *frames) line() ([]byte, error) {
	f.partial = f.partial[:0]
	for {
		piece, err := f.in.ReadSlice('\n')
		f.partial = append(f.partial, piece...)
		if err == nil {
			return f.partial, nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return f.partial, err
		}
		from := lastFold(f.partial, contentLength)
		if from < 0 || len(f.partial)-from > maxHeader {
			from = len(f.partial) - len(contentLength) + 1
		}
		f.garbage += int64(from)
		f.partial = append(f.partial[:0], f.partial[from:]...)
	}
}

// lastFold finds the last place of an ASCII word in lower case that ends in a
// colon, however it is written in s. It is the last one because a body may quote
// a header.
func lastFold(s, word []byte) int {
	for end := bytes.LastIndexByte(s, ':'); end >= 0; end = bytes.LastIndexByte(s[:end], ':') {
		if at := end + 1 - len(word); at >= 0 && bytes.EqualFold(s[at:end+1], word) {
			return at
		}
	}
	return -1
}

// isField tells a header field from anything else: a token and a colon.
func isField(line []byte) bool {
	name, _, ok := bytes.Cut(line, []byte(":"))
	if !ok || len(name) == 0 {
		return false
	}
	for _, c := range name {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-') {
			return false
		}
	}
	return true
}

// parseLength returns -1 for what cannot be the length of a message.
func parseLength(s []byte) int64 {
	n, err := strconv.ParseUint(string(bytes.TrimSpace(s)), 10, 63)
	if err != nil || n > maxBelieved {
		return -1
	}
	return int64(n)
}
