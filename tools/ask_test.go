package tools

import (
	"context"
	"errors"
	"strings"
	"testing"
)

type person struct {
	answer Answer
	err    error
	asked  Question
}

func (p *person) Ask(_ context.Context, q Question) (Answer, error) {
	p.asked = q
	return p.answer, p.err
}

// covers CONV-8 partly
func TestAskUser(t *testing.T) {
	ask, err := NewAsk()
	if err != nil {
		t.Fatal(err)
	}
	const two = `{"question":"which?","options":[{"label":"red"},{"label":"blue"}],"multi_select":true}`
	for _, c := range []struct {
		name, args string
		p          *person
		outcome    Outcome
		want       string
	}{
		{"chosen", two, &person{answer: Answer{Chosen: []int{1}}}, OK, "blue"},
		{"two chosen", two, &person{answer: Answer{Chosen: []int{0, 1}}}, OK, "red"},
		{"free text", `{"question":"why?"}`, &person{answer: Answer{Text: "because"}}, OK, "because"},
		{"a skip is a success", two, &person{answer: Answer{Skipped: true}}, OK, "do not ask again"},
		{"nobody connected", two, &person{err: ErrNobody}, Failed, "safest assumption"},
		{"stopped", two, &person{err: errors.New("stopped")}, Failed, "Not answered"},
		{"empty question", `{"question":" "}`, &person{}, Failed, "empty"},
		{"option without a label", `{"question":"q","options":[{"label":""}]}`, &person{}, Failed, "no label"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, _ := runner(t, Build, Config{Asker: c.p}, ask)
			res := r.Invoke(t.Context(), Call{ID: "7", Name: "ask_tool", Args: c.args})
			if res.Outcome != c.outcome || !strings.Contains(res.Text(), c.want) {
				t.Errorf("%s: %s", res.Outcome, res.Text())
			}
			if c.outcome == OK && c.p.asked.Call != "7" {
				t.Errorf("asked %+v", c.p.asked)
			}
		})
	}
	r, _ := runner(t, Build, Config{}, ask)
	if res := r.Invoke(t.Context(), Call{Name: "ask_user", Args: two}); res.Outcome != Failed {
		t.Errorf("without an asker: %s", res.Outcome)
	}
}
