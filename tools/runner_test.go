package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

type logbook struct {
	mu    sync.Mutex
	lines []string
}

func (l *logbook) add(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}
func (l *logbook) Started(c Call, _ Spec)                  { l.add("started %s", c.ID) }
func (l *logbook) Progress(c Call, s string)               { l.add("progress %s %s", c.ID, s) }
func (l *logbook) Ended(c Call, r Result, _ time.Duration) { l.add("ended %s %s", c.ID, r.Outcome) }

func runner(t *testing.T, role Role, c Config, ts ...Tool) (*Runner, *logbook) {
	t.Helper()
	var reg Registry
	if err := reg.Add(ts...); err != nil {
		t.Fatal(err)
	}
	l := &logbook{}
	c.View, c.Observer = reg.View(role), l
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	return NewRunner(c), l
}

type pathArgs struct {
	Path  string   `json:"path" jsonschema:"a path"`
	Count int      `json:"count,omitempty"`
	List  []string `json:"list,omitempty"`
}

func TestArgumentsAreCheckedBeforeAnythingRuns(t *testing.T) {
	ran := 0
	read, err := New(Spec{Name: "read_file", Tier: Read}, func(_ context.Context, in pathArgs, _ *IO) (Output, error) {
		ran++
		return Output{Text: in.Path}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	r, _ := runner(t, Build, Config{}, read)
	for args, want := range map[string]string{
		`{"path":"a"`:              "not valid JSON",
		`{"path":"a"} {}`:          "not valid JSON",
		`[]`:                       "one JSON object",
		`null`:                     "one JSON object",
		`{"pth":"a"}`:              `no argument "pth"`,
		`{}`:                       "path",
		``:                         "path",
		`{"path":7}`:               "path",
		`{"path":"a","count":"x"}`: "count",
		`{"path":"a","count":1.5}`: "count",
	} {
		res := r.Invoke(t.Context(), Call{ID: "1", Name: "read_file", Args: args})
		if res.Outcome != Refused || res.Err.Code != BadArguments || !strings.Contains(res.Err.Text, want) {
			t.Errorf("%s: %s %+v", args, res.Outcome, res.Err)
		}
	}
	if ran != 0 {
		t.Fatalf("the tool ran %d times", ran)
	}
	if res := r.Invoke(t.Context(), Call{Name: "read_file", Args: `{"path":"a","list":["x"],"count":3}`}); res.Outcome != OK {
		t.Errorf("good arguments: %+v", res.Err)
	}
}

func TestToolOutsideTheViewIsUnknown(t *testing.T) {
	r, log := runner(t, Plan, Config{}, tool(t, Spec{Name: "write_file", Tier: Write}, nil), tool(t, Spec{Name: "read_file", Tier: Read}, nil))
	res := r.Invoke(t.Context(), Call{ID: "1", Name: "write_file"})
	if res.Outcome != Refused || res.Err.Code != UnknownTool || !strings.Contains(res.Err.Next, "read_file") {
		t.Errorf("%+v", res.Err)
	}
	if d := cmp.Diff([]string{"ended 1 refused"}, log.lines); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
}

type described struct {
	Description string `json:"description,omitempty"`
}

// covers PLAN-1 partly
func TestBlankDescriptionIsRefused(t *testing.T) {
	bash, err := New(Spec{Name: "bash", Tier: Exec, NeedsDescription: true}, func(context.Context, described, *IO) (Output, error) { return Output{}, nil })
	if err != nil {
		t.Fatal(err)
	}
	r, _ := runner(t, Build, Config{}, bash)
	for args, want := range map[string]Outcome{`{}`: Refused, `{"description":" \n"}`: Refused, `{"description":"build it"}`: OK} {
		if res := r.Invoke(t.Context(), Call{Name: "bash", Args: args}); res.Outcome != want {
			t.Errorf("%s: %s", args, res.Outcome)
		}
	}
}

func TestEveryCallIsApprovedAnew(t *testing.T) {
	answers := []bool{true, false, true}
	asked := 0
	c := Config{Approve: func(context.Context, Call, Spec) (bool, error) { asked++; return answers[asked-1], nil }}
	r, log := runner(t, Plan, c, tool(t, Spec{Name: "bash", Tier: Exec}, nil))
	for i := range answers {
		r.Invoke(t.Context(), Call{ID: fmt.Sprint(i), Name: "bash"})
	}
	if d := cmp.Diff([]string{"started 0", "ended 0 ok", "ended 1 refused", "started 2", "ended 2 ok"}, log.lines); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
	none, _ := runner(t, Plan, Config{}, tool(t, Spec{Name: "bash", Tier: Exec}, nil))
	if res := none.Invoke(t.Context(), Call{Name: "bash"}); res.Outcome != Refused {
		t.Errorf("without an approver: %s", res.Outcome)
	}
}

func TestStartOfACallWithEffectsIsRecordedFirst(t *testing.T) {
	var order []string
	note := func(s string) func(context.Context, noArgs, *IO) (Output, error) {
		return func(context.Context, noArgs, *IO) (Output, error) { order = append(order, s); return Output{}, nil }
	}
	full := false
	c := Config{Before: func(_ context.Context, c Call, _ Spec) error {
		if full {
			return errors.New("no space left on device")
		}
		order = append(order, "record "+c.Name)
		return nil
	}}
	r, _ := runner(t, Build, c, tool(t, Spec{Name: "bash", Tier: Exec}, note("bash")), tool(t, Spec{Name: "read_file", Tier: Read}, note("read")))
	r.Invoke(t.Context(), Call{Name: "read_file"})
	r.Invoke(t.Context(), Call{Name: "bash"})
	full = true
	if res := r.Invoke(t.Context(), Call{Name: "bash"}); res.Outcome != NotRun || !strings.Contains(res.Text(), "no space") {
		t.Errorf("%s %s", res.Outcome, res.Text())
	}
	if d := cmp.Diff([]string{"read", "record bash", "bash"}, order); d != "" {
		t.Errorf("order (-want +got):\n%s", d)
	}
}

func TestReadsOverlapAndOthersExclude(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		running, most := map[Tier]int{}, map[Tier]int{}
		enter := func(tier Tier) func(context.Context, noArgs, *IO) (Output, error) {
			return func(context.Context, noArgs, *IO) (Output, error) {
				mu.Lock()
				running[tier]++
				most[tier] = max(most[tier], running[tier])
				if tier == Exec && running[Read] > 0 || tier == Read && running[Exec] > 0 {
					t.Error("a read call overlaps an exec call")
				}
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				running[tier]--
				mu.Unlock()
				return Output{}, nil
			}
		}
		r, _ := runner(t, Build, Config{}, tool(t, Spec{Name: "read_file", Tier: Read}, enter(Read)), tool(t, Spec{Name: "bash", Tier: Exec}, enter(Exec)))
		var wg sync.WaitGroup
		for i := range 30 {
			name := "read_file"
			if i%5 == 0 {
				name = "bash"
			}
			wg.Go(func() { r.Invoke(t.Context(), Call{Name: name}) })
		}
		wg.Wait()
		if most[Exec] != 1 || most[Read] < 2 || most[Read] > laneWidth {
			t.Errorf("at once: %v", most)
		}
	})
}

