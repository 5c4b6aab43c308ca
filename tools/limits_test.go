package tools

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func plainTool(t *testing.T, s Spec, run func(ctx context.Context) (string, error)) Tool {
	t.Helper()
	tool, err := New(s, func(ctx context.Context, _ struct{}, _ *IO) (Output, error) {
		text, err := run(ctx)
		return Output{Text: text}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

// Whatever a tool hands over is text of bounded size, its errors too: the log
// holds no other, and history in memory and on disk must agree.
func TestWhatAToolHandsOverIsBoundedText(t *testing.T) {
	long := strings.Repeat("x", 2*maxOutput)
	for name, text := range map[string]string{"long": long, "not UTF-8": "a\xffb", "cut inside a rune": strings.Repeat("é", maxOutput)} {
		for _, fail := range []bool{false, true} {
			tool := plainTool(t, Spec{Name: "read_file", Tier: Read}, func(context.Context) (string, error) {
				if fail {
					return "", errors.New(text)
				}
				return text, nil
			})
			r, _ := runner(t, Build, Config{}, tool)
			res := r.Invoke(t.Context(), Call{ID: "1", Name: "read_file"})
			got := res.Text()
			if !utf8.ValidString(got) || len(got) > maxOutput+100 || len(got) < min(3, len(text)) {
				t.Errorf("%s, failed %v: %d bytes, valid %v", name, fail, len(got), utf8.ValidString(got))
			}
		}
	}
}

// A call that waits for the person overlaps no other, although it only reads.
func TestExclusiveCallsStandAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running, most := 0, 0
		sleep := func(context.Context) (string, error) {
			running++
			most = max(most, running)
			time.Sleep(time.Second)
			running--
			return "", nil
		}
		r, _ := runner(t, Build, Config{}, plainTool(t, Spec{Name: "ask_user", Tier: Read, Exclusive: true}, sleep), plainTool(t, Spec{Name: "read_file", Tier: Read}, sleep))
		done := make(chan struct{}, 3)
		for _, name := range []string{"ask_user", "read_file", "ask_user"} {
			go func() {
				r.Invoke(t.Context(), Call{ID: name, Name: name})
				done <- struct{}{}
			}()
			synctest.Wait()
		}
		for range 3 {
			<-done
		}
		if most != 1 {
			t.Errorf("%d calls overlapped", most)
		}
	})
}

// A tool that returns in time is never called late, also when it returns at the
// very moment at which its context ends.
func TestToolThatReturnsInTimeIsNotCalledLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.DebugLevel)
		tool := plainTool(t, Spec{Name: "read_file", Tier: Read}, func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", context.Cause(ctx)
		})
		r, _ := runner(t, Build, Config{Log: zap.New(core)}, tool)
		for range 200 {
			ctx, cancel := context.WithCancel(t.Context())
			go cancel()
			if res := r.Invoke(ctx, Call{ID: "1", Name: "read_file"}); res.Outcome != Interrupted && res.Outcome != NotRun {
				t.Fatalf("outcome %s", res.Outcome)
			}
		}
		time.Sleep(2 * lateAfter)
		if logs.Len() > 0 {
			t.Errorf("%d times: %v", logs.Len(), logs.All()[0].Message)
		}
	})
}
