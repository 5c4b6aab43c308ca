//go:build unix

package search

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

const (
	// sniff is how much of a file is looked at to tell text from binary, in bytes.
	sniff = 8 << 10
	// firstBuffer holds nearly every source file without growing.
	firstBuffer = 256 << 10
)

// job is what all readers of one search share.
type job struct {
	query   *query
	glob    *glob // nil: every file
	limits  Limits
	context int // lines shown before and after a match
	hits    *collector
	bytes   atomic.Int64 // read so far
}

// reader searches one file after the other. It belongs to one worker.
type reader struct {
	*job
	scanner *scanner
	buf     []byte
	stat    unix.Stat_t
	// opener is openAt; a test puts a disk in its place that refuses.
	opener func(dir int, name string, flags int) (int, error)
}

func newReader(j *job) *reader {
	return &reader{job: j, scanner: newScanner(j.query), buf: make([]byte, firstBuffer), opener: openAt}
}

// visit searches a file of a folder.
func (r *reader) visit(ctx context.Context, dir *folder, name string, t *tally) error {
	t.looked++
	if r.glob != nil && !r.glob.fits(dir.rel, name) {
		return nil
	}
	buf, err := r.load(dir, name, t)
	if err != nil || buf == nil {
		return err
	}
	return r.search(ctx, buf, dir.rel, name, "", t)
}

// load reads a file. Without an error, nil stands for what is not searched; t
// says why.
func (r *reader) load(dir *folder, name string, t *tally) ([]byte, error) {
	fd, err := r.opener(dir.fd, name, unix.O_NONBLOCK)
	switch {
	case err == nil:
	case isGone(err):
		return nil, nil
	case isLink(err):
		t.links++
		return nil, nil
	case isSpecial(err):
		t.special++
		return nil, nil
	case isExhausted(err):
		return nil, &budgetError{err.Error()}
	default:
		t.unreadable++
		return nil, nil
	}
	defer unix.Close(fd) //nolint:errcheck // only read from
	if err := unix.Fstat(fd, &r.stat); err != nil {
		t.unreadable++
		return nil, nil
	}
	switch kind := r.stat.Mode & unix.S_IFMT; {
	case kind == unix.S_IFDIR:
		return nil, errIsFolder
	case kind != unix.S_IFREG:
		t.special++
		return nil, nil
	case r.stat.Size > r.limits.FileBytes:
		t.large++
		return nil, nil
	}
	if r.bytes.Add(r.stat.Size) > r.limits.Bytes {
		return nil, &budgetError{fmt.Sprintf("the files hold more than %d bytes", r.limits.Bytes)}
	}
	return r.fill(fd, int(r.stat.Size), t), nil
}

// fill reads size bytes; nil when they are not text or cannot be read.
func (r *reader) fill(fd, size int, t *tally) []byte {
	if size > len(r.buf) {
		r.buf = make([]byte, size+size/4)
	}
	n, err := readFull(fd, r.buf[:size])
	if err != nil {
		t.unreadable++
		return nil
	}
	if bytes.IndexByte(r.buf[:min(n, sniff)], 0) >= 0 {
		t.binary++
		return nil
	}
	return r.buf[:n]
}

var byteOrderMark = []byte("\uFEFF")

// search looks through a text and hands what it finds to the collector.
func (r *reader) search(ctx context.Context, buf []byte, dir, name, note string, t *tally) error {
	t.searched++
	buf = bytes.TrimPrefix(buf, byteOrderMark)
	if !r.scanner.mayMatch(buf) {
		return nil
	}
	rel := dir + name
	keep := 0
	if r.hits.wants(rel) {
		keep = r.limits.PerFile
	}
	spans, total, err := r.scanner.scan(ctx, buf, keep)
	if err != nil || total == 0 {
		return err
	}
	r.hits.add(fileHits{rel: rel, note: note, total: total, matches: len(spans), lines: r.render(buf, spans)})
	return nil
}

// render cuts out the lines of spans and those around them.
func (r *reader) render(buf []byte, spans []span) []line {
	var out []line
	shown := 0 // number of the last line in out
	for i, s := range spans {
		before := min(r.context, s.number-1-shown)
		at := len(out)
		for start := s.start; before > 0; before-- {
			end := start - 1 // the LF
			start = bytes.LastIndexByte(buf[:end], '\n') + 1
			out = append(out, line{text: r.cut(trimCR(buf[start:end]), 0, 0)})
		}
		reverse(out[at:])
		for k := range out[at:] {
			out[at+k].number = s.number - (len(out) - at) + k
		}
		out = append(out, line{s.number, true, r.cut(buf[s.start:s.end], s.from-s.start, s.to-s.start)})
		shown = s.number
		after := r.context
		if i+1 < len(spans) {
			after = min(after, spans[i+1].number-1-s.number)
		}
		for next, _ := lineEnd(buf, s.end); after > 0 && next < len(buf); after-- {
			start := next
			var end int
			next, end = lineEnd(buf, start)
			shown++
			out = append(out, line{number: shown, text: r.cut(buf[start:end], 0, 0)})
		}
	}
	return out
}

func trimCR(b []byte) []byte {
	if n := len(b); n > 0 && b[n-1] == '\r' {
		return b[:n-1]
	}
	return b
}

func reverse(ls []line) {
	for i, j := 0, len(ls)-1; i < j; i, j = i+1, j-1 {
		ls[i], ls[j] = ls[j], ls[i]
	}
}

// cut shows a line, and of a long one the part around [from, to) with marks
// that say how much is missing on each side.
func (r *reader) cut(b []byte, from, to int) string {
	limit := r.limits.LineBytes
	if len(b) <= limit {
		return printable(b)
	}
	start := 0
	if to > limit {
		start = max(min(from-limit/4, len(b)-limit), 0)
	}
	for start > 0 && start < len(b) && !utf8.RuneStart(b[start]) {
		start--
	}
	end := min(start+limit, len(b))
	for end < len(b) && end > start+1 && !utf8.RuneStart(b[end]) {
		end--
	}
	var out strings.Builder
	if start > 0 {
		fmt.Fprintf(&out, "[cut %d bytes]", start)
	}
	out.WriteString(printable(b[start:end]))
	if end < len(b) {
		fmt.Fprintf(&out, "[cut %d bytes]", len(b)-end)
	}
	return out.String()
}

// printable replaces what is not UTF-8 and what steers a terminal.
func printable(b []byte) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' && c != '\t' || c == 0x7f {
			return utf8.RuneError
		}
		return c
	}, string(b))
}
