package tools

import (
	"context"
	"slices"
	"strings"
	"testing"
)

type noArgs struct{}

func tool(t *testing.T, s Spec, run func(context.Context, noArgs, *IO) (Output, error)) Tool {
	t.Helper()
	if run == nil {
		run = func(context.Context, noArgs, *IO) (Output, error) { return Output{Text: "ran"}, nil }
	}
	out, err := New(s, run)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The catalogue of spec 00: tool, tier, and who may have it.
const catalogue = `
read_file             read  Build Plan Research
list_directory        read  Build Plan Research
search_text           read  Build Plan Research
find_files            read  Build Plan Research
outline_file          read  Build Plan Research
trace_code            read  Build Plan Research
write_file            write Build Research
edit_file             write Build
apply_patch           write Build
lsp                   read  Build Plan
lsp_rename            write Build
ast_grep              read  Build Plan
ast_edit              write Build
resolve               write Build
debug                 exec  Build
eval                  exec  Build Plan!
bash                  exec  Build Plan!
ask_user              read  Build Plan Research
submit_plan           read  Plan
list_history          read  Build Plan Research
search_history        read  Build Plan Research
read_history          read  Build Plan Research
delegate              read  Build Plan
wait_subagents        read  Build Plan
send_subagent_message read  Build Plan
load_skill            read  Build Plan
search_mcp_tools      read  Build
generate_image        write Build Research
web_search            read  Build Plan Research
read_web              read  Build Plan Research`

func TestRolesAreTheCatalogue(t *testing.T) {
	want := map[string]Role{"Build": {}, "Plan": {}, "Research": {}}
	for line := range strings.Lines(strings.TrimSpace(catalogue)) {
		f := strings.Fields(line)
		for _, role := range f[2:] {
			terms := Free
			if name, ok := strings.CutSuffix(role, "!"); ok {
				role, terms = name, AskEachTime
			}
			want[role][f[0]] = terms
		}
	}
	for name, got := range map[string]Role{"Build": Build, "Plan": Plan, "Research": Research} {
		for tool, terms := range want[name] {
			if got[tool] != terms {
				t.Errorf("%s: %s has terms %d, want %d", name, tool, got[tool], terms)
			}
		}
		for tool := range got {
			if want[name][tool] == 0 {
				t.Errorf("%s may have %s", name, tool)
			}
		}
	}
}

func TestViewHoldsWhatTheRoleMayHaveInOrder(t *testing.T) {
	var reg Registry
	err := reg.Add(
		tool(t, Spec{Name: "write_file", Aliases: []string{"write"}, Tier: Write}, nil),
		tool(t, Spec{Name: "bash", Tier: Exec}, nil),
		tool(t, Spec{Name: "read_file", Aliases: []string{"read"}, Tier: Read}, nil),
		tool(t, Spec{Name: "unlisted", Tier: Read}, nil),
	)
	if err != nil {
		t.Fatal(err)
	}
	for role, want := range map[string][]string{"Build": {"bash", "read_file", "write_file"}, "Plan": {"bash", "read_file"}, "Research": {"read_file", "write_file"}} {
		v := reg.View(map[string]Role{"Build": Build, "Plan": Plan, "Research": Research}[role])
		if got := v.Names(); !slices.Equal(got, want) {
			t.Errorf("%s sees %v, want %v", role, got, want)
		}
	}
	v := reg.View(Plan)
	if s, ok := v.Lookup("read"); !ok || s.Name != "read_file" {
		t.Errorf("the alias resolves to %q", s.Name)
	}
	if _, ok := v.Lookup("write"); ok {
		t.Error("the alias of a hidden tool resolves")
	}
}

func TestTakenNamesAreRefused(t *testing.T) {
	var reg Registry
	if err := reg.Add(tool(t, Spec{Name: "a", Aliases: []string{"b"}}, nil)); err != nil {
		t.Fatal(err)
	}
	for _, s := range []Spec{{Name: "a"}, {Name: "b"}, {Name: "c", Aliases: []string{"a"}}} {
		if err := reg.Add(tool(t, s, nil)); err == nil {
			t.Errorf("%v was taken", s)
		}
	}
}
