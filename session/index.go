package session

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/lakecode/lakecode/session/durable"
)

// entry is a line of an index: the summary of a session as of a certain size of
// its log. The last line of a session counts. It is believed when size and time
// of the log are still the same; when the log has grown, only what is new is
// read; else the log is read again.
type entry struct {
	Summary
	Size  int64  `json:"size"`
	Mtime int64  `json:"mtime"` // nanoseconds
	Sum   uint32 `json:"sum"`   // checksum of the last record
}

// entryKind is the kind of an index line. A new form of entry gets a new kind;
// unknown lines are passed over.
const entryKind = "summary"

// maxIndex is more than an index can need, in bytes.
const maxIndex = 64 << 20

// add counts one more record of the log.
func (e *entry) add(r Record) {
	at := time.Time{}
	switch r := r.(type) {
	case Created:
		e.ID, e.Root, e.Created, at = r.ID, r.Root, r.Time, r.Time
	case Accepted:
		e.Queued, at = e.Queued+1, r.Message.Accepted
		if e.Title == "" {
			e.Title = heading(r.Message.Text)
		}
	case Dropped:
		e.Queued--
	case TurnStarted:
		e.Queued, e.Turns, at = e.Queued-1, e.Turns+1, r.Time
	case TurnEnded:
		at = r.End.Time
	case Titled:
		e.Title = r.Title
	}
	if at.After(e.Updated) {
		e.Updated = at
	}
}

// indexFile returns the index of a workspace. Two roots may share a hash, so
// whoever reads it compares the root in each entry.
func (s *Store) indexFile(root string) string {
	h := sha256.Sum256([]byte(root))
	return filepath.Join(s.home.index(), hex.EncodeToString(h[:16]))
}

