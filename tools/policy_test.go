package tools

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A tool's own policy comes before a person is asked and before the start is
// recorded; what it lets through takes the usual steps.
func TestAPolicyRefusesBeforeAnybodyIsAsked(t *testing.T) {
	bash, err := New(Spec{Name: "bash", Tier: Exec}, func(context.Context, pathArgs, *IO) (Output, error) { return Output{Text: "ran"}, nil })
	if err != nil {
		t.Fatal(err)
	}
	guarded := WithPolicy(bash, func(in pathArgs) *Error {
		if in.Path == "bad" {
			return Errorf(NotAllowed, "Use another.", "Not run: bad.")
		}
		return nil
	})
	var steps []string
	r, log := runner(t, Plan, Config{
		Approve: func(context.Context, Call, Spec) (bool, error) { steps = append(steps, "asked"); return true, nil },
		Before:  func(context.Context, Call, Spec) error { steps = append(steps, "recorded"); return nil },
	}, guarded)
	if got := r.Invoke(t.Context(), Call{ID: "1", Name: "bash", Args: `{"path":"bad"}`}); got.Outcome != Refused || got.Text() != "Not run: bad.\nUse another." || steps != nil {
		t.Errorf("%s %q after %v", got.Outcome, got.Text(), steps)
	}
	if got := r.Invoke(t.Context(), Call{ID: "2", Name: "bash", Args: `{"path":"good"}`}); got.Outcome != OK {
		t.Errorf("%s %q", got.Outcome, got.Text())
	}
	if d := cmp.Diff([]string{"asked", "recorded"}, steps); d != "" {
		t.Errorf("steps (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"ended 1 refused", "started 2", "ended 2 ok"}, log.lines); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
}
