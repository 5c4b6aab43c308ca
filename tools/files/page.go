package files

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// What one read shows at most.
const (
	maxLines = 2000
	maxBytes = 50 << 10
	maxChars = 2000 // of a line
)

// page is a piece of a text with numbered lines.
type page struct {
	text        string
	first, last int  // shown, from 1; last < first: none
	total       int  // lines of the whole
	long        int  // lines that were cut
	full        bool // maxBytes was reached
}

// number reads r to its end and returns limit lines from line first on. It
// keeps no more of r than it shows, however long the lines are.
func number(ctx context.Context, r *bufio.Reader, first, limit int) (page, error) {
	p := page{first: first, last: first - 1}
	var out strings.Builder
	var line []byte // the beginning of the present line
	chars := 0      // of the whole present line, when it is wanted
	begun := false  // it has bytes
	for n := 1; ; {
		part, err := r.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
			return p, err
		}
		if ctx.Err() != nil {
			return p, context.Cause(ctx)
		}
		if wanted := n >= first && n < first+limit && !p.full; wanted {
			line = append(line, part[:min(len(part), max(0, maxChars*utf8.UTFMax+2-len(line)))]...)
			chars += starts(part)
		}
		begun = begun || len(part) > 0
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if !begun && err != nil {
			break // nothing after the last line end
		}
		p.total = n
		if n >= first && n < first+limit && !p.full {
			p.add(&out, n, line, chars)
		}
		line, chars, begun = line[:0], 0, false
		n++
		if err != nil {
			break
		}
	}
	p.text = out.String()
	return p, nil
}

// starts counts the runes that begin in b, which may end inside of one.
func starts(b []byte) int {
	n := 0
	for _, c := range b {
		if utf8.RuneStart(c) {
			n++
		}
	}
	return n
}

// add shows a line, or notes that the page is full.
func (p *page) add(out *strings.Builder, n int, line []byte, chars int) {
	s := strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r")
	chars -= len(line) - len(s) // the line end, where it was kept
	if chars > maxChars {
		at := 0
		for range maxChars {
			_, size := utf8.DecodeRuneInString(s[at:])
			at += size
		}
		s = fmt.Sprintf("%s [line cut: %d of %d characters shown]", s[:at], maxChars, chars)
	}
	s = fmt.Sprintf("%d\t%s\n", n, strings.ToValidUTF8(s, "\uFFFD"))
	if out.Len()+len(s) > maxBytes {
		p.full = true
		return
	}
	if chars > maxChars {
		p.long++
	}
	out.WriteString(s)
	p.last = n
}
