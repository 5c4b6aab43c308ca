package rehearsal

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// expectation is one thing that a request must be.
type expectation struct {
	line    int
	text    string // as written
	subject string
	index   int // of result[N]; 0 for any
	verb    string
	want    string
	pattern *regexp.Regexp
}

var (
	subjects = []string{"user", "result", "results", "system", "tools", "model", "body"}
	judges   = []string{"contains", "lacks", "is", "matches"}
)

func parseExpectation(rest string) (expectation, error) {
	var e expectation
	e.subject, rest, _ = strings.Cut(rest, " ")
	if name, num, ok := strings.Cut(strings.TrimSuffix(e.subject, "]"), "["); ok {
		n, err := strconv.Atoi(num)
		if err != nil || n < 1 || name != "result" {
			return e, fmt.Errorf("only result takes a number, from 1, as in result[2]; this is %q", e.subject)
		}
		e.subject, e.index = name, n
	}
	if !slices.Contains(subjects, e.subject) {
		return e, fmt.Errorf("expect looks at %s; not at %q", strings.Join(subjects, ", "), e.subject)
	}
	e.verb, rest, _ = strings.Cut(strings.TrimSpace(rest), " ")
	if !slices.Contains(judges, e.verb) {
		return e, fmt.Errorf("expect %s wants %s after it; it has %q", e.subject, strings.Join(judges, ", "), e.verb)
	}
	var err error
	if e.want, err = text(strings.TrimSpace(rest)); err != nil {
		return e, err
	}
	if e.want == "" && e.verb != "is" {
		return e, fmt.Errorf("expect %s %s wants a text after it", e.subject, e.verb)
	}
	if e.verb == "matches" {
		if e.pattern, err = regexp.Compile(e.want); err != nil {
			return e, err
		}
	}
	return e, nil
}

// check returns nil when the request is as expected.
func (e expectation) check(r *Request, c *Chat) error {
	values, what := e.values(r, c)
	holds := func(v string) bool {
		switch e.verb {
		case "is":
			return v == e.want
		case "matches":
			return e.pattern.MatchString(v)
		}
		if e.subject == "tools" {
			return v == e.want
		}
		return strings.Contains(v, e.want)
	}
	found := slices.ContainsFunc(values, holds)
	if e.verb == "lacks" {
		// Nothing to look at would make lacks true by accident.
		if !found && (len(values) > 0 || e.subject == "tools") {
			return nil
		}
	} else if found {
		return nil
	}
	if len(values) == 0 {
		return fmt.Errorf("%s: the request has no %s", e.text, what)
	}
	return fmt.Errorf("%s: the %s of the request: %s", e.text, what, excerpt(values, e.want))
}

// values returns what the expectation looks at, one of which must hold.
func (e expectation) values(r *Request, c *Chat) (values []string, what string) {
	switch e.subject {
	case "user":
		if text, ok := c.User(); ok {
			values = []string{text}
		}
		return values, "user message"
	case "result":
		all := c.Results()
		if e.index == 0 {
			return all, "result"
		}
		if e.index <= len(all) {
			values = all[e.index-1 : e.index]
		}
		return values, fmt.Sprintf("result %d (of %d)", e.index, len(all))
	case "results":
		return []string{strconv.Itoa(len(c.Results()))}, "number of results"
	case "system":
		return []string{c.System()}, "system prompt"
	case "tools":
		for _, t := range c.Offered {
			values = append(values, t.Name)
		}
		return values, "tools"
	case "model":
		return []string{c.Model}, "model"
	case "body":
		return []string{string(r.Body)}, "body"
	}
	panic("rehearsal: unknown subject " + e.subject) // parseExpectation lets none through
}

// excerpt shows values in bounded space; with the place where want stands, if
// it does.
func excerpt(values []string, want string) string {
	const most = 400 // bytes a value
	var out []string
	for _, v := range values {
		if len(v) > most {
			at := max(strings.Index(v, want), 0)
			from := max(at-most/2, 0)
			to := min(from+most, len(v))
			v = strings.ToValidUTF8(v[from:to], "") + fmt.Sprintf(" … (%d bytes in all)", len(v))
		}
		out = append(out, strconv.Quote(v))
	}
	return strings.Join(out, ", ")
}