// appendIndex adds entries to an index, in one write.
func appendIndex(path string, entries ...entry) error {
	data, err := encodeIndex(entries)
	if err != nil {
		return err
	}
	f, err := durable.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

func encodeIndex(entries []entry) ([]byte, error) {
	var enc encoder
	for _, e := range entries {
		if _, err := enc.add(0, entryKind, e); err != nil {
			return nil, err
		}
	}
	return enc.out.Bytes(), nil
}

// readIndex returns the sound entries of an index, the last one of each
// session, and how many lines it has.
func readIndex(path string) (map[ID]entry, int) {
	data, err := durable.ReadFile(path, maxIndex)
	if errors.Is(err, durable.ErrTooLarge) {
		return nil, math.MaxInt // compact starts it anew
	}
	if err != nil {
		return nil, 0
	}
	entries, lines := map[ID]entry{}, 0
	for line := range bytes.Lines(data) {
		lines++
		f, _, why := parse(line, 0)
		if why != "" || f.kind != entryKind {
			continue
		}
		var e entry
		if json.Unmarshal(f.data, &e) == nil && valid(e.ID) {
			entries[e.ID] = e
		}
	}
	return entries, lines
}

// List returns the sessions of the workspace at root, the newest first; all
// sessions for an empty root. It opens and locks nothing. A session that cannot
// be read is listed with its Problem, and under every root when its own is
// unknown. Of a session that is being written it tells what is written so far.
//
// It fails only when the folder of the sessions cannot be read or ctx ends.
func (s *Store) List(ctx context.Context, root string) ([]Summary, error) {
	if root != "" {
		if p, err := filepath.Abs(root); err == nil {
			root = p
		}
		if p, err := filepath.EvalSymlinks(root); err == nil { // a lost workspace keeps its name
			root = p
		}
	}
	dirs, err := os.ReadDir(s.home.Sessions())
	if err != nil {
		return nil, fmt.Errorf("list the sessions: %w", err)
	}
	known, files := s.indexes()
	var list []Summary
	fresh := map[string][]entry{} // by root
	for _, d := range dirs {
		id := ID(d.Name())
		if !valid(id) {
			continue
		}
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		old, ok := known[id]
		if ok && root != "" && old.Root != root {
			continue
		}
		e, found := s.survey(d, old)
		if !found {
			continue
		}
		if e != old && e.Problem == "" {
			fresh[e.Root] = append(fresh[e.Root], e)
		}
		if root == "" || e.Root == root || e.Root == "" {
			list = append(list, e.Summary)
		}
	}
	slices.SortFunc(list, func(a, b Summary) int {
		return cmp.Or(b.Updated.Compare(a.Updated), cmp.Compare(b.ID, a.ID))
	})
	// What could not be stored is found again by the next listing.
	for root, es := range fresh {
		_ = appendIndex(s.indexFile(root), es...)
	}
	s.compact(ctx, files, dirs)
	return list, nil
}

// indexes reads all indexes: the merged entries, and the lines of each file.
func (s *Store) indexes() (map[ID]entry, map[string]int) {
	all, files := map[ID]entry{}, map[string]int{}
	names, err := os.ReadDir(s.home.index())
	if err != nil {
		return all, files
	}
	for _, n := range names {
		path := filepath.Join(s.home.index(), n.Name())
		entries, lines := readIndex(path)
		files[path] = lines
		for id, e := range entries {
			if path == s.indexFile(e.Root) {
				all[id] = e
			}
		}
	}
	return all, files
}

// compact writes indexes anew whose lines are mostly outdated. An entry that
// another process adds meanwhile may get lost, which costs one reading of a log.
func (s *Store) compact(ctx context.Context, files map[string]int, dirs []fs.DirEntry) {
	const slack = 64 // lines
	for path, lines := range files {
		if lines <= 2*len(dirs)+slack {
			continue
		}
		entries, _ := readIndex(path)
		var keep []entry
		for _, d := range dirs {
			if e, ok := entries[ID(d.Name())]; ok {
				keep = append(keep, e)
			}
		}
		if lines <= 2*len(keep)+slack {
			continue
		}
		if data, err := encodeIndex(keep); err == nil {
			_ = durable.WriteFile(ctx, path, data, 0o600) // as before, when it fails
		}
	}
}

// survey returns the entry of the session in the folder d, starting from what is
// known of it. found is false when there is nothing to list.
func (s *Store) survey(d fs.DirEntry, old entry) (e entry, found bool) {
	id := ID(d.Name())
	if d.Type()&fs.ModeSymlink != 0 {
		return s.problem(id, old, &DamagedError{Path: s.dir(id), Err: durable.ErrLink}), true
	}
	path := filepath.Join(s.dir(id), "log")
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && hollow(s.dir(id)):
		return entry{}, false
	case err == nil && old.ID == id && info.Size() == old.Size && info.ModTime().UnixNano() == old.Mtime:
		return old, true
	}
	f, err := durable.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return s.problem(id, old, &DamagedError{Path: path, Err: err}), true
	}
	defer f.Close()
	// Size and time of the open file, and before reading: what is appended
	// meanwhile is left to the next listing.
	if info, err = f.Stat(); err != nil {
		return s.problem(id, old, &DamagedError{Path: path, Err: err}), true
	}
	if old.ID == id && info.Size() > old.Size {
		if e, err = tally(path, f, info, old); err == nil {
			return e, true
		}
	}
	if e, err = tally(path, f, info, entry{}); err == nil && e.ID != id {
		err = &DamagedError{Path: path, Reason: "its first record is missing or of another session"}
	}
	if err != nil {
		if old.ID == "" {
			old = e // what could be read
		}
		return s.problem(id, old, err), true
	}
	return e, true
}

func (s *Store) problem(id ID, known entry, err error) entry {
	known.ID, known.Problem = id, err.Error()
	return known
}

// tally adds to e what the log says after e.Size. A torn end is no error: the
// record may be being written.
func tally(path string, f *os.File, info fs.FileInfo, e entry) (entry, error) {
	sc := scan(path, io.NewSectionReader(f, e.Size, info.Size()-e.Size), info.Size(), e.Size, e.Sum)
	if e.Size == 0 {
		if _, err := sc.head(); err != nil {
			return e, err
		}
	}
	for {
		fr, err := sc.next()
		if errors.Is(err, io.EOF) || errors.Is(err, errTorn) {
			e.Size, e.Sum, e.Mtime = sc.end, sc.sum, info.ModTime().UnixNano()
			return e, nil
		}
		if err != nil {
			return e, err
		}
		switch fr.kind {
		case ItemAdded{}.kind(), CallStarted{}.kind(): // nothing for a summary
			continue
		}
		r, err := fr.record()
		if err != nil {
			return e, sc.damaged("%v", err)
		}
		e.add(r)
	}
}
