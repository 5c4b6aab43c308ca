package workspace

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/lakecode/lakecode/session/durable"
	"github.com/lakecode/lakecode/tools"
)

// ChangeSet is what one call changes, applied as a whole or not at all.
type ChangeSet struct {
	Call  string // id of the call
	Title string // for a person: "edit a.go"
	Files []FileChange
}

// FileChange is the change of one file.
type FileChange struct {
	Path Path
	// Before is the hash of the bytes on the disk that the change is made for;
	// nil: there must be no file.
	Before *[sha256.Size]byte
	Data   []byte      // the new content; nil deletes
	Mode   fs.FileMode // permissions of a new file; 0: 0644. A file keeps its own.
}

// step is a FileChange on its way.
type step struct {
	FileChange
	before []byte // nil: there is no file
	mode   fs.FileMode
	staged *durable.Staged
}

// Commit applies cs, or leaves everything as it was. Folders that are missing
// are made. It waits for other commits to the same files and to the same
// journal until ctx ends; ctx is looked at for the last time before the first
// file is changed.
//
// Order: lock; check every file; put the former bytes and the intent on the
// disk; write every new content beside its file; check again; rename all; note
// that it is done. When a rename fails the ones before it are undone.
//
// What is not overwritten: a file that differs from Before (Stale), one that
// has unsaved changes in the editor or whose buffer is not known (Stale), a
// read-only file or folder (NotAllowed), anything that is not a regular file.
// The text of every error says that nothing was written, or exactly what was.
//
// The files count as read by this conversation afterwards.
func (w *Workspace) Commit(ctx context.Context, cs ChangeSet) ([]tools.Change, error) {
	paths, err := w.permit(cs)
	if err != nil {
		return nil, err
	}
	release, err := w.locks.take(ctx, paths)
	if err != nil {
		return nil, unwritten(cancelled(ctx))
	}
	defer release()
	steps := make([]step, len(cs.Files))
	for i, fc := range cs.Files {
		if steps[i], err = w.check(ctx, fc); err != nil {
			return nil, err
		}
	}
	if err := w.apply(ctx, cs, steps); err != nil {
		return nil, err
	}
	changes := make([]tools.Change, len(steps))
	for i, s := range steps {
		changes[i] = tools.Change{Path: s.Path.Abs, Rel: s.Path.Rel, Before: s.before, After: s.Data}
		w.MarkRead(s.Path, s.Data)
	}
	return changes, nil
}

// permit refuses sets that must not be tried and returns the paths to lock.
func (w *Workspace) permit(cs ChangeSet) ([]string, error) {
	if w.journal.dir == "" {
		return nil, tools.Errorf(tools.NotAllowed, "", "This workspace is read-only. Nothing was written.")
	}
	if len(cs.Files) == 0 {
		return nil, tools.Errorf(tools.Internal, "", "There is no file to change. Nothing was written.")
	}
	var paths []string
	for _, f := range cs.Files {
		switch parts := strings.Split(f.Path.Rel, "/"); {
		case slices.Contains(paths, f.Path.Abs):
			return nil, tools.Errorf(tools.BadArguments, "Put all changes of a file into one.", "%s is changed twice. Nothing was written.", f.Path.Rel)
		case slices.ContainsFunc(parts, func(s string) bool { return strings.EqualFold(s, ".git") }):
			// Hooks and configuration there run code on the next git command.
			return nil, tools.Errorf(tools.NotAllowed, "Use git through bash.", "%s belongs to git itself. Nothing was written.", f.Path.Rel)
		case strings.HasPrefix(parts[len(parts)-1], durable.TempPrefix):
			return nil, tools.Errorf(tools.NotAllowed, "Use another name.", "Names that begin with %s are for temporary files. Nothing was written.", durable.TempPrefix)
		case len(f.Data) > MaxWritable:
			return nil, unwritten(tooLarge(f.Path, int64(len(f.Data)), MaxWritable))
		}
		paths = append(paths, f.Path.Abs)
	}
	return paths, nil
}

// check compares a file with what the change was made for.
func (w *Workspace) check(ctx context.Context, fc FileChange) (step, error) {
	s := step{FileChange: fc, mode: fc.Mode}
	data, info, err := w.readDisk(ctx, fc.Path, MaxWritable)
	var te *tools.Error
	missing := errors.As(err, &te) && te.Code == tools.NotFound
	switch {
	case missing && fc.Before == nil:
	case missing:
		return s, tools.Errorf(tools.Stale, "List the folder and decide again.", "%s no longer exists. Nothing was written.", fc.Path.Rel)
	case err != nil:
		return s, unwritten(failed("read", fc.Path.Rel, err))
	case fc.Before == nil:
		return s, tools.Errorf(tools.Stale, "Read it first.", "%s exists already. Nothing was written.", fc.Path.Rel)
	case sha256.Sum256(data) != *fc.Before:
		return s, tools.Errorf(tools.Stale, "Read it again.", "%s has changed on the disk meanwhile. Nothing was written.", fc.Path.Rel)
	default:
		s.before, s.mode = data, info.Mode()
		if s.before == nil {
			s.before = []byte{}
		}
		if err := w.writable(fc.Path, info); err != nil {
			return s, err
		}
	}
	if s.mode.Perm() == 0 {
		s.mode = 0o644
	}
	return s, w.buffer(fc.Path, data)
}

