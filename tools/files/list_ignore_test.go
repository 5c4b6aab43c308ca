package files

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/lakecode/lakecode/tools"
)

// ruled gives the tools of a desk ignore rules.
func (d *desk) ruled(ignored func(ctx context.Context, dir string, paths []string) (map[string]bool, error)) {
	d.t.Helper()
	ts, err := Tools(Config{Workspace: d.w, Ignored: ignored})
	must(d.t, err)
	var reg tools.Registry
	must(d.t, reg.Add(ts...))
	d.runner = tools.NewRunner(tools.Config{View: reg.View(tools.Build), Observer: silent{}, Log: zap.NewNop()})
}

// covers TOOL-14 partly
func TestListLeavesOutWhatIsIgnored(t *testing.T) {
	d := open(t, map[string]string{"a": "1", "a.log": "", "sub/b": "", "sub/b.log": "", "sub/deep/c": "", "gen/x": "", "gen/deep/y": "", "only/z.log": "", "bin/x.log": ""})
	type asked struct {
		dir   string
		paths []string
	}
	var calls []asked
	d.ruled(func(_ context.Context, dir string, paths []string) (map[string]bool, error) {
		calls = append(calls, asked{strings.TrimPrefix(dir, d.w.Root()), slices.Clone(paths)})
		out := map[string]bool{}
		for _, p := range paths {
			out[p] = strings.HasSuffix(p, ".log") || p == "gen"
		}
		return out, nil
	})
	for _, c := range []struct {
		in   args
		want string
	}{
		{args{}, ".: 3 entries (not shown: bin; 2 ignored entries not shown)\nonly/\nsub/\na  1"},
		{args{"depth": 3}, ".: 6 entries (not shown: bin; 4 ignored entries not shown)\nonly/\nsub/\n  deep/\n    c  0\n  b  0\na  1"},
		{args{"path": "only"}, "only: 0 entries (1 ignored entry not shown)"},
		{args{"path": "gen", "depth": 2}, "gen: 3 entries\ndeep/\n  y  0\nx  0"},
	} {
		calls = nil
		if diff := cmp.Diff(c.want, d.ok("list_directory", c.in)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c.in, diff)
		}
		if depth, _ := c.in["depth"].(int); len(calls) != max(1, depth) {
			t.Errorf("%v: the rules were asked %d times", c.in, len(calls))
		}
	}
	d.ok("list_directory", args{"path": "sub", "depth": 2})
	want := []asked{{"/sub", []string{"deep", "b", "b.log"}}, {"/sub", []string{"deep/c"}}}
	if diff := cmp.Diff(want, calls[len(calls)-2:], cmp.AllowUnexported(asked{})); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

func TestAListWithoutRulesSaysSo(t *testing.T) {
	d := open(t, map[string]string{"a": "", "sub/b": ""})
	d.ruled(func(context.Context, string, []string) (map[string]bool, error) {
		return nil, errors.New("git is not installed")
	})
	want := ".: 3 entries\n[the ignore rules were not applied: git is not installed]\nsub/\n  b  0\na  0"
	if diff := cmp.Diff(want, d.ok("list_directory", args{"depth": 2})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAListEndsWhenItIsStoppedWhileItAsks(t *testing.T) {
	d := open(t, map[string]string{"a": ""})
	ctx, cancel := context.WithCancelCause(t.Context())
	b := &box{w: d.w, ignored: func(ctx context.Context, _ string, _ []string) (map[string]bool, error) {
		cancel(errors.New("stopped by the person"))
		return nil, context.Cause(ctx)
	}}
	if _, err := b.list(ctx, listIn{}, nil); !is(err, tools.Cancelled) || !strings.Contains(err.Error(), "stopped by the person") {
		t.Errorf("error %v", err)
	}
}

// Many ignored entries neither hide what comes after them nor are they all asked
// about when there is enough to show.
func TestIgnoredEntriesDoNotUseUpTheLimit(t *testing.T) {
	d := open(t, nil)
	for i := range 3000 {
		must(t, os.WriteFile(d.abs(fmt.Sprintf("f%04d", i)), nil, 0o644))
	}
	var asked int
	from := "f1200"
	d.ruled(func(_ context.Context, _ string, paths []string) (map[string]bool, error) {
		asked += len(paths)
		out := map[string]bool{}
		for _, p := range paths {
			out[p] = p < from
		}
		return out, nil
	})
	text := d.ok("list_directory", args{}, ".: 500 entries (1200 ignored entries not shown)\nf1200  0\n", "f1699  0\n[cut after 500 entries")
	if strings.Contains(text, "f1700") || asked != 2000 {
		t.Errorf("asked about %d:\n%s", asked, text)
	}
	from = "f2990"
	d.ok("list_directory", args{}, ".: 10 entries (2990 ignored entries not shown)\nf2990  0\n")
}
