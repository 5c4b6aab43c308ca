package files

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/lakecode/lakecode/session/durable"
	"github.com/lakecode/lakecode/tools"
	"github.com/lakecode/lakecode/tools/workspace"
)

// Config is what the tools need. Workspace is required.
type Config struct {
	Workspace *workspace.Workspace
	// Ignored tells which of paths the ignore rules of their work tree leave
	// out. dir is a real absolute folder, the paths are relative to it with
	// forward slashes. A folder that is ignored itself has its own say: nothing
	// in it is left out. An error says that the rules could not be asked. It is
	// safe for concurrent use. Nil: there are no such rules.
	Ignored func(ctx context.Context, dir string, paths []string) (map[string]bool, error)
}

// box is what the tools share.
type box struct {
	w       *workspace.Workspace
	ignored func(ctx context.Context, dir string, paths []string) (map[string]bool, error)
}

// Tools makes the file tools of a workspace. It fails on a Config that cannot
// work.
func Tools(cfg Config) ([]tools.Tool, error) {
	if cfg.Workspace == nil {
		return nil, errors.New("files: a workspace is required")
	}
	b := &box{cfg.Workspace, cfg.Ignored}
	var all []tools.Tool
	for _, make := range []func() (tools.Tool, error){
		func() (tools.Tool, error) { return tools.New(readSpec, b.read) },
		func() (tools.Tool, error) { return tools.New(listSpec, b.list) },
		func() (tools.Tool, error) { return tools.New(writeSpec, b.write) },
		func() (tools.Tool, error) { return tools.New(editSpec, b.edit) },
		func() (tools.Tool, error) { return tools.New(patchSpec, b.patch) },
	} {
		t, err := make()
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// is reports whether err is a *tools.Error with the code.
func is(err error, code tools.Code) bool {
	var te *tools.Error
	return errors.As(err, &te) && te.Code == code
}

// missing is the error for a path that is not there, with the names nearest to
// it in the deepest folder that is.
func (b *box) missing(ctx context.Context, p workspace.Path) error {
	dir, name := path.Split(p.Rel)
	for {
		at, err := b.w.Resolve(path.Clean("./" + dir))
		if err != nil {
			return err
		}
		entries, _, err := b.w.ReadDir(ctx, at)
		if err == nil {
			var names []string
			for _, e := range entries {
				names = append(names, e.Name())
			}
			e := tools.Errorf(tools.NotFound, "Use find_files or list_directory to find it.", "%s does not exist.", p.Rel)
			if near := nearest(name, names); len(near) > 0 {
				e.Text += " Near it in " + at.Rel + ": " + strings.Join(near, ", ") + "."
			} else if gone := path.Join(dir, name); gone != p.Rel {
				e.Text += " The folder " + gone + " does not exist either."
			}
			return e
		}
		if !is(err, tools.NotFound) || dir == "" {
			return err
		}
		dir, name = path.Split(strings.TrimSuffix(dir, "/"))
	}
}

// nearest returns up to five of names that resemble name, the best first.
func nearest(name string, names []string) []string {
	type scored struct {
		name string
		d    int
	}
	var near []scored
	low := strings.ToLower(name)
	for _, n := range names {
		if strings.HasPrefix(n, durable.TempPrefix) {
			continue
		}
		l := strings.ToLower(n)
		d := distance(low, l)
		if d > max(2, len(low)/3) {
			if len(low) < 3 || len(l) < 3 || !strings.Contains(l, low) && !strings.Contains(low, l) {
				continue
			}
			d = len(low) + len(l) // after all that are only mistyped
		}
		near = append(near, scored{n, d})
	}
	slices.SortStableFunc(near, func(a, b scored) int {
		if a.d != b.d {
			return a.d - b.d
		}
		return strings.Compare(a.name, b.name)
	})
	var out []string
	for _, s := range near[:min(5, len(near))] {
		out = append(out, s.name)
	}
	return out
}

// distance counts the insertions, deletions and replacements between a and b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
