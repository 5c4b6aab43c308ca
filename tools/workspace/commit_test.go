package workspace

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lakecode/lakecode/lsp/overlay"
	"github.com/lakecode/lakecode/session/durable"
	"github.com/lakecode/lakecode/tools"
)

// bench is a workspace with files, an editor and a journal.
type bench struct {
	*Workspace
	t    *testing.T
	docs *overlay.Store
}

// open makes a workspace of a folder that holds files: name to content.
func open(t *testing.T, files map[string]string) *bench {
	t.Helper()
	root, docs := t.TempDir(), overlay.NewStore()
	for name, text := range files {
		put(t, filepath.Join(root, name), text)
	}
	w, err := Open(Config{Root: root, Docs: docs, Journal: filepath.Join(t.TempDir(), "journal")})
	must(t, err)
	t.Cleanup(func() { must(t, w.Close()) })
	return &bench{w, t, docs}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(text), 0o644))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (b *bench) abs(name string) string { return filepath.Join(b.Root(), name) }

func (b *bench) path(name string) Path {
	b.t.Helper()
	p, err := b.Resolve(name)
	must(b.t, err)
	return p
}

// change is a FileChange for what the file holds now; "-" deletes.
func (b *bench) change(name, text string) FileChange {
	b.t.Helper()
	fc := FileChange{Path: b.path(name), Data: []byte(text)}
	if text == "-" {
		fc.Data = nil
	}
	if data, err := os.ReadFile(b.abs(name)); err == nil {
		sum := sha256.Sum256(data)
		fc.Before = &sum
	}
	return fc
}

// tree describes the root: every file with its content, every folder as "/".
func (b *bench) tree() map[string]string {
	b.t.Helper()
	got := map[string]string{}
	must(b.t, filepath.WalkDir(b.Root(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == b.Root() {
			return err
		}
		rel, _ := filepath.Rel(b.Root(), path)
		switch {
		case d.IsDir():
			got[rel] = "/"
		case d.Type()&fs.ModeSymlink != 0:
			to, _ := os.Readlink(path)
			got[rel] = "-> " + to
		case d.Type().IsRegular():
			data, err := os.ReadFile(path)
			must(b.t, err)
			got[rel] = string(data)
		default:
			got[rel] = d.Type().String()
		}
		return nil
	}))
	return got
}

func (b *bench) check(want map[string]string) {
	b.t.Helper()
	if diff := cmp.Diff(want, b.tree()); diff != "" {
		b.t.Errorf("files (-want +got):\n%s", diff)
	}
	for _, e := range b.pending() {
		b.t.Errorf("still pending: %s", e)
	}
}

