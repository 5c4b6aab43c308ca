package search

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Rules answers what the ignore rules of work trees say. Safe for concurrent
// use.
type Rules struct{ git *git }

// NewRules takes Git and Run of cfg. It fails on a Config that cannot work.
func NewRules(cfg Config) (*Rules, error) {
	g, err := newGit(cfg)
	return &Rules{g}, err
}

// Ignored returns those of paths that the ignore rules of their work tree leave
// out, and none when dir itself is left out: who names such a folder means it.
// dir is a real absolute folder, the paths are relative to it with forward
// slashes. A file that is tracked is never ignored.
//
// Errors: the context's cause; an error of git, or that there is none, whose
// text says why the rules could not be asked.
func (r *Rules) Ignored(ctx context.Context, dir string, paths []string) (map[string]bool, error) {
	in := grouped{dir: dir, parents: map[string]string{}}
	byTop := map[string][]string{}
	for _, p := range paths {
		if top := in.top(path.Dir(p)); top != "" {
			byTop[top] = append(byTop[top], p)
		}
	}
	if len(byTop) == 0 {
		return nil, nil
	}
	if r.git == nil {
		return nil, errors.New("git is not installed")
	}
	all := map[string]bool{}
	for top, some := range byTop {
		if err := r.ask(ctx, top, dir, some, all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// ask adds to all what the work tree at top ignores of paths in dir.
func (r *Rules) ask(ctx context.Context, top, dir string, paths []string, all map[string]bool) error {
	names := map[string]string{} // by the path from top
	for _, p := range paths {
		rel, err := filepath.Rel(top, filepath.Join(dir, filepath.FromSlash(p)))
		if err != nil {
			return err
		}
		names[filepath.ToSlash(rel)] = p
	}
	asked := make([]string, 0, len(names)+1)
	below, inside := strings.CutPrefix(dir, strings.TrimSuffix(top, "/")+"/")
	if inside {
		asked = append(asked, filepath.ToSlash(below))
	}
	for rel := range names {
		asked = append(asked, rel)
	}
	slices.Sort(asked)
	ignored, err := r.git.ignored(ctx, top, asked)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return err
	case inside && ignored[filepath.ToSlash(below)]:
		return nil
	}
	for rel := range ignored {
		all[names[rel]] = true
	}
	return nil
}

// grouped finds the work trees of folders below dir.
type grouped struct {
	dir     string
	parents map[string]string // folder, relative to dir, to the top of its work tree
}

// top returns the top of the work tree that the folder rel lies in, or "".
func (g *grouped) top(rel string) string {
	top, known := g.parents[rel]
	if known {
		return top
	}
	if rel == "." {
		top, _, _ = workTree(g.dir)
	} else if abs := filepath.Join(g.dir, filepath.FromSlash(rel)); exists(filepath.Join(abs, ".git")) {
		top = abs
	} else {
		top = g.top(path.Dir(rel))
	}
	g.parents[rel] = top
	return top
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}
