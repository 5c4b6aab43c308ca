package search

import "bytes"

// needle is a string that every match contains. It is looked for by its rarest
// byte, which leaves nearly all of a buffer to the vectorised IndexByte.
type needle struct {
	text   []byte // lower case when fold
	fold   bool   // ASCII letters match in both cases
	at     int    // offset of the rarest byte
	lo, hi byte   // that byte in its two cases; equal where there is only one
	cost   float64
}

// Estimated nanoseconds for what a byte of haystack may lead to: a stop at the
// rarest byte, and a whole candidate that a regular expression must judge.
const (
	stopCost      = 6
	candidateCost = 400
)

func newNeedle(text string, fold bool) needle {
	n := needle{text: []byte(text), fold: fold}
	if fold {
		n.text = bytes.ToLower(n.text)
	}
	rarest, all := 2.0, 1.0
	for i, c := range n.text {
		p := share(c)
		if fold && upper(c) != c {
			p += share(upper(c))
		}
		if p < rarest {
			rarest, n.at, n.lo, n.hi = p, i, c, c
			if fold {
				n.hi = upper(c)
			}
		}
		all *= p
	}
	n.cost = rarest*stopCost + all*candidateCost
	return n
}

// finder walks the hits of a needle through one buffer.
type finder struct {
	needle *needle
	// Where the rarest byte stands next in either case: at or after the last
	// place asked for, len(buf) when nowhere.
	nextLo, nextHi int
	hit            int // the last hit, len(buf) when there is none; -1 at first
}

func (f *finder) reset(n *needle) {
	*f = finder{needle: n, nextLo: -1, nextHi: -1, hit: -1}
}

// next returns the start of the first hit at or after from, or len(buf). from
// must not decrease between calls for one buffer.
func (f *finder) next(buf []byte, from int) int {
	if f.hit >= from {
		return f.hit
	}
	n := f.needle
	for p := from + n.at; ; p++ {
		p = f.rare(buf, p)
		if p >= len(buf) {
			f.hit = len(buf)
			return f.hit
		}
		start := p - n.at
		if start+len(n.text) <= len(buf) && n.equal(buf[start:start+len(n.text)]) {
			f.hit = start
			return start
		}
	}
}

// rare returns the first place of the rarest byte at or after p.
func (f *finder) rare(buf []byte, p int) int {
	if f.nextLo < p {
		f.nextLo = index(buf, p, f.needle.lo)
	}
	if f.needle.lo == f.needle.hi {
		return f.nextLo
	}
	if f.nextHi < p {
		f.nextHi = index(buf, p, f.needle.hi)
	}
	return min(f.nextLo, f.nextHi)
}

func index(buf []byte, from int, c byte) int {
	if from >= len(buf) {
		return len(buf)
	}
	i := bytes.IndexByte(buf[from:], c)
	if i < 0 {
		return len(buf)
	}
	return from + i
}

func (n *needle) equal(b []byte) bool {
	if !n.fold {
		return bytes.Equal(b, n.text)
	}
	for i, c := range b {
		if lower(c) != n.text[i] {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func upper(c byte) byte {
	if 'a' <= c && c <= 'z' {
		return c - ('a' - 'A')
	}
	return c
}
