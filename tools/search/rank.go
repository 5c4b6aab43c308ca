package search

import (
	"bytes"
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// What a path is worth, by where the bytes of the query lie in it. The letters
// decide among paths that fit in the same way; the way itself counts more.
const (
	perByte   = 16 // each byte of the query
	runOn     = 10 // follows the one before without a gap
	inName    = 8  // lies in the last name
	atName    = 14 // is the first of the last name
	atSegment = 12 // is the first of a name
	atWord    = 10 // stands after - _ . or a space
	atHump    = 10 // an upper case letter after a lower case one, a digit after a letter
	openGap   = 4  // taken off for a gap
	eachByte  = 1  // taken off for each byte of it
	perName   = 4  // so many bytes of the last name cost one: what is asked for is more of a short one

	partOfPath = 150  // the query stands in the path as it is
	partOfName = 400  // in the last name
	wordOfName = 100  // there at the start of a word, in addition
	startsName = 200  // the last name begins with it, in addition
	wholeEnd   = 1200 // the path ends with it, from the start of a name
	wholeStem  = 1000 // it is the last name without its extension
	wholeName  = 1500 // it is the last name
)

const (
	// maxQuery bounds a query, in bytes.
	maxQuery = 200
	// maxAligned is the longest path whose best alignment is looked for, in
	// bytes; of a longer one its end counts.
	maxAligned = 512
	// unreachable is below what any alignment is worth.
	unreachable = -1 << 30
)

// fuzzy is a query for paths: words that must all fit, each as a subsequence.
// Upper and lower case are the same. Safe for concurrent use.
type fuzzy struct {
	words [][]byte
	mask  uint64
	ascii bool
}

func newFuzzy(query string) *fuzzy {
	q := &fuzzy{ascii: true}
	for w := range strings.FieldsSeq(query) {
		w = strings.TrimPrefix(w, "./")
		if w = strings.TrimLeft(w, "/"); w != "" {
			q.words = append(q.words, appendFolded(nil, w))
		}
	}
	for _, w := range q.words {
		q.mask |= maskOf(w)
		for _, c := range w {
			q.ascii = q.ascii && c < utf8.RuneSelf
		}
	}
	return q
}

// aligner judges paths. It belongs to one goroutine.
type aligner struct {
	// floor is what a path must be worth to be looked at closely. Of another it
	// is only told that it fits, with some score below.
	floor       int
	pending     [][]byte // words of which floor asks no closer look yet
	ended, best [maxAligned + 1]int
}

// score judges a path, given as it is and folded, whose last name begins at
// name. ok is false when the query does not fit.
func (a *aligner) score(q *fuzzy, raw, low []byte, name int) (sum int, ok bool) {
	most := 0
	a.pending = a.pending[:0]
	for _, w := range q.words {
		if !subsequence(w, low) {
			return 0, false
		}
		way, at := lies(w, raw, low, name)
		if at >= 0 {
			if sum += way + inRow(raw, at, len(w), name); at >= name {
				sum -= rest(low, name)
			}
			continue
		}
		a.pending = append(a.pending, w)
		most += partOfPath + len(w)*(perByte+inName+atName)
	}
	if q.ascii && sum+most < a.floor {
		return sum, true
	}
	for _, w := range a.pending {
		s := a.scattered(w, raw, low, name)
		if s == unreachable {
			return 0, false
		}
		sum += s
	}
	return sum, true
}

// rest is what is taken off for the length of the last name.
func rest(low []byte, name int) int { return min(len(low)-name, maxAligned) / perName }

// subsequence says whether all bytes of w are in s in their order.
func subsequence(w, s []byte) bool {
	for _, c := range w {
		i := bytes.IndexByte(s, c)
		if i < 0 {
			return false
		}
		s = s[i+1:]
	}
	return true
}

// lies finds w as it is in the last name, or at the end of the path from the
// start of a name on, and says what that is worth; at is -1 when it is not.
func lies(w, raw, low []byte, name int) (way, at int) {
	base := low[name:]
	if at = len(low) - len(w); bytes.HasSuffix(low, w) && (at == 0 || low[at-1] == '/') {
		if at == name {
			return wholeName + startsName, at
		}
		return wholeEnd, at
	}
	at = bytes.Index(base, w)
	switch {
	case at < 0:
		return 0, -1
	case at == 0 && len(w) == stem(base):
		return wholeStem + startsName, name
	case at == 0:
		return partOfName + wordOfName + startsName, name
	case bonus(raw, name+at, name) > 0:
		return partOfName + wordOfName, name + at
	}
	for next := at; ; {
		i := bytes.Index(base[next+1:], w)
		if i < 0 {
			return partOfName, name + at
		}
		if next += 1 + i; bonus(raw, name+next, name) > 0 {
			return partOfName + wordOfName, name + next
		}
	}
}

// inRow is what n bytes that follow each other from at on are worth.
func inRow(raw []byte, at, n, name int) int {
	sum := perByte + bonus(raw, at, name)
	for i := at + 1; i < at+n; i++ {
		sum += perByte + max(runOn, bonus(raw, i, name))
	}
	return sum + inName*min(n, max(0, at+n-name))
}

// scattered is what a word is worth that is not in the last name as it is, or
// unreachable when it does not fit.
func (a *aligner) scattered(w, raw, low []byte, name int) int {
	best := unreachable
	if at := bytes.LastIndex(low, w); at >= 0 {
		best = partOfPath + inRow(raw, at, len(w), name)
	}
	// In the last name alone if it fits there: so a short name in a deep folder
	// is not outdone by letters scattered over the folders of another.
	if subsequence(w, low[name:]) {
		best = max(best, a.align(w, raw, low, name, name)-rest(low, name), unreachable)
	}
	if best == unreachable {
		best = a.align(w, raw, low, max(0, len(low)-maxAligned), name)
	}
	if best == unreachable && len(low) > maxAligned {
		return 0 // it fits, further from the end than is looked
	}
	return best
}

// stem is the length of a name without its last extension.
func stem(name []byte) int {
	if i := bytes.LastIndexByte(name, '.'); i > 0 {
		return i
	}
	return len(name)
}

// align finds the best places for the bytes of w in the path from start on.
func (a *aligner) align(w, raw, low []byte, start, name int) int {
	low = low[start:]
	if len(low) > maxAligned {
		low = low[len(low)-maxAligned:]
		start = len(raw) - maxAligned
	}
	// After the round i: ended[j+1] is the best for w[:i+1] with its last byte at
	// j, and best[j+1] with it before j, less the gap up to a byte at j+1.
	for j := range low {
		a.best[j] = 0
		a.ended[j] = unreachable
	}
	a.best[len(low)], a.ended[len(low)] = 0, unreachable
	for i, c := range w {
		glued := i > 0 && !utf8.RuneStart(c) // the rest of a rune has no place of its own
		ended, best := unreachable, unreachable
		beforeEnded, beforeBest := a.ended[0], a.best[0]
		a.ended[0], a.best[0] = unreachable, unreachable
		for j := range low {
			now := unreachable
			if low[j] == c {
				b := bonus(raw, start+j, name)
				if beforeBest > unreachable && !glued {
					now = beforeBest + perByte + b
				}
				if beforeEnded > unreachable {
					now = max(now, beforeEnded+perByte+max(b, runOn))
				}
				if now > unreachable && start+j >= name {
					now += inName
				}
			}
			beforeEnded, beforeBest = a.ended[j+1], a.best[j+1]
			best = max(best-eachByte, ended-openGap-eachByte, unreachable)
			ended = now
			a.ended[j+1], a.best[j+1] = now, best
		}
	}
	top := unreachable
	for _, s := range a.ended[:len(low)+1] {
		top = max(top, s)
	}
	return top
}

// bonus is what the place at is worth as a start.
func bonus(raw []byte, at, name int) int {
	if at == name {
		return atName
	}
	if at == 0 {
		return atSegment
	}
	c, before := raw[at], raw[at-1]
	switch {
	case before == '/':
		return atSegment
	case before == '-' || before == '_' || before == '.' || before == ' ':
		return atWord
	case 'A' <= c && c <= 'Z' && ('a' <= before && before <= 'z'):
		return atHump
	case '0' <= c && c <= '9' && (before < '0' || before > '9'):
		return atHump
	}
	return 0
}

// hit is a path of a result.
type hit struct {
	score int
	path  string
}

// before orders hits: the better one, the shorter one, then by their bytes.
func (h hit) before(o hit) bool {
	if h.score != o.score {
		return h.score > o.score
	}
	if len(h.path) != len(o.path) {
		return len(h.path) < len(o.path)
	}
	return h.path < o.path
}

// pick is what is asked of a list of paths.
type pick struct {
	query *fuzzy // nil: every path, in the order of the bytes
	glob  *glob  // nil: every path
	limit int
}

// picked is the answer: the first hits, and how many there are.
type picked struct {
	hits  []hit
	fit   int // with the glob
	total int // with both
}

func (p *picked) add(h hit, limit int, before func(a, b hit) bool) {
	p.total++
	if len(p.hits) == limit {
		if !before(h, p.hits[limit-1]) {
			return
		}
		p.hits = p.hits[:limit-1]
	}
	at, _ := slices.BinarySearchFunc(p.hits, h, func(a, b hit) int {
		if before(a, b) {
			return -1
		}
		return 1
	})
	p.hits = slices.Insert(p.hits, at, h)
}

// order is how the hits of a pick are sorted.
func (p pick) order() func(a, b hit) bool {
	if p.query == nil {
		return func(a, b hit) bool { return a.path < b.path }
	}
	return hit.before
}

// from goes through lists with all processors. It returns the context's cause
// when it was stopped.
func (p pick) from(ctx context.Context, lists ...*pathList) (picked, error) {
	var parts []func(*picked) // pieces of work, each for one goroutine
	workers := min(runtime.GOMAXPROCS(0), maxWorkers)
	for _, l := range lists {
		size := max(l.len()/workers+1, 1024)
		for from := 0; from < l.len(); from += size {
			to := min(from+size, l.len())
			parts = append(parts, func(out *picked) { p.part(ctx, l, from, to, out) })
		}
	}
	results := make([]picked, len(parts))
	var wait sync.WaitGroup
	for i, part := range parts {
		wait.Go(func() { part(&results[i]) })
	}
	wait.Wait()
	if ctx.Err() != nil {
		return picked{}, context.Cause(ctx)
	}
	var all picked
	for _, r := range results {
		for _, h := range r.hits {
			all.add(h, p.limit, p.order())
		}
		all.fit += r.fit
	}
	all.total = 0
	for _, r := range results {
		all.total += r.total
	}
	return all, nil
}

func (p pick) part(ctx context.Context, l *pathList, from, to int, out *picked) {
	before := p.order()
	a := aligner{floor: unreachable}
	for i := from; i < to; i++ {
		if i%1024 == 0 && ctx.Err() != nil {
			return
		}
		start, name, end := l.bounds(i)
		if p.glob != nil && !p.glob.fits(string(l.raw[start:name]), string(l.raw[name:end])) {
			continue
		}
		out.fit++
		var h hit
		if p.query != nil {
			if l.mask[i]&p.query.mask != p.query.mask {
				continue
			}
			s, ok := a.score(p.query, l.raw[start:end], l.low[start:end], name-start)
			if !ok {
				continue
			}
			if s < a.floor {
				out.total++
				continue
			}
			h.score = s
		}
		h.path = l.path(i)
		out.add(h, p.limit, before)
		if len(out.hits) == p.limit {
			a.floor = out.hits[p.limit-1].score
		}
	}
}
