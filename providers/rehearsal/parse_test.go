package rehearsal

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// outline shows a script as the parser understood it: one line per answer.
func outline(s Script) []string {
	var out []string
	for _, a := range s.answers {
		var parts []string
		for _, e := range a.wants {
			parts = append(parts, "?"+e.subject)
		}
		for _, p := range a.steps {
			switch st := p.step.(type) {
			case callStep:
				parts = append(parts, fmt.Sprintf("%s#%s%s", st.name, st.id, st.args))
			case sayStep:
				parts = append(parts, fmt.Sprintf("%s %q", st.field[:4], st.text))
			default:
				parts = append(parts, fmt.Sprintf("%T%+v", st, st))
			}
		}
		out = append(out, strings.ReplaceAll(strings.Join(parts, " | "), "rehearsal.", ""))
	}
	return out
}

func TestScriptIsCutIntoAnswers(t *testing.T) {
	check := func(name, text string, want ...string) {
		t.Helper()
		s, err := Parse(name, text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		if d := cmp.Diff(want, outline(s)); d != "" {
			t.Errorf("%s: (-want +got)\n%s", name, d)
		}
	}
	check("text before calls is one answer", "think a\nsay b\ncall f {}\ncall g {\"x\": 1}",
		`reas "a" | cont "b" | f#call_1_1{} | g#call_1_2{"x": 1}`)
	check("text after calls begins the next", "call f {}\nsay b", `f#call_1_1{}`, `cont "b"`)
	check("expect after output begins the next", "call f {}\nexpect result contains x\ncall g {}",
		`f#call_1_1{}`, `?result | g#call_2_1{}`)
	check("end separates calls", "call f {}\nend\ncall f {}", `f#call_1_1{}`, `f#call_2_1{}`)
	check("breaking steps end an answer", "stall\ncut\nsay x\nlength\neof",
		`stallStep{}`, `cutStep{}`, `cont "x" | finishStep{reason:length}`, `eofStep{}`)
	check("wait and gate stay in their answer", "wait 20ms\ngate g\nsay x", `waitStep{d:20000000} | gateStep{name:g} | cont "x"`)
	check("repeat counts", "repeat 2 {\ncall f {\"n\": {{n}}}\nend\n}\nsay x",
		`f#call_1_1{"n": 1}`, `f#call_2_1{"n": 2}`, `cont "x"`)
	check("repeat inside one answer", "repeat 2 {\ncall f {}\n}", `f#call_1_1{} | f#call_1_2{}`)
	check("texts", "say \"a\\nb\"\nsay `c\"`\nsay <<EOF\n# not a comment\n  }\nEOF\nsay it says \"d\"",
		`cont "a\nb" | cont "c\"" | cont "# not a comment\n  }" | cont "it says \"d\""`)
	check("call arguments over lines", "call f id=x <<EOF\n{\n}\nEOF\nrawcall g {", "f#x{\n} | g#call_1_2{")
	check("Windows line ends and comments", "# hello\r\n\r\nsay x\r\n", `cont "x"`)
}

func TestMistakesInAScriptNameTheLine(t *testing.T) {
	check := func(text string, line int, say string) {
		t.Helper()
		_, err := Parse("s", text)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%q: error %v, want a mistake that says %q", text, err, say)
			return
		}
		if e.Line != line || !strings.Contains(e.Text, say) {
			t.Errorf("%q: got line %d: %s; want line %d and %q", text, e.Line, e.Text, line, say)
		}
	}
	check("", 1, "no answer")
	check("say x\nshout y", 2, `unknown step "shout"; there are: `)
	check("say", 1, "wants a text")
	check("say \"a\" b", 1, "quote the whole")
	check("say <<END\nx", 1, "no line holds only END")
	check("call f {", 1, "not JSON; rawcall")
	check("call", 1, "name of a tool")
	check("\nexpect user contains x", 2, "says nothing")
	check("expect person contains x", 1, "expect looks at user")
	check("expect user has x\nsay y", 1, "wants contains, lacks")
	check("expect user contains\nsay y", 1, "wants a text")
	check("expect user[2] contains x\nsay y", 1, "only result takes a number")
	check("expect user matches (\nsay y", 1, "missing closing")
	check("end", 1, "no answer is open")
	check("wait long", 1, "such as 200ms")
	check("gate a\ngate a\nsay x", 2, "line 1 has a gate")
	check("gate two words", 1, "one word")
	check("say x\nstatus 500", 2, "put end before it")
	check("status abc", 1, "from 200 to 599")
	check("bomb big", 1, "such as 1GiB")
	check("bomb 65GiB", 1, "at most 64GiB")
	check("tokens 0", 1, "from 1 to")
	check("rate fast\nsay x", 1, "rate wants a number")
	check("usage in=x\nsay x", 1, "usage knows in=N")
	check("stall now", 1, "takes nothing after it")
	check("say x\nmodel y", 2, "before the first answer")
	check("repeat 2\nsay x", 1, "write: repeat N {")
	check("repeat 2 {\nsay x", 1, "the } of this repeat")
	check("repeat 100000 {\nrepeat 100000 {\nsay x\n}\n}", 3, "longer than")
	check("}", 1, `unknown step "}"`)
	check("finish", 1, "wants a reason")
}

func TestManualExplainsEveryStep(t *testing.T) {
	for _, name := range Steps() {
		if !strings.Contains(Manual(), "\n`"+name) && !strings.Contains(Manual(), ", `"+name) {
			t.Errorf("the manual does not explain the step %s", name)
		}
	}
	for _, name := range append(subjects, judges...) {
		if !strings.Contains(Manual(), name) {
			t.Errorf("the manual does not name %s of expect", name)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(tour)
	f.Add("repeat 2 {\ncall f <<E\n{}\nE\n}\nexpect result[1] is \"x\"\nstatus 429 retry-after=1 {}")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Count(text, "repeat") > 1 {
			return // millions of steps are refused, but slowly
		}
		s, err := Parse("fuzz", text)
		if err == nil && s.Answers() == 0 {
			t.Errorf("accepted a script without an answer: %q", text)
		}
		for _, a := range s.answers {
			if len(a.steps) == 0 {
				t.Errorf("an answer without a step: %q", text)
			}
		}
	})
}