func TestNestedCallsEnterALaneOfTheirOwn(t *testing.T) {
	var r *Runner
	outer := tool(t, Spec{Name: "eval", Tier: Exec}, func(ctx context.Context, _ noArgs, io *IO) (Output, error) {
		res := io.Invoke(ctx, Call{ID: "inner", Name: "bash", Origin: FromCell, Parent: io.Call.ID})
		return Output{Text: "inner " + string(res.Outcome)}, nil
	})
	r, log := runner(t, Build, Config{}, outer, tool(t, Spec{Name: "bash", Tier: Exec}, nil))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if res := r.Invoke(ctx, Call{ID: "outer", Name: "eval"}); res.Text() != "inner ok" {
		t.Errorf("%s %s", res.Outcome, res.Text())
	}
	if d := cmp.Diff([]string{"started outer", "started inner", "ended inner ok", "ended outer ok"}, log.lines); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
}

func TestCancelledCallsStillEndOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := func(ctx context.Context, _ noArgs, _ *IO) (Output, error) {
			<-ctx.Done()
			return Output{}, context.Cause(ctx)
		}
		r, log := runner(t, Build, Config{}, tool(t, Spec{Name: "bash", Tier: Exec}, hang))
		ctx, cancel := context.WithCancelCause(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { r.Invoke(ctx, Call{ID: "1", Name: "bash"}) })
		synctest.Wait()
		wg.Go(func() { r.Invoke(ctx, Call{ID: "2", Name: "bash"}) })
		synctest.Wait()
		cancel(errors.New("stopped"))
		wg.Wait()
		got := map[string]bool{}
		for _, l := range log.lines {
			got[l] = true
		}
		if !got["ended 1 interrupted"] || !got["ended 2 notRun"] || len(log.lines) != 3 {
			t.Errorf("events: %v", log.lines)
		}
	})
}

