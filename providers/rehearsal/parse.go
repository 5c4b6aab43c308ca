package rehearsal

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Parse reads a script; name stands in messages about it. The language is
// described by [Manual]. Every error is an *[Error] that names the line.
func Parse(name, text string) (Script, error) {
	p := &parser{script: Script{name: name}, lines: strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n"), gates: map[string]int{}}
	if err := p.block(0); err != nil {
		return Script{}, err
	}
	if p.began && !p.output {
		return Script{}, p.fail(p.now.line, "the answer that begins here says nothing; put a say, call or other step after it")
	}
	p.finish()
	if len(p.script.answers) == 0 {
		return Script{}, p.fail(len(p.lines), "the script has no answer; begin with a line such as: say Hello")
	}
	return p.script, nil
}

// parser builds a script line by line.
type parser struct {
	script Script
	lines  []string
	pos    int    // next line, from 0
	count  string // what {{n}} stands for; "" outside repeat
	rate   int    // fragments a second; 0 has no limit
	steps  int
	gates  map[string]int // line of each gate

	now    answer
	began  bool // now holds anything
	output bool // now holds a step, not only expectations
	calls  int  // in now
}

// verb is how a step is written and what it means for the answer around it.
type verb struct {
	parse func(p *parser, line int, rest string) (step, error)
	speak bool // begins a new answer after a call
	ends  bool // nothing can follow in the same answer
	alone bool // may follow only wait and gate
}

// verbs holds the steps that put something into an answer. The others (expect,
// rate, usage, repeat, model, end) are read by the parser itself.
var verbs = map[string]verb{
	"say":     {parse: parseSay, speak: true},
	"think":   {parse: parseThink, speak: true},
	"tokens":  {parse: parseTokens, speak: true},
	"call":    {parse: parseCall},
	"rawcall": {parse: parseRawCall},
	"length":  {parse: func(*parser, int, string) (step, error) { return finishStep{"length"}, nil }, ends: true},
	"finish":  {parse: parseFinish, ends: true},
	"open":    {parse: bare(openStep{})},
	"wait":    {parse: parseWait},
	"gate":    {parse: parseGate},
	"stall":   {parse: bare(stallStep{}), ends: true},
	"cut":     {parse: bare(cutStep{}), ends: true},
	"eof":     {parse: bare(eofStep{}), ends: true},
	"raw":     {parse: parseRaw},
	"garbage": {parse: bare(garbageStep{}), ends: true},
	"bomb":    {parse: parseBomb, ends: true, alone: true},
	"status":  {parse: parseStatus, ends: true, alone: true},
}

func (p *parser) fail(line int, format string, args ...any) error {
	return &Error{Script: p.script.name, Line: line, Text: fmt.Sprintf(format, args...)}
}

// next returns the next line that says something, its number from 1 and the
// words it is made of: the verb and the rest with a <<WORD text taken in.
func (p *parser) next() (line int, word, rest string, ok bool, err error) {
	for p.pos < len(p.lines) {
		text := strings.TrimSpace(p.lines[p.pos])
		p.pos++
		if text == "" || text[0] == '#' {
			continue
		}
		line = p.pos
		if p.count != "" {
			text = strings.ReplaceAll(text, "{{n}}", p.count)
		}
		word, rest, _ = strings.Cut(text, " ")
		rest = strings.TrimSpace(rest)
		if at := hereAt.FindStringSubmatchIndex(rest); at != nil {
			body, found := p.here(rest[at[2]:at[3]])
			if !found {
				return 0, "", "", false, p.fail(line, "no line holds only %s, which ends the text that begins here", rest[at[2]:at[3]])
			}
			// Quoted, so that whoever reads the rest sees one text.
			rest = rest[:at[0]] + strconv.Quote(body)
		}
		return line, word, rest, true, nil
	}
	return 0, "", "", false, nil
}

var hereAt = regexp.MustCompile(`<<([A-Z]+)$`)

// here takes the lines up to the one that holds only end.
func (p *parser) here(end string) (string, bool) {
	var b []string
	for p.pos < len(p.lines) {
		text := p.lines[p.pos]
		p.pos++
		if strings.TrimSpace(text) == end {
			body := strings.Join(b, "\n")
			if p.count != "" {
				body = strings.ReplaceAll(body, "{{n}}", p.count)
			}
			return body, true
		}
		b = append(b, text)
	}
	return "", false
}

// block reads steps up to the end of the script or, inside repeat, to "}".
func (p *parser) block(open int) error {
	for {
		line, word, rest, ok, err := p.next()
		switch {
		case err != nil:
			return err
		case !ok && open > 0:
			return p.fail(open, "the } of this repeat is missing")
		case !ok:
			return nil
		case word == "}" && open > 0:
			return nil
		}
		if err := p.step(line, word, rest); err != nil {
			return err
		}
	}
}

// step reads one line.
func (p *parser) step(line int, word, rest string) error {
	if p.steps++; p.steps > maxSteps {
		return p.fail(line, "the script is longer than %d steps", maxSteps)
	}
	switch word {
	case "end":
		if !p.output {
			return p.fail(line, "end stands where no answer is open")
		}
		p.finish()
		return nil
	case "expect":
		return p.expect(line, rest)
	case "usage":
		p.begin(line)
		return p.usage(line, rest)
	case "rate":
		n, err := strconv.Atoi(rest)
		if err != nil || n < 0 {
			return p.fail(line, "rate wants a number of fragments a second, 0 for no limit; it has %q", rest)
		}
		p.rate = n
		return nil
	case "repeat":
		return p.repeat(line, rest)
	case "model":
		if rest == "" || p.began || len(p.script.answers) > 0 {
			return p.fail(line, "model wants a name and stands before the first answer")
		}
		p.script.models = append(p.script.models, rest)
		return nil
	}
	v, known := verbs[word]
	if !known {
		return p.fail(line, "unknown step %q; there are: %s", word, strings.Join(Steps(), ", "))
	}
	if v.speak && p.calls > 0 {
		p.finish()
	}
	p.begin(line)
	if v.alone && p.spoke() {
		return p.fail(line, "%s replaces a whole answer, but this one has begun; put end before it", word)
	}
	s, err := v.parse(p, line, rest)
	if err != nil {
		return err
	}
	p.now.steps = append(p.now.steps, placed{line: line, text: brief(word + " " + rest), step: s})
	p.output = true
	if v.ends {
		p.finish()
	}
	return nil
}

// Steps lists the words that can begin a line of a script, in order.
func Steps() []string {
	names := []string{"end", "expect", "usage", "rate", "repeat", "model"}
	for n := range verbs {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

func (p *parser) begin(line int) {
	if !p.began {
		p.began, p.now.line = true, line
	}
}

// spoke reports whether the answer has sent anything.
func (p *parser) spoke() bool {
	return slices.ContainsFunc(p.now.steps, func(s placed) bool {
		switch s.step.(type) {
		case waitStep, gateStep:
			return false
		}
		return true
	})
}

// finish closes the answer at hand.
func (p *parser) finish() {
	if p.began {
		p.script.answers = append(p.script.answers, p.now)
	}
	p.now, p.began, p.output, p.calls = answer{}, false, false, 0
}

func (p *parser) expect(line int, rest string) error {
	if p.output {
		p.finish()
	}
	p.begin(line)
	e, err := parseExpectation(rest)
	if err != nil {
		return p.fail(line, "%v", err)
	}
	e.line, e.text = line, brief("expect "+rest)
	p.now.wants = append(p.now.wants, e)
	return nil
}

func (p *parser) repeat(line int, rest string) error {
	num, brace, _ := strings.Cut(rest, " ")
	n, err := strconv.Atoi(num)
	if err != nil || n < 1 || n > maxRepeat || strings.TrimSpace(brace) != "{" {
		return p.fail(line, "write: repeat N {   with N from 1 to %d", maxRepeat)
	}
	start, outer := p.pos, p.count
	for i := 1; i <= n; i++ {
		p.pos, p.count = start, strconv.Itoa(i)
		if err := p.block(line); err != nil {
			return err
		}
	}
	p.count = outer
	return nil
}

func (p *parser) usage(line int, rest string) error {
	if rest == "none" {
		p.now.usage = usage{given: true, none: true}
		return nil
	}
	u := usage{given: true}
	for _, f := range strings.Fields(rest) {
		key, val, _ := strings.Cut(f, "=")
		n, err := strconv.Atoi(val)
		to := map[string]*int{"in": &u.in, "out": &u.out, "cached": &u.cached, "reasoning": &u.reasoning}[key]
		if err != nil || n < 0 || to == nil {
			return p.fail(line, "usage knows in=N out=N cached=N reasoning=N, or none; it has %q", f)
		}
		*to = n
	}
	p.now.usage = u
	return nil
}

// text reads a text argument: quoted, or as it stands.
func text(rest string) (string, error) {
	if rest == "" || (rest[0] != '"' && rest[0] != '`') {
		return rest, nil
	}
	s, err := strconv.Unquote(rest)
	if err != nil {
		return "", fmt.Errorf("a text that begins with %c must be one quoted text; quote the whole of it: %s", rest[0], brief(rest))
	}
	return s, nil
}

func brief(s string) string {
	const most = 80
	s = strings.TrimSpace(s)
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

func bare(s step) func(*parser, int, string) (step, error) {
	return func(p *parser, line int, rest string) (step, error) {
		if rest != "" {
			return nil, p.fail(line, "this step takes nothing after it; it has %q", rest)
		}
		return s, nil
	}
}

func (p *parser) some(line int, rest, what string) (string, error) {
	s, err := text(rest)
	if err != nil {
		return "", p.fail(line, "%v", err)
	}
	if s == "" {
		return "", p.fail(line, "%s", what)
	}
	return s, nil
}
