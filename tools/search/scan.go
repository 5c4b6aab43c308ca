package search

import (
	"bytes"
	"context"
	"io"
	"unicode/utf8"
)

const (
	// checkEvery is how many lines are judged between two looks at the context.
	checkEvery = 4096
	// longLine is the length in bytes from which a line is not handed to the
	// regular expression as a whole, which could not be stopped: a large
	// expression takes 20 us a byte.
	longLine = 4 << 10
	// around is how much is shown as the match of a long line, in bytes, before
	// the place where it was found to match.
	around = 200
)

// span is a matching line in a buffer: [start, end) without the line end, the
// first match in it, and its number from 1. Lines are counted by LF alone.
type span struct {
	start, end int
	from, to   int
	number     int
}

// scanner finds the matching lines of one buffer after the other. It keeps
// memory between buffers and belongs to one goroutine.
type scanner struct {
	q       *query
	finders []finder
	machine *automaton // nil where the expression has to be asked
	spans   []span
}

func newScanner(q *query) *scanner {
	s := &scanner{q: q, finders: make([]finder, len(q.needles))}
	if q.letters != nil {
		s.machine = newAutomaton(q.letters)
	}
	return s
}

// scan returns the first keep matching lines and the number of all, or the
// context's cause. The spans are valid until the next call.
func (s *scanner) scan(ctx context.Context, buf []byte, keep int) ([]span, int, error) {
	s.spans = s.spans[:0]
	for i := range s.finders {
		s.finders[i].reset(&s.q.needles[i])
	}
	total, judged := 0, 0
	number, counted := 1, 0 // the line number at offset counted
	for pos := 0; pos < len(buf); {
		hit := s.candidate(ctx, buf, pos)
		if hit >= len(buf) {
			break
		}
		start := pos + bytes.LastIndexByte(buf[pos:hit], '\n') + 1
		next, end := lineEnd(buf, hit)
		if judged++; judged%checkEvery == 0 && ctx.Err() != nil {
			return nil, 0, context.Cause(ctx)
		}
		pos = next
		from, to, ok, err := s.judge(ctx, buf[start:end], hit-start, len(s.spans) < keep)
		if err != nil {
			return nil, 0, err
		}
		if !ok {
			continue
		}
		total++
		if len(s.spans) < keep {
			number += bytes.Count(buf[counted:start], newline)
			counted = start
			s.spans = append(s.spans, span{start, end, start + from, start + to, number})
		}
	}
	if ctx.Err() != nil { // what found nothing may have given up
		return nil, 0, context.Cause(ctx)
	}
	return s.spans, total, nil
}

func (s *scanner) usesMachine() bool { return s.machine != nil && !s.machine.spent }

var newline = []byte{'\n'}

// candidate returns a place at or after pos, which is the start of a line, in
// the next line that may match.
func (s *scanner) candidate(ctx context.Context, buf []byte, pos int) int {
	if len(s.finders) == 0 {
		if s.usesMachine() {
			return s.machine.find(ctx, buf, pos)
		}
		return pos
	}
	at := len(buf)
	for i := range s.finders {
		at = min(at, s.finders[i].next(buf, pos))
	}
	return at
}

// lineEnd returns the start of the line after the one that holds at, and the
// end of that one without LF or CR LF.
func lineEnd(buf []byte, at int) (next, end int) {
	i := bytes.IndexByte(buf[at:], '\n')
	if i < 0 {
		return len(buf), len(buf)
	}
	end = at + i
	if end > at && buf[end-1] == '\r' {
		return end + 1, end - 1
	}
	return end + 1, end
}

// judge decides about a line that holds a needle at hit. Where the match itself
// is not wanted, from and to are not set.
func (s *scanner) judge(ctx context.Context, line []byte, hit int, where bool) (from, to int, ok bool, err error) {
	re := s.q.re
	switch {
	case re == nil:
		return hit, hit + len(s.q.needles[0].text), true, nil
	case len(line) >= longLine && s.usesMachine():
		end := s.machine.find(ctx, line, 0)
		if s.usesMachine() {
			return max(end-around, 0), end, end < len(line), nil
		}
		fallthrough
	case len(line) >= longLine:
		loc := re.FindReaderIndex(&lineReader{ctx: ctx, line: line})
		if ctx.Err() != nil {
			return 0, 0, false, context.Cause(ctx)
		}
		if loc == nil {
			return 0, 0, false, nil
		}
		return loc[0], loc[1], true, nil
	case !where:
		return 0, 0, s.matches(ctx, line), nil
	}
	loc := re.FindIndex(line)
	if loc == nil {
		return 0, 0, false, nil
	}
	return loc[0], loc[1], true, nil
}

func (s *scanner) matches(ctx context.Context, line []byte) bool {
	if s.usesMachine() {
		// Without needles the machine has found the line.
		ok := len(s.finders) == 0 || s.machine.find(ctx, line, 0) < len(line)
		if s.usesMachine() {
			return ok
		}
	}
	return s.q.re.Match(line)
}

// lineReader hands a long line to a regular expression and ends it early when
// the search is stopped.
type lineReader struct {
	ctx  context.Context
	line []byte
	at   int
	read int
}

// ReadRune implements io.RuneReader.
func (r *lineReader) ReadRune() (rune, int, error) {
	if r.read++; r.at >= len(r.line) || r.read%64 == 0 && r.ctx.Err() != nil {
		return 0, 0, io.EOF
	}
	if c := r.line[r.at]; c < utf8.RuneSelf {
		r.at++
		return rune(c), 1, nil
	}
	c, n := utf8.DecodeRune(r.line[r.at:])
	r.at += n
	return c, n, nil
}

// mayMatch says quickly that most buffers cannot match.
func (s *scanner) mayMatch(buf []byte) bool {
	for i := range s.finders {
		s.finders[i].reset(&s.q.needles[i])
		if s.finders[i].next(buf, 0) < len(buf) {
			return true
		}
	}
	return len(s.finders) == 0
}
