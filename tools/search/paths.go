package search

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// pathList holds the paths of a listing in one piece of memory, with what the
// ranking of a query asks for first. It is immutable once it is shared.
type pathList struct {
	raw  []byte   // the paths, one after the other
	low  []byte   // the same in lower case; every byte has its own place
	ends []uint32 // end of each path in raw
	name []uint32 // where its last name begins in raw
	mask []uint64 // which letters it holds, see letterBit
}

// newPathList takes relative paths with forward slashes, in any order.
func newPathList(paths []string) *pathList {
	size := 0
	for _, p := range paths {
		size += len(p)
	}
	l := &pathList{
		raw: make([]byte, 0, size), low: make([]byte, 0, size),
		ends: make([]uint32, 0, len(paths)), name: make([]uint32, 0, len(paths)), mask: make([]uint64, 0, len(paths)),
	}
	for _, p := range paths {
		l.add(p)
	}
	return l
}

func (l *pathList) add(p string) {
	l.name = append(l.name, uint32(len(l.raw)+strings.LastIndexByte(p, '/')+1))
	l.raw = append(l.raw, p...)
	from := len(l.low)
	l.low = appendFolded(l.low, p)
	l.ends = append(l.ends, uint32(len(l.raw)))
	l.mask = append(l.mask, maskOf(l.low[from:]))
}

func (l *pathList) len() int { return len(l.ends) }

func (l *pathList) bounds(i int) (from, name, end int) {
	if i > 0 {
		from = int(l.ends[i-1])
	}
	return from, int(l.name[i]), int(l.ends[i])
}

func (l *pathList) path(i int) string {
	from, _, end := l.bounds(i)
	return string(l.raw[from:end])
}

// appendFolded appends s in lower case. A letter whose other case has another
// length in UTF-8 stays, and so does what is no UTF-8: the places of bytes are
// the same in both.
func appendFolded(b []byte, s string) []byte {
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			b = append(b, lower(c))
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if f := unicode.ToLower(r); n > 1 && utf8.RuneLen(f) == n {
			b = utf8.AppendRune(b, f)
		} else {
			b = append(b, s[i:i+n]...)
		}
		i += n
	}
	return b
}

// maskOf has a bit for each letter and digit that is in folded.
func maskOf(folded []byte) uint64 {
	var m uint64
	for _, c := range folded {
		m |= 1 << letterBit(c)
	}
	return m
}

// letterBit: letters and digits have a bit of their own, the rest share some.
func letterBit(c byte) uint {
	switch {
	case 'a' <= c && c <= 'z':
		return uint(c - 'a')
	case '0' <= c && c <= '9':
		return uint(c-'0') + 26
	}
	return 36 + uint(c)%28
}