func (b *bench) pending() (names []string) {
	entries, _ := os.ReadDir(filepath.Join(b.journal.dir, pending))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// refused wants a *tools.Error with code whose texts hold all of has.
func refused(t *testing.T, err error, code tools.Code, has ...string) {
	t.Helper()
	var te *tools.Error
	if !errors.As(err, &te) {
		t.Errorf("error %v, want a *tools.Error", err)
		return
	}
	if te.Code != code {
		t.Errorf("code %s, want %s: %s", te.Code, code, te.Text)
	}
	for _, s := range has {
		if !strings.Contains(te.Text+"\n"+te.Next, s) {
			t.Errorf("%q lacks %q", te.Text+"\n"+te.Next, s)
		}
	}
}

func TestCommitCreatesReplacesAndDeletesAsOne(t *testing.T) {
	b := open(t, map[string]string{"a": "old", "gone": "bye", "run.sh": "#!"})
	must(t, os.Chmod(b.abs("run.sh"), 0o751))
	got, err := b.Commit(t.Context(), ChangeSet{Call: "c1", Title: "several", Files: []FileChange{
		b.change("a", "new"), b.change("gone", "-"), b.change("run.sh", "#!/bin/sh"), b.change("x/y/z", ""),
	}})
	must(t, err)
	want := []tools.Change{
		{Path: b.abs("a"), Rel: "a", Before: []byte("old"), After: []byte("new")},
		{Path: b.abs("gone"), Rel: "gone", Before: []byte("bye")},
		{Path: b.abs("run.sh"), Rel: "run.sh", Before: []byte("#!"), After: []byte("#!/bin/sh")},
		{Path: b.abs("x/y/z"), Rel: "x/y/z", After: []byte{}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	b.check(map[string]string{"a": "new", "run.sh": "#!/bin/sh", "x": "/", "x/y": "/", "x/y/z": ""})
	if info, err := os.Stat(b.abs("run.sh")); err != nil || info.Mode().Perm() != 0o751 {
		t.Errorf("mode: %v, %v", info.Mode(), err)
	}
	for name, perm := range map[string]fs.FileMode{"": 0o700, objects: 0o700, objects + "/" + digest([]byte("old")): 0o600} {
		info, err := os.Stat(filepath.Join(b.journal.dir, name))
		must(t, err)
		if info.Mode().Perm() != perm {
			t.Errorf("journal %s: mode %v", name, info.Mode())
		}
	}
	for _, text := range []string{"old", "bye", "#!"} {
		if data, err := b.journal.object(digest([]byte(text))); err != nil || string(data) != text {
			t.Errorf("pre-image of %q: %q, %v", text, data, err)
		}
	}
}

func TestCommitRefusesTheWholeSetForOneFile(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(b *bench, fc *FileChange)
		code  tools.Code
		text  string
	}{
		"changed":   {func(b *bench, fc *FileChange) { put(b.t, b.abs("b"), "theirs") }, tools.Stale, "b has changed on the disk"},
		"deleted":   {func(b *bench, fc *FileChange) { must(b.t, os.Remove(b.abs("b"))) }, tools.Stale, "b no longer exists"},
		"exists":    {func(b *bench, fc *FileChange) { fc.Before = nil }, tools.Stale, "b exists already"},
		"read-only": {func(b *bench, fc *FileChange) { must(b.t, os.Chmod(b.abs("b"), 0o444)) }, tools.NotAllowed, "b is read-only (mode 0444)"},
		"became a pipe": {func(b *bench, fc *FileChange) {
			must(b.t, os.Remove(b.abs("b")))
			must(b.t, syscall.Mkfifo(b.abs("b"), 0o600))
		}, tools.Other, "b is a named pipe"},
		"too large": {func(b *bench, fc *FileChange) { fc.Data = make([]byte, MaxWritable+1) }, tools.TooLarge, "limit"},
		"twice":     {func(b *bench, fc *FileChange) { fc.Path = b.path("a") }, tools.BadArguments, "a is changed twice"},
		"git's own": {func(b *bench, fc *FileChange) { fc.Path, fc.Before = b.path("x/.git/hooks/pre-commit"), nil }, tools.NotAllowed, "belongs to git"},
		"temporary": {func(b *bench, fc *FileChange) { fc.Path, fc.Before = b.path(durable.TempPrefix+"x"), nil }, tools.NotAllowed, "temporary"},
		"unsaved": {func(b *bench, fc *FileChange) {
			b.docs.Open(overlay.Doc{URI: overlay.FileURI(b.abs("b")), Text: "typing"})
		}, tools.Stale, "b has unsaved changes in the editor"},
		"out of step": {func(b *bench, fc *FileChange) {
			uri := overlay.FileURI(b.abs("b"))
			b.docs.Open(overlay.Doc{URI: uri, Version: 3, Text: "b"})
			_ = b.docs.Change(uri, 2, nil)
		}, tools.Stale, "not known"},
		"folder is a file": {func(b *bench, fc *FileChange) {
			must(b.t, os.Remove(b.abs("b")))
			fc.Path, fc.Before = Path{Abs: b.abs("a/b"), Rel: "a/b"}, nil
		}, tools.NotFound, "a part of the path is a file"},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, map[string]string{"a": "a", "b": "b"})
			files := []FileChange{b.change("a", "A"), b.change("b", "B")}
			c.spoil(b, &files[1])
			want := b.tree()
			_, err := b.Commit(t.Context(), ChangeSet{Files: files})
			refused(t, err, c.code, c.text, "Nothing was written.")
			b.check(want)
		})
	}
}

