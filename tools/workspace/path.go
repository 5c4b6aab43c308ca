package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/lakecode/lakecode/tools"
)

// maxLinks bounds how many links one name may lead through, as Linux does.
const maxLinks = 40

// Path is a place inside the root with all links followed.
type Path struct {
	Abs string // real absolute path
	Rel string // relative to the root with forward slashes; "." is the root
}

// Resolve finds the place that name means: relative to the root, or absolute
// and inside it. Links are followed as far as the path exists; what does not
// exist yet resolves as well, so that it can be written. ".." is taken as it is
// written, before links are followed.
//
// Errors: OutsideRoot for a name or a link that leaves the root, NotFound for a
// name that leads through a file, BadArguments for an impossible name, Stale when
// the root itself is gone.
func (w *Workspace) Resolve(name string) (Path, error) {
	if name == "" || strings.ContainsRune(name, 0) {
		return Path{}, tools.Errorf(tools.BadArguments, "Give a path relative to the workspace.", "The path %q cannot be used.", name)
	}
	rel, ok := w.inside(name)
	if !ok {
		return Path{}, tools.Errorf(tools.OutsideRoot, "Use a path inside the workspace, relative to its root.", "%s is outside the workspace.", name)
	}
	if err := w.present(); err != nil {
		return Path{}, err
	}
	rel, err := w.follow(name, rel)
	if err != nil {
		return Path{}, err
	}
	return Path{Abs: filepath.Join(w.real, rel), Rel: filepath.ToSlash(rel)}, nil
}

// present fails when the root is not at its path any more: what is there now is
// not what the conversation was opened for, and a command would run in it.
func (w *Workspace) present() error {
	mine, err := w.root.Stat(".")
	if err != nil {
		return failed("look at", w.real, err)
	}
	if now, err := os.Lstat(w.real); err != nil || !os.SameFile(mine, now) {
		return tools.Errorf(tools.Stale, "Stop, and tell the person to put the folder back, or to open a new conversation in the new one.",
			"The workspace folder %s was removed, renamed or replaced since the conversation was opened.", w.real)
	}
	return nil
}

// inside returns name relative to the root, cleaned, links not looked at.
func (w *Workspace) inside(name string) (string, bool) {
	if !filepath.IsAbs(name) {
		rel := filepath.Clean(name)
		return rel, rel != ".." && !strings.HasPrefix(rel, "../")
	}
	name = filepath.Clean(name)
	if rel, ok := within(w.real, name); ok {
		return rel, true
	}
	return within(w.given, name)
}

// follow resolves the links of rel. os.Root would follow them too, but refuses
// absolute ones that stay inside; that it is used for each step is what makes a
// race harmless.
func (w *Workspace) follow(name, rel string) (string, error) {
	done := "."
	todo := strings.Split(rel, "/")
	for links := 0; len(todo) > 0; {
		next := filepath.Join(done, todo[0])
		info, err := w.root.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return filepath.Join(append([]string{done}, todo...)...), nil
		case errors.Is(err, syscall.ENOTDIR):
			return "", tools.Errorf(tools.NotFound, "", "%s does not exist: %s is a file, not a folder.", name, filepath.ToSlash(done))
		case err != nil:
			return "", failed("look up", name, err)
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			done, todo = next, todo[1:]
			continue
		}
		if links++; links > maxLinks {
			return "", tools.Errorf(tools.NotFound, "", "%s leads through too many links.", name)
		}
		target, err := w.root.Readlink(next)
		if err != nil {
			return "", failed("read the link", name, err)
		}
		abs := target
		if !filepath.IsAbs(abs) {
			abs = filepath.Join(w.real, done, target)
		}
		to, ok := w.inside(abs)
		if !ok {
			return "", tools.Errorf(tools.OutsideRoot, "Work on files inside the workspace.", "%s is a link to %s, which is outside the workspace.", filepath.ToSlash(next), target)
		}
		done, todo = ".", append(strings.Split(to, "/"), todo[1:]...)
	}
	return done, nil
}
