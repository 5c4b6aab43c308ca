package search

import (
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// maxNeedles bounds how many alternatives are looked for one beside the other.
const maxNeedles = 16

// fact is what is known about the matches of an expression.
type fact struct {
	exact bool   // every match is text, in any case when fold
	bare  bool   // and nothing around it is asked for
	text  string // lower case when fold
	fold  bool
	any   []needle // every match contains one of them; nil when none is known
}

// known derives the strings that a match of re must contain. re is simplified.
func known(re *syntax.Regexp) fact {
	switch re.Op {
	case syntax.OpEmptyMatch:
		return fact{exact: true, bare: true}
	case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText,
		syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return fact{exact: true}
	case syntax.OpLiteral:
		return literal(re)
	case syntax.OpCapture:
		return known(re.Sub[0])
	case syntax.OpPlus:
		f := known(re.Sub[0])
		return fact{any: f.required()}
	case syntax.OpConcat:
		return concat(re.Sub)
	case syntax.OpAlternate:
		return alternate(re.Sub)
	}
	return fact{}
}

// required is what a match contains, whether f is exact or not.
func (f fact) required() []needle {
	if f.exact && f.text != "" {
		return []needle{newNeedle(f.text, f.fold)}
	}
	return f.any
}

// literal splits a folded literal at the runes that have a third case outside
// ASCII (k and the Kelvin sign, s and the long s), because needles fold ASCII
// alone.
func literal(re *syntax.Regexp) fact {
	if re.Flags&syntax.FoldCase == 0 {
		s := string(re.Rune)
		if strings.ContainsRune(s, utf8.RuneError) {
			return fact{} // stands for any invalid byte of the text as well
		}
		return fact{exact: true, bare: true, text: s}
	}
	simple := func(r rune) bool { return r < utf8.RuneSelf && !strings.ContainsRune("kKsS", r) }
	var best []needle
	start := 0
	for i := 0; i <= len(re.Rune); i++ {
		if i < len(re.Rune) && simple(re.Rune[i]) {
			continue
		}
		if i > start {
			part := strings.ToLower(string(re.Rune[start:i]))
			if i-start == len(re.Rune) {
				return fact{exact: true, bare: true, text: part, fold: true}
			}
			best = better(best, []needle{newNeedle(part, true)})
		}
		start = i + 1
	}
	return fact{any: best}
}

// concat joins neighbours that are exact and keeps the best string of all.
func concat(subs []*syntax.Regexp) fact {
	out := fact{exact: true, bare: true}
	var run fact
	for _, sub := range subs {
		f := known(sub)
		out.bare = out.bare && f.bare
		if f.exact && (f.text == "" || run.text == "" || run.fold == f.fold) {
			if f.text != "" {
				run.fold = f.fold
			}
			run.exact, run.text = true, run.text+f.text
			continue
		}
		out.exact = false
		out.any = better(out.any, run.required())
		run = fact{}
		if f.exact {
			run = f
		} else {
			out.any = better(out.any, f.any)
		}
	}
	if out.exact {
		out.text, out.fold = run.text, run.fold
		return out
	}
	out.bare = false
	out.any = better(out.any, run.required())
	return out
}

// alternate needs a string from every branch.
func alternate(subs []*syntax.Regexp) fact {
	var all []needle
	for _, sub := range subs {
		f := known(sub)
		need := f.required()
		if need == nil || len(all)+len(need) > maxNeedles {
			return fact{}
		}
		all = append(all, need...)
	}
	return fact{any: all}
}

// better picks the set that costs less to look for.
func better(a, b []needle) []needle {
	if a == nil || b != nil && cost(b) < cost(a) {
		return b
	}
	return a
}

func cost(set []needle) float64 {
	sum := 0.0
	for _, n := range set {
		sum += n.cost
	}
	return sum
}