func TestCommitWritesAFileWhoseBufferIsClean(t *testing.T) {
	for disk, buffer := range map[string]string{
		"a\nb\n":               "a\nb\n",
		"\uFEFFa\r\nb\r\n":     "a\nb\n",
		"\uFEFFa\nb":           "a\nb\n",
		"a\r\nb\r\n":           "a\r\nb",
		"":                     "\n",
		"old macintosh\rtext ": "old macintosh\ntext ",
	} {
		b := open(t, map[string]string{"a": disk})
		b.docs.Open(overlay.Doc{URI: overlay.FileURI(b.abs("a")), Text: buffer})
		if _, err := b.Commit(t.Context(), ChangeSet{Files: []FileChange{b.change("a", "new")}}); err != nil {
			t.Errorf("%q with the buffer %q: %v", disk, buffer, err)
		}
		b.check(map[string]string{"a": "new"})
	}
}

func TestCommitToAFileDeletedWhileOpen(t *testing.T) {
	b := open(t, map[string]string{"a": "text"})
	b.docs.Open(overlay.Doc{URI: overlay.FileURI(b.abs("a")), Text: "text"})
	must(t, os.Remove(b.abs("a")))
	f, err := b.Read(t.Context(), b.path("a"), 100)
	must(t, err)
	if string(f.Data) != "text" || !f.FromBuffer || f.OnDisk {
		t.Errorf("read: %+v", f)
	}
	_, err = b.Commit(t.Context(), ChangeSet{Files: []FileChange{{Path: f.Path, Data: []byte("new")}}})
	refused(t, err, tools.Stale, "unsaved changes", "Nothing was written")
	b.check(map[string]string{})
}

func TestCommitReplacesTheTargetOfALink(t *testing.T) {
	b := open(t, map[string]string{"dir/real": "old"})
	must(t, os.Symlink("dir/real", b.abs("link")))
	must(t, os.Symlink(b.abs("dir"), b.abs("to")))
	for i, name := range []string{"link", "to/real"} {
		_, err := b.Commit(t.Context(), ChangeSet{Files: []FileChange{b.change(name, fmt.Sprint(i))}})
		must(t, err)
		b.check(map[string]string{"dir": "/", "dir/real": fmt.Sprint(i), "link": "-> dir/real", "to": "-> " + b.abs("dir")})
	}
}

func TestCommitStopsBeforeTheFirstRenameOnly(t *testing.T) {
	b := open(t, map[string]string{"a": "old"})
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the person stopped it"))
	_, err := b.Commit(ctx, ChangeSet{Files: []FileChange{b.change("a", "new")}})
	refused(t, err, tools.Cancelled, "the person stopped it", "Nothing was written.")
	b.check(map[string]string{"a": "old"})
}

// onceStaged ends as soon as a new content lies beside its file.
type onceStaged struct {
	context.Context
	dir string
}

func (c onceStaged) Err() error {
	if found, _ := filepath.Glob(filepath.Join(c.dir, durable.TempPrefix+"*")); len(found) > 0 {
		return context.Canceled
	}
	return nil
}

func TestCommitThatIsStoppedWhileStagingLeavesNothing(t *testing.T) {
	b := open(t, map[string]string{"a": "old"})
	_, err := b.Commit(onceStaged{t.Context(), b.Root()}, ChangeSet{Files: []FileChange{b.change("a", "new"), b.change("x/y", "")}})
	refused(t, err, tools.Cancelled, "Nothing was written.")
	b.check(map[string]string{"a": "old"})
}

