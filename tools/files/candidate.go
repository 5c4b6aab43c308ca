package files

import (
	"fmt"
	"slices"
	"strings"
)

const (
	maxCandidates = 3
	maxExcerpt    = 6     // lines of a candidate that are shown
	maxCompared   = 8_000 // lines that are compared letter by letter
	maxWanted     = 2_000 // lines of old that are looked for
	maxRepeats    = 100   // places of one line that count
)

// candidates shows the places of s that are nearest to old, with line numbers,
// and where the best of them begins to differ. Empty when nothing is near.
func candidates(s, old string) string {
	have := strings.Split(s, "\n")
	want := strings.Split(strings.Trim(old, "\r\n"), "\n")
	starts := byLines(have, want)
	if len(starts) == 0 {
		starts = byLetters(have, want)
	}
	if len(starts) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(" Nearest:")
	for i, at := range starts[:min(maxCandidates, len(starts))] {
		if i > 0 {
			b.WriteString("\n--")
		}
		for n := at; n < min(at+min(len(want), maxExcerpt), len(have)); n++ {
			fmt.Fprintf(&b, "\n%d\t%s", n+1, short(strings.TrimSuffix(have[n], "\r")))
		}
	}
	b.WriteString(difference(have, want, starts[0]))
	return b.String() + "\n"
}

// byLines ranks places by how many whole lines agree there, indentation aside.
func byLines(have, want []string) []int {
	where := map[string][]int{}
	for n, l := range have {
		if l = strings.TrimSpace(l); len(l) > 2 && len(where[l]) < maxRepeats { // braces are everywhere
			where[l] = append(where[l], n)
		}
	}
	votes := map[int]int{}
	for i, l := range want[:min(len(want), maxWanted)] {
		for _, n := range where[strings.TrimSpace(l)] {
			if n >= i {
				votes[n-i]++
			}
		}
	}
	starts := make([]int, 0, len(votes))
	for at := range votes {
		starts = append(starts, at)
	}
	slices.SortFunc(starts, func(a, b int) int {
		if votes[a] != votes[b] {
			return votes[b] - votes[a]
		}
		return a - b
	})
	return starts
}

// byLetters looks for lines that resemble the longest line of old.
func byLetters(have, want []string) []int {
	longest := 0
	for i, l := range want {
		if len(strings.TrimSpace(l)) > len(strings.TrimSpace(want[longest])) {
			longest = i
		}
	}
	target := pairs(want[longest])
	type scored struct {
		at    int
		score float64
	}
	var near []scored
	for n, l := range have[:min(len(have), maxCompared)] {
		if score := alike(target, pairs(l)); score >= 0.5 {
			near = append(near, scored{max(0, n-longest), score})
		}
	}
	slices.SortStableFunc(near, func(a, b scored) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return 0
	})
	var starts []int
	for _, s := range near {
		starts = append(starts, s.at)
	}
	return slices.Compact(starts)
}

// pairs counts the neighbouring bytes of a line, space aside.
func pairs(l string) map[[2]byte]int {
	l = strings.Join(strings.Fields(l[:min(len(l), maxShort)]), " ")
	m := map[[2]byte]int{}
	for i := 1; i < len(l); i++ {
		m[[2]byte{l[i-1], l[i]}]++
	}
	return m
}

// alike is Dice's coefficient, 0 to 1.
func alike(a, b map[[2]byte]int) float64 {
	common, all := 0, 0
	for k, n := range a {
		common += min(n, b[k])
		all += n
	}
	for _, n := range b {
		all += n
	}
	if all == 0 {
		return 0
	}
	return 2 * float64(common) / float64(all)
}

// difference names the first line at which the place at differs from want.
func difference(have, want []string, at int) string {
	for i, l := range want {
		if at+i >= len(have) {
			return fmt.Sprintf("\nThe file ends before line %d of old.", i+1)
		}
		h := strings.TrimSuffix(have[at+i], "\r")
		if l = strings.TrimSuffix(l, "\r"); strings.TrimRight(h, " \t") != strings.TrimRight(l, " \t") {
			return fmt.Sprintf("\nFirst difference at line %d: the file has %s, old has %s.", at+i+1, quote(h), quote(l))
		}
	}
	return ""
}

func quote(s string) string {
	const most = 120
	if len(s) > most {
		return fmt.Sprintf("%q...", strings.ToValidUTF8(s[:most], ""))
	}
	return fmt.Sprintf("%q", s)
}
