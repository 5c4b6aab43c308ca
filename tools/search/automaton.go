package search

import (
	"context"
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"
)

const (
	// maxProgram bounds the expressions that get an automaton, in instructions.
	maxProgram = 2000
	// maxTable bounds the transitions that one worker keeps: 1 MiB.
	maxTable = 256 << 10
	// worth is how many bytes a state must have served for when the table is full
	// and is begun again; with less an expression is faster without an automaton.
	worth = 10
	// maxWork bounds the division of all runes into classes.
	maxWork = 4 << 20
)

// alphabet divides the runes into classes that an expression cannot tell apart.
// It is immutable and shared by the automata of a search.
type alphabet struct {
	prog   *syntax.Prog
	once   bool       // matches begin at the start of a line only
	bounds []rune     // first rune of each interval, ascending
	class  []uint8    // of each interval
	rep    []rune     // a rune of each class
	bytes  [256]uint8 // class of an ASCII byte; eol for LF; slow for what needs a look
	eol    uint8      // the end of a line, after the classes of runes
}

// slow marks bytes that are not a class by themselves: CR, which may belong to
// the line end, and all that is not ASCII.
const slow = 255

// newAlphabet returns nil for an expression that is too large for an automaton.
func newAlphabet(re *syntax.Regexp) *alphabet {
	prog, err := syntax.Compile(re)
	if err != nil || len(prog.Inst) > maxProgram {
		return nil
	}
	a := &alphabet{prog: prog, once: prog.StartCond()&(syntax.EmptyBeginText|syntax.EmptyBeginLine) != 0}
	var insts []*syntax.Inst
	bounds := []rune{0, '0', '9' + 1, 'A', 'Z' + 1, '_', '_' + 1, 'a', 'z' + 1, utf8.RuneSelf}
	for i := range prog.Inst {
		in := &prog.Inst[i]
		switch in.Op {
		case syntax.InstRune, syntax.InstRune1:
			insts = append(insts, in)
			bounds = appendBounds(bounds, in)
		case syntax.InstRuneAny, syntax.InstRuneAnyNotNL: // no LF is ever read
			insts = append(insts, in)
		}
	}
	slices.Sort(bounds)
	a.bounds = slices.Compact(bounds)
	if len(a.bounds)*len(insts) > maxWork || !a.divide(insts) {
		return nil
	}
	for b := range a.bytes {
		a.bytes[b] = slow
		if b < utf8.RuneSelf && b != '\r' {
			a.bytes[b] = a.of(rune(b))
		}
	}
	a.bytes['\n'] = a.eol
	return a
}

// appendBounds adds where the runes that in matches begin and end.
func appendBounds(bounds []rune, in *syntax.Inst) []rune {
	if len(in.Rune) == 1 {
		r := in.Rune[0]
		bounds = append(bounds, r, r+1)
		if syntax.Flags(in.Arg)&syntax.FoldCase != 0 {
			for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
				bounds = append(bounds, f, f+1)
			}
		}
		return bounds
	}
	for i := 0; i+1 < len(in.Rune); i += 2 {
		bounds = append(bounds, in.Rune[i], in.Rune[i+1]+1)
	}
	return bounds
}

// divide gives every interval its class; false when there are too many.
func (a *alphabet) divide(insts []*syntax.Inst) bool {
	seen := map[string]uint8{}
	sign := make([]byte, len(insts)+1)
	a.class = make([]uint8, len(a.bounds))
	for i, r := range a.bounds {
		sign[0] = kindOf(r)
		for k, in := range insts {
			sign[k+1] = 0
			if in.MatchRune(r) {
				sign[k+1] = 1
			}
		}
		c, ok := seen[string(sign)]
		if !ok {
			if len(a.rep) == slow-1 {
				return false
			}
			c = uint8(len(a.rep))
			seen[string(sign)] = c
			a.rep = append(a.rep, r)
		}
		a.class[i] = c
	}
	a.eol = uint8(len(a.rep))
	return true
}

func (a *alphabet) of(r rune) uint8 {
	i, ok := slices.BinarySearch(a.bounds, r)
	if !ok {
		i--
	}
	return a.class[i]
}

// What stands before a place, as far as assertions ask for it.
const (
	atStart uint8 = iota
	afterWord
	afterOther
)

func kindOf(r rune) uint8 {
	if syntax.IsWordChar(r) {
		return afterWord
	}
	return afterOther
}

// automaton tells whether lines match, in time linear to their length whatever
// the expression. Its states are made when they are first needed: the places in
// the program where a match may be, before any assertion, and what was read
// last. Assertions are judged when the next rune, or the end, is known. It
// belongs to one goroutine.
type automaton struct {
	*alphabet
	stride int
	// table holds the next state of each state by class, or unknown, or matched.
	// A state is the index of its row.
	table []int32
	sets  [][]uint32
	kinds []uint8
	ids   map[string]int32
	read  int  // bytes since the table was empty
	spent bool // the automaton should not be asked any more

	stack, next []uint32
	mark        []uint32 // by instruction: the generation that met it
	generation  uint32
	key         []byte
}

const (
	unknown int32 = -1
	matched int32 = -2
)

func newAutomaton(a *alphabet) *automaton {
	m := &automaton{alphabet: a, stride: int(a.eol) + 1, mark: make([]uint32, len(a.prog.Inst))}
	m.clear()
	return m
}