func TestCommitWaitsForAnotherProcessInTheJournal(t *testing.T) {
	b := open(t, map[string]string{"a": "a"})
	unlock, err := journal{b.journal.dir}.lock(t.Context())
	must(t, err)
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, errors.New("the person stopped it"))
	defer cancel()
	_, err = b.Commit(ctx, ChangeSet{Files: []FileChange{b.change("a", "A")}})
	refused(t, err, tools.Cancelled, "the person stopped it", "Nothing was written.")
	b.check(map[string]string{"a": "a"})
	unlock()
	_, err = b.Commit(t.Context(), ChangeSet{Files: []FileChange{b.change("a", "A")}})
	must(t, err)
}

func TestCommitNeedsAJournalThatCanBeWritten(t *testing.T) {
	b := open(t, map[string]string{"a": "a"})
	put(t, b.journal.dir, "a file where the folder should be")
	_, err := b.Commit(t.Context(), ChangeSet{Files: []FileChange{b.change("a", "A")}})
	refused(t, err, tools.NotFound, "Nothing was written.")
	b.check(map[string]string{"a": "a"})
	b.journal.dir = ""
	_, err = b.Commit(t.Context(), ChangeSet{Files: []FileChange{b.change("a", "A")}})
	refused(t, err, tools.NotAllowed, "read-only")
}

func TestTwoConversationsOnOneFileLoseNoChange(t *testing.T) {
	b := open(t, map[string]string{"a": ""})
	locks := new(Locks)
	var all []*Workspace
	for range 4 {
		w, err := Open(Config{Root: b.Root(), Journal: filepath.Join(t.TempDir(), "j"), Locks: locks})
		must(t, err)
		defer w.Close()
		all = append(all, w)
	}
	var wg sync.WaitGroup
	for i, w := range all {
		wg.Go(func() {
			p, err := w.Resolve("a")
			if err != nil {
				t.Error(err)
				return
			}
			for n := 0; n < 10; {
				f, err := w.Read(t.Context(), p, MaxWritable)
				if err != nil {
					t.Error(err)
					return
				}
				_, err = w.Commit(t.Context(), ChangeSet{Files: []FileChange{{Path: p, Before: &f.Hash, Data: fmt.Appendf(f.Data, "%d.%d\n", i, n)}}})
				var te *tools.Error
				switch {
				case err == nil:
					n++
				case !errors.As(err, &te) || te.Code != tools.Stale:
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	data, err := os.ReadFile(b.abs("a"))
	must(t, err)
	lines := strings.Fields(string(data))
	slices.Sort(lines)
	if len(slices.Compact(lines)) != 40 {
		t.Errorf("%d changes are left of 40:\n%s", len(lines), data)
	}
	if len(locks.held) != 0 {
		t.Errorf("locks left: %v", locks.held)
	}
}

func TestALockThatIsHeldIsWaitedForUntilTheContextEnds(t *testing.T) {
	l := new(Locks)
	release, err := l.take(t.Context(), []string{"b", "a", "b"})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.take(ctx, []string{"0", "a"}); !errors.Is(err, context.Canceled) {
		t.Errorf("error: %v", err)
	}
	release()
	if len(l.held) != 0 {
		t.Errorf("locks left: %v", l.held)
	}
}

// BenchmarkCommit: one small file, everything synced.
func BenchmarkCommit(b *testing.B) {
	root := b.TempDir()
	w, err := Open(Config{Root: root, Journal: filepath.Join(b.TempDir(), "j")})
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	p, _ := w.Resolve("a")
	var before *[sha256.Size]byte
	n := 0
	for b.Loop() {
		n++
		data := fmt.Appendf(nil, "content %d\n", n)
		if _, err := w.Commit(b.Context(), ChangeSet{Files: []FileChange{{Path: p, Before: before, Data: data}}}); err != nil {
			b.Fatal(err)
		}
		sum := sha256.Sum256(data)
		before = &sum
	}
}