// writable refuses a file that is marked read-only: renaming over it would
// work, but is not what its owner has asked for.
func (w *Workspace) writable(p Path, info fs.FileInfo) error {
	if info.Mode().Perm()&0o222 == 0 || unix.Faccessat(unix.AT_FDCWD, p.Abs, unix.W_OK, unix.AT_EACCESS) == unix.EACCES {
		return tools.Errorf(tools.NotAllowed, "Ask the person to make it writable if it must be changed.",
			"%s is read-only (mode %04o). Nothing was written.", p.Rel, info.Mode().Perm())
	}
	return nil
}

// buffer refuses a file whose buffer holds more than the disk does.
func (w *Workspace) buffer(p Path, disk []byte) error {
	doc, open := w.lookup(p)
	switch {
	case !open:
		return nil
	case doc.Unsure:
		return tools.Errorf(tools.Stale, "Ask the person to save and reopen it, then read it again.",
			"%s is open in the editor, which shows a text that is not known here. Nothing was written.", p.Rel)
	case !clean(doc.Text, disk):
		return Unsaved(p)
	}
	return nil
}

// Unsaved is the refusal to write over a buffer that has unsaved changes.
func Unsaved(p Path) *tools.Error {
	return tools.Errorf(tools.Stale, "Ask the person to save it, then read it again.",
		"%s has unsaved changes in the editor. Nothing was written.", p.Rel)
}

// apply does the part of Commit that needs the journal.
func (w *Workspace) apply(ctx context.Context, cs ChangeSet, steps []step) error {
	unlock, err := w.journal.lock(ctx)
	if err != nil {
		return journalFailed(ctx, err)
	}
	defer unlock()
	in := w.intent(cs, steps)
	if err := w.journal.begin(ctx, in, steps); err != nil {
		return journalFailed(ctx, err)
	}
	defer w.discard(steps)
	if err := w.stage(ctx, steps); err != nil {
		w.discard(steps) // it may hold files in the folders
		w.undoFolders(in.Folders)
		w.settle(ctx, in, undone)
		return err
	}
	if err := w.rename(steps); err != nil {
		w.discard(steps)
		w.undoFolders(in.Folders)
		var te *tools.Error
		if !errors.As(err, &te) || te.Code != tools.Internal { // else Recover tries again
			w.settle(ctx, in, undone)
		}
		return err
	}
	for _, dir := range in.Folders { // a new folder's own name must last, too
		if err := durable.SyncDir(filepath.Dir(filepath.Join(w.real, dir))); err != nil {
			w.log.Warn("a new folder is not synced", zap.String("folder", dir), zap.Error(err))
		}
	}
	w.settle(ctx, in, done)
	return nil
}

// stage writes every new content beside its file and checks all files again:
// an editor or another program may have written while that took its time.
func (w *Workspace) stage(ctx context.Context, steps []step) error {
	for i := range steps {
		s := &steps[i]
		var err error
		if s.Data == nil {
			s.staged, err = durable.StageRemoval(w.root, s.Path.Rel)
		} else if err = w.root.MkdirAll(filepath.Dir(s.Path.Rel), 0o755); err == nil {
			s.staged, err = durable.StageIn(w.root, s.Path.Rel, s.Data, s.mode.Perm())
		} else if errors.Is(err, fs.ErrExist) { // but is no folder
			err = syscall.ENOTDIR
		}
		if err != nil {
			return unwritten(failed("write", s.Path.Rel, err))
		}
	}
	for i := range steps {
		if _, err := w.check(ctx, steps[i].FileChange); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return unwritten(cancelled(ctx))
	}
	return nil
}

// rename puts every file into place, or all that were back.
func (w *Workspace) rename(steps []step) error {
	for i := range steps {
		err := steps[i].staged.Commit()
		if err == nil {
			continue
		}
		var stuck []string
		for j := i; j >= 0; j-- { // i too: its rename may have worked and its sync not
			if back := steps[j].staged.Restore(); back != nil {
				w.log.Error("rollback of a file failed", zap.String("file", steps[j].Path.Rel), zap.Error(back))
				stuck = append(stuck, steps[j].Path.Rel)
			}
		}
		e := failed("write", steps[i].Path.Rel, err)
		if len(stuck) > 0 {
			return tools.Errorf(tools.Internal, "Tell the person. Read these files before you go on.",
				"%s The files before it could not all be put back: %s hold the new content.", e.Text, strings.Join(stuck, ", "))
		}
		return unwritten(e)
	}
	return nil
}

func (w *Workspace) discard(steps []step) {
	for _, s := range steps {
		if s.staged == nil {
			continue
		}
		if err := s.staged.Discard(); err != nil {
			w.log.Warn("temporary file left", zap.String("file", s.Path.Rel), zap.Error(err))
		}
	}
}

// undoFolders removes the folders that were made, as far as they are empty.
func (w *Workspace) undoFolders(made []string) {
	for _, dir := range slices.Backward(made) {
		_ = w.root.Remove(dir) // somebody uses it, or it was never made
	}
}

// settle notes how a commit ended. The change itself does not depend on it:
// Recover finds the same by looking at the files.
func (w *Workspace) settle(ctx context.Context, in intent, how string) {
	if err := w.journal.finish(context.WithoutCancel(ctx), in, how); err != nil {
		w.log.Warn("the end of a change was not recorded", zap.String("change", in.ID), zap.Error(err))
	}
}

func journalFailed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return unwritten(cancelled(ctx))
	}
	return unwritten(failed("record", "the change in the journal", err))
}