func TestPanicOfAToolIsAnErrorResult(t *testing.T) {
	core, logs := observer.New(zap.ErrorLevel)
	boom := tool(t, Spec{Name: "bash", Tier: Exec}, func(context.Context, noArgs, *IO) (Output, error) { panic("boom") })
	r, _ := runner(t, Build, Config{Log: zap.New(core)}, boom)
	res := r.Invoke(t.Context(), Call{Name: "bash"})
	if res.Outcome != Failed || res.Err.Code != Internal || strings.Contains(res.Text(), "boom") {
		t.Errorf("%s %s", res.Outcome, res.Text())
	}
	if logs.Len() != 1 || logs.All()[0].ContextMap()["stack"] == nil {
		t.Errorf("logged %v", logs.All())
	}
	if res := r.Invoke(t.Context(), Call{Name: "bash"}); res.Err.Code != Internal {
		t.Error("the lane was not released")
	}
}

func TestLateToolIsWaitedForAndLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.ErrorLevel)
		slow := tool(t, Spec{Name: "bash", Tier: Exec}, func(ctx context.Context, _ noArgs, _ *IO) (Output, error) {
			<-ctx.Done()
			time.Sleep(2 * lateAfter)
			return Output{}, context.Cause(ctx)
		})
		r, _ := runner(t, Build, Config{Log: zap.New(core)}, slow)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		began := time.Now()
		r.Invoke(ctx, Call{Name: "bash"})
		if took := time.Since(began); took != time.Second+2*lateAfter {
			t.Errorf("returned after %s", took)
		}
		if logs.FilterMessage("bug: tool is late").Len() != 1 {
			t.Errorf("logged %v", logs.All())
		}
	})
}

func TestCallsAfterTheEndOfTheTurnAreRefused(t *testing.T) {
	end := tool(t, Spec{Name: "submit_plan", Tier: Read}, func(context.Context, noArgs, *IO) (Output, error) { return Output{EndTurn: true}, nil })
	r, _ := runner(t, Plan, Config{}, end, tool(t, Spec{Name: "read_file", Tier: Read}, nil))
	if res := r.Invoke(t.Context(), Call{Name: "submit_plan"}); !res.Output.EndTurn {
		t.Fatalf("%+v", res)
	}
	if res := r.Invoke(t.Context(), Call{Name: "read_file"}); res.Outcome != Refused {
		t.Errorf("%+v", res)
	}
}

func TestOutputIsBounded(t *testing.T) {
	big := tool(t, Spec{Name: "read_file", Tier: Read}, func(context.Context, noArgs, *IO) (Output, error) {
		return Output{Text: strings.Repeat("ü", maxOutput)}, nil
	})
	r, _ := runner(t, Build, Config{}, big)
	res := r.Invoke(t.Context(), Call{Name: "read_file"})
	if n := len(res.Text()); n > maxOutput+100 || !strings.Contains(res.Text(), "[cut:") {
		t.Errorf("%d bytes", n)
	}
}

func TestSchemasAreObjectsWithoutNull(t *testing.T) {
	tl, err := New(Spec{Name: "x"}, func(context.Context, pathArgs, *IO) (Output, error) { return Output{}, nil })
	if err != nil {
		t.Fatal(err)
	}
	s := string(tl.Spec().Schema)
	if strings.Contains(s, "null") || !strings.Contains(s, `"additionalProperties":false`) || !strings.Contains(s, `"required":["path"]`) {
		t.Errorf("schema %s", s)
	}
}
