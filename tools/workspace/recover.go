package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lakecode/lakecode/session/durable"
	"github.com/lakecode/lakecode/tools"
)

// tempWindow is how far from an intent's time a temporary file may have been
// written to be taken for its.
const tempWindow = time.Minute

// Recover settles the changes of this root that a killed process has left in
// the journal, and returns a sentence for a person about each. A change whose
// files are all in place is finished; any other is undone, except for files
// that somebody has changed since. It is called before the first Commit.
//
// It returns an error when the journal cannot be read; then it may be called
// again. What it could not settle stays in the journal.
func (w *Workspace) Recover(ctx context.Context) ([]string, error) {
	if w.journal.dir == "" {
		return nil, nil
	}
	if _, err := os.Lstat(filepath.Join(w.journal.dir, pending)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	unlock, err := w.journal.lock(ctx)
	if err != nil {
		return nil, fmt.Errorf("recover changes: %w", err)
	}
	defer unlock()
	w.journal.sweep()
	list, bad, err := w.journal.open()
	if err != nil {
		return nil, fmt.Errorf("recover changes: %w", err)
	}
	var say []string
	for _, b := range bad {
		say = append(say, "A record of an interrupted change cannot be read and was left as it is: "+b)
	}
	for _, in := range slices.Backward(list) { // the newest first: they may meet at a file
		if in.Root != w.real {
			continue
		}
		if ctx.Err() != nil {
			return say, context.Cause(ctx)
		}
		sentence, err := w.recoverOne(ctx, in)
		if err != nil {
			sentence = fmt.Sprintf("The interrupted change %q could not be settled and will be tried again: %v", in.Title, err)
		}
		if sentence != "" {
			say = append(say, sentence)
		}
	}
	return say, nil
}

// recoverOne settles one change.
func (w *Workspace) recoverOne(ctx context.Context, in intent) (string, error) {
	if _, err := os.Lstat(w.journal.file(changes, in.ID)); err == nil { // ended, and killed right then
		return "", os.Remove(w.journal.file(pending, in.ID))
	}
	var after, changed, all []string
	for _, f := range in.Files {
		all = append(all, f.Rel)
		switch now, err := w.state(ctx, f.Rel); {
		case err != nil:
			return "", err
		case now == f.After:
			after = append(after, f.Rel)
		case now != f.Before:
			changed = append(changed, f.Rel)
		}
	}
	w.sweep(in)
	if len(after) == len(in.Files) {
		return fmt.Sprintf("The change %q was interrupted when all was written: %s. It stands.", in.Title, names(all)), w.journal.finish(ctx, in, done)
	}
	for _, f := range in.Files {
		if slices.Contains(after, f.Rel) {
			if err := w.putBack(ctx, f); err != nil {
				return "", err
			}
		}
	}
	w.undoFolders(in.Folders)
	sentence := fmt.Sprintf("The change %q was interrupted before anything was written: %s. The files are as they were.", in.Title, names(all))
	if len(after) > 0 {
		sentence = fmt.Sprintf("The change %q was interrupted half way and has been undone; put back: %s.", in.Title, names(after))
	}
	if len(changed) > 0 {
		sentence += fmt.Sprintf(" Changed by somebody else since, and left alone: %s.", names(changed))
	}
	return sentence, w.journal.finish(ctx, in, undone)
}

// names lists files for a sentence, the first ten of them.
func names(list []string) string {
	const most = 10
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}

// state returns the hash of a file, empty when there is none.
func (w *Workspace) state(ctx context.Context, rel string) (string, error) {
	data, _, err := w.readDisk(ctx, Path{Abs: filepath.Join(w.real, rel), Rel: rel}, MaxWritable)
	var te *tools.Error
	switch {
	case err == nil:
		return digest(append([]byte{}, data...)), nil
	case !errors.As(err, &te) || te.Code == tools.Cancelled:
		return "", err
	case te.Code == tools.NotFound:
		return "", nil
	}
	return "something else", nil // a folder, a link, a huge file: somebody's
}

// putBack gives a file its former content.
func (w *Workspace) putBack(ctx context.Context, f intentFile) error {
	var s *durable.Staged
	if f.Before == "" {
		var err error
		if s, err = durable.StageRemoval(w.root, f.Rel); err != nil {
			return err
		}
	} else {
		data, err := w.journal.object(f.Before)
		if err != nil {
			return err
		}
		if s, err = durable.StageIn(w.root, f.Rel, data, f.Mode); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return errors.Join(context.Cause(ctx), s.Discard())
	}
	return errors.Join(s.Commit(), s.Discard())
}

// sweep removes the temporary files that the killed process left beside the
// files of a change: new contents by their age, former ones, which are links to
// old files, by their content.
func (w *Workspace) sweep(in intent) {
	var dirs []string
	for _, f := range in.Files {
		if dir := filepath.Dir(f.Rel); !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	for _, dir := range dirs {
		d, err := w.root.Open(dir)
		if err != nil {
			continue
		}
		names, _ := d.Readdirnames(maxEntries) // what is not listed is left
		_ = d.Close()                          // only read from
		for _, name := range names {
			if rel := filepath.Join(dir, name); strings.HasPrefix(name, durable.TempPrefix) && w.ours(in, dir, rel) {
				_ = w.root.Remove(rel) // a file that stays does no harm
			}
		}
	}
}

func (w *Workspace) ours(in intent, dir, rel string) bool {
	info, err := w.root.Lstat(rel)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	if d := info.ModTime().Sub(in.Time); -time.Second < d && d < tempWindow {
		return true
	}
	data, err := w.root.ReadFile(rel)
	if err != nil {
		return false
	}
	hash := digest(data)
	return slices.ContainsFunc(in.Files, func(f intentFile) bool {
		return filepath.Dir(f.Rel) == dir && (f.Before == hash || f.After == hash)
	})
}
