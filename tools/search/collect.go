package search

import (
	"slices"
	"strings"
	"sync"
)

// fileHits is what is shown of one file, and what is known about the rest.
type fileHits struct {
	rel     string // from the root, with forward slashes; a URI for a document without a path
	note    string // what the reader must know about the text, as "unsaved editor text"
	total   int    // matching lines
	lines   []line // with their context, in order
	matches int    // how many of lines match
}

// line is one line of a result, cut to its limit.
type line struct {
	number int
	match  bool
	text   string
}

// collector gathers hits from all workers. It keeps text for the first files in
// the order of their names alone, so its memory is bounded whatever matches.
type collector struct {
	base  string // folder that is searched, with a final slash; empty for the root
	limit int    // matching lines shown in all

	mu     sync.Mutex // guards all below
	files  []fileHits
	kept   int            // matching lines in files
	cutoff string         // what is not before it is only counted; empty: nothing
	lines  int            // matching lines, shown or not
	count  int            // files with a match
	places map[string]int // matching lines by the first name below base
}

func newCollector(base string, limit int) *collector {
	return &collector{base: base, limit: limit, places: map[string]int{}}
}

// wants says whether text of the file may still be shown.
func (c *collector) wants(rel string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cutoff == "" || rel < c.cutoff
}

func (c *collector) add(h fileHits) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines += h.total
	c.count++
	if place, _, deep := strings.Cut(strings.TrimPrefix(h.rel, c.base), "/"); deep {
		c.places[place] += h.total
	}
	if c.cutoff != "" && h.rel >= c.cutoff {
		return
	}
	c.files = append(c.files, h)
	if c.kept += h.matches; c.kept > 4*c.limit {
		c.trim()
	}
}

// trim sorts the files and drops those after the one that reaches the limit.
func (c *collector) trim() {
	slices.SortFunc(c.files, func(a, b fileHits) int { return strings.Compare(a.rel, b.rel) })
	sum := 0
	for i := range c.files {
		sum += c.files[i].matches
		if sum >= c.limit && i+1 < len(c.files) {
			c.cutoff = c.files[i+1].rel
			clear(c.files[i+1:])
			c.files = c.files[:i+1]
			break
		}
	}
	c.kept = sum
}

// sorted ends the gathering and returns the files to show, in order.
func (c *collector) sorted() []fileHits {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trim()
	return c.files
}