func (m *automaton) clear() {
	m.table, m.sets, m.kinds = m.table[:0], m.sets[:0], m.kinds[:0]
	m.ids, m.read = map[string]int32{}, 0
	m.state([]uint32{uint32(m.prog.Start)}, atStart) // 0: the start of a line
}

// stretch is how much is read between two looks at the context, in bytes.
const stretch = 256 << 10

// find returns a place in the first matching line at or after pos, the start of
// a line, or len(buf), which it returns early when ctx ends. An automaton that
// is spent afterwards has only ruled out the lines before that place.
func (m *automaton) find(ctx context.Context, buf []byte, pos int) int {
	s := int32(0)
	for i := pos; i < len(buf); {
		if i-pos >= stretch && ctx.Err() != nil {
			return len(buf)
		}
		var hit bool
		from := i
		s, i, hit = m.run(s, buf, i, min(len(buf), i+stretch))
		if m.read += i - from; hit {
			return i
		}
	}
	if len(buf) > pos && buf[len(buf)-1] != '\n' && m.step(s, m.eol) == matched {
		return len(buf) - 1
	}
	return len(buf)
}

// run reads buf from i to end, or a rune beyond, beginning in state s. hit says
// that the line at i matches, or that the automaton is spent.
func (m *automaton) run(s int32, buf []byte, i, end int) (state int32, at int, hit bool) {
	table, classes := m.table, &m.bytes
	for i < end {
		c, n := classes[buf[i]], 1
		if c == slow {
			c, n = m.look(buf[i:])
		}
		t := table[s+int32(c)]
		if t < 0 {
			if t == unknown {
				t = m.step(s, c)
				table = m.table
			}
			if t == matched || m.spent {
				return s, i, true
			}
		}
		s = t
		i += n
	}
	return s, i, false
}

// look classifies what begins with a slow byte.
func (m *automaton) look(b []byte) (class uint8, n int) {
	if b[0] == '\r' {
		if len(b) > 1 && b[1] == '\n' {
			return m.eol, 2
		}
		return m.of('\r'), 1
	}
	r, n := utf8.DecodeRune(b)
	return m.of(r), n
}

// step computes a transition and keeps it.
func (m *automaton) step(s int32, class uint8) int32 {
	set, before := m.sets[int(s)/m.stride], m.kinds[int(s)/m.stride]
	end := class == m.eol
	var r rune
	after := atStart // stands for the end too: no word character
	if !end {
		r = m.rep[class]
		after = kindOf(r)
	}
	m.next = m.next[:0]
	if m.follow(set, assertions(before, after, end), r, end) {
		m.table[s+int32(class)] = matched
		return matched
	}
	if end {
		m.table[s+int32(class)] = 0
		return 0
	}
	if !m.once {
		m.next = append(m.next, uint32(m.prog.Start))
	}
	slices.Sort(m.next)
	m.next = slices.Compact(m.next)
	if len(m.table)+m.stride > maxTable {
		m.spent = m.read < worth*len(m.sets)
		next := slices.Clone(m.next)
		m.clear()
		return m.state(next, after)
	}
	t := m.state(m.next, after)
	m.table[s+int32(class)] = t
	return t
}

// follow goes from set through everything that reads nothing, puts what is
// reached by reading r into m.next, and says whether there is a match before.
func (m *automaton) follow(set []uint32, holds syntax.EmptyOp, r rune, end bool) bool {
	m.generation++
	m.stack = append(m.stack[:0], set...)
	for len(m.stack) > 0 {
		pc := m.stack[len(m.stack)-1]
		m.stack = m.stack[:len(m.stack)-1]
		if m.mark[pc] == m.generation {
			continue
		}
		m.mark[pc] = m.generation
		switch in := &m.prog.Inst[pc]; in.Op {
		case syntax.InstMatch:
			return true
		case syntax.InstAlt, syntax.InstAltMatch:
			m.stack = append(m.stack, in.Out, in.Arg)
		case syntax.InstCapture, syntax.InstNop:
			m.stack = append(m.stack, in.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(in.Arg)&^holds == 0 {
				m.stack = append(m.stack, in.Out)
			}
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			if !end && in.MatchRune(r) {
				m.next = append(m.next, in.Out)
			}
		}
	}
	return false
}

func assertions(before, after uint8, end bool) syntax.EmptyOp {
	var holds syntax.EmptyOp
	if before == atStart {
		holds |= syntax.EmptyBeginText | syntax.EmptyBeginLine
	}
	if end {
		holds |= syntax.EmptyEndText | syntax.EmptyEndLine
	}
	if (before == afterWord) != (after == afterWord) {
		return holds | syntax.EmptyWordBoundary
	}
	return holds | syntax.EmptyNoWordBoundary
}

// state returns the row of a state, which may be new.
func (m *automaton) state(set []uint32, kind uint8) int32 {
	m.key = append(m.key[:0], kind)
	for _, pc := range set {
		m.key = binary.LittleEndian.AppendUint32(m.key, pc)
	}
	if id, ok := m.ids[string(m.key)]; ok {
		return id
	}
	id := int32(len(m.table))
	m.ids[string(m.key)] = id
	m.sets = append(m.sets, slices.Clone(set))
	m.kinds = append(m.kinds, kind)
	for range m.stride {
		m.table = append(m.table, unknown)
	}
	return id
}
