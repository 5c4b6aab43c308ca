package session

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func answer(turn string, calls ...string) Record {
	a := &Answer{}
	for _, c := range calls {
		a.Calls = append(a.Calls, Call{ID: c, Name: "x", Args: "{}"})
	}
	return ItemAdded{Turn: turn, Item: Item{ID: "i", Answer: a}}
}

func result(turn, call string) Record {
	return ItemAdded{Turn: turn, Item: Item{ID: "i", Result: &Result{Call: call, Outcome: OK}}}
}

func accept(id string) Record { return Accepted{Message: message(id, "")} }

// The last record of each row is refused for the reason given and changes
// nothing; an empty reason means that it is taken.
func TestApplyRefusesWhatCannotFollow(t *testing.T) {
	created := Created{ID: "s", Root: "/r"}
	run := []Record{created, accept("m"), TurnStarted{ID: "m"}}
	end := TurnEnded{Turn: "m", End: End{How: Completed}}
	after := func(base []Record, rs ...Record) []Record { return append(base[:len(base):len(base)], rs...) }
	for name, c := range map[string]struct {
		records []Record
		want    string
	}{
		"nothing created":           {[]Record{accept("m")}, "before the session is created"},
		"created twice":             {[]Record{created, created}, "created before"},
		"created without id":        {[]Record{Created{}}, "no id"},
		"message without id":        {[]Record{created, accept("")}, "no id"},
		"message queued twice":      {[]Record{created, accept("m"), accept("m")}, "accepted before"},
		"message of a turn":         {after(run, accept("m")), "accepted before"},
		"drop":                      {[]Record{created, accept("m"), Dropped{ID: "m"}}, ""},
		"drop of nothing":           {[]Record{created, Dropped{ID: "m"}}, "not in the queue"},
		"turn of nothing":           {[]Record{created, TurnStarted{ID: "m"}}, "not in the queue"},
		"second turn":               {after(run, end, accept("n"), TurnStarted{ID: "n"}), ""},
		"turn out of order":         {[]Record{created, accept("m"), accept("n"), TurnStarted{ID: "n"}}, ""},
		"turn within a turn":        {after(run, accept("n"), TurnStarted{ID: "n"}), "turn m has not ended"},
		"item without turn":         {[]Record{created, accept("m"), answer("m")}, "turn m is not running"},
		"item of another turn":      {after(run, answer("n")), "turn n is not running"},
		"item after the end":        {after(run, end, answer("m")), "turn m is not running"},
		"end twice":                 {after(run, end, end), "turn m is not running"},
		"empty item":                {after(run, ItemAdded{Turn: "m"}), "not exactly one"},
		"item of two kinds":         {after(run, ItemAdded{Turn: "m", Item: Item{Answer: &Answer{}, Note: &Note{}}}), "not exactly one"},
		"result":                    {after(run, answer("m", "c"), result("m", "c")), ""},
		"result without call":       {after(run, answer("m", "c"), result("m", "d")), "call d was not made"},
		"second result":             {after(run, answer("m", "c"), result("m", "c"), result("m", "c")), "has its result"},
		"id used again":             {after(run, answer("m", "c"), result("m", "c"), answer("m", "c"), result("m", "c")), ""},
		"id twice in one answer":    {after(run, answer("m", "c", "c"), result("m", "c"), result("m", "c")), ""},
		"start":                     {after(run, answer("m", "c"), CallStarted{Turn: "m", Call: "c"}), ""},
		"start without call":        {after(run, CallStarted{Turn: "m", Call: "c"}), "call c was not made"},
		"start after its result":    {after(run, answer("m", "c"), result("m", "c"), CallStarted{Turn: "m", Call: "c"}), "has its result"},
		"start twice":               {after(run, answer("m", "c"), CallStarted{Turn: "m", Call: "c"}, CallStarted{Turn: "m", Call: "c"}), "started before"},
		"start of another turn":     {after(run, answer("m", "c"), CallStarted{Turn: "n", Call: "c"}), "turn n is not running"},
		"title during a turn":       {after(run, Titled{Title: "t"}), ""},
		"message during a turn":     {after(run, accept("n")), ""},
		"drop of a message at work": {after(run, Dropped{ID: "m"}), "not in the queue"},
	} {
		t.Run(name, func(t *testing.T) {
			a := fold(t, c.records[:len(c.records)-1])
			before := fold(t, c.records[:len(c.records)-1])
			err := a.Apply(c.records[len(c.records)-1])
			switch {
			case c.want == "":
				must(t, err)
			case err == nil || !strings.Contains(err.Error(), c.want):
				t.Errorf("error: %v", err)
			default:
				if diff := cmp.Diff(before, a, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("a refused record changed (-before +after):\n%s", diff)
				}
			}
		})
	}
}

func fold(t *testing.T, rs []Record) *Archive {
	t.Helper()
	a := &Archive{}
	for _, r := range rs {
		must(t, a.Apply(r))
	}
	return a
}
