package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/lakecode/lakecode/session/durable"
)

// Store creates, opens and lists the sessions of a home. It holds no state, so
// it is safe for concurrent use, also by several processes.
type Store struct{ home *Home }

// NewStore returns the store of a home.
func NewStore(h *Home) *Store { return &Store{home: h} }

func (s *Store) dir(id ID) string { return filepath.Join(s.home.Sessions(), string(id)) }

// valid says whether the id is one that Create makes, and so a safe name for a
// folder.
func valid(id ID) bool {
	u, err := uuid.Parse(string(id))
	return err == nil && u.String() == string(id)
}

// Create makes a new session for the workspace at root, a folder, and opens it.
// The session is on the disk when Create returns, with the instructions in. The
// caller closes the log.
func (s *Store) Create(ctx context.Context, root string, in []Instruction) (*Log, *Archive, error) {
	l, a, err := s.create(ctx, root, in)
	if err != nil {
		return nil, nil, fmt.Errorf("create a session for %s: %w", root, err)
	}
	return l, a, nil
}

func (s *Store) create(ctx context.Context, root string, in []Instruction) (*Log, *Archive, error) {
	root, err := realFolder(root)
	if err != nil {
		return nil, nil, err
	}
	u, err := uuid.NewV7()
	if err != nil {
		return nil, nil, err
	}
	c := Created{ID: ID(u.String()), Root: root, Time: time.Now().UTC(), Instructions: in}
	var enc encoder
	enc.out.Write(header())
	if _, err := enc.add(sumOf(header()), c.kind(), c); err != nil {
		return nil, nil, err
	}
	dir := s.dir(c.ID)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, nil, err
	}
	// The log appears whole or not at all; see hollow for what a crash leaves.
	err = durable.WriteFile(ctx, filepath.Join(dir, "log"), enc.out.Bytes(), 0o600)
	if err == nil {
		err = durable.SyncDir(s.home.Sessions())
	}
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	l, a, err := s.open(ctx, c.ID)
	if err != nil {
		return nil, nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.note()
	return l, a, nil
}

// realFolder returns the path of a folder without any link in it.
func realFolder(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	path, err = filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("is not a folder")}
	}
	return path, err
}

// Open locks a stored session, reads the whole log and folds it. An incomplete
// last record is cut off the log, kept beside it and reported in
// Archive.Repairs. A turn that was running when the process died has no End;
// nothing else is added or changed. The caller closes the log.
//
// Errors: [ErrNotFound], *[LockedError], *[NewerError], *[DamagedError] (also
// when the log cannot be read or is a link), the cause of ctx, and those of the
// file system when a repair cannot be stored. After any of them the files are
// as they were.
func (s *Store) Open(ctx context.Context, id ID) (*Log, *Archive, error) {
	if !valid(id) {
		return nil, nil, fmt.Errorf("session %s: %w", strconv.Quote(string(id)), ErrNotFound)
	}
	l, a, err := s.open(ctx, id)
	if err != nil {
		return nil, nil, fmt.Errorf("open session %s: %w", id, err)
	}
	return l, a, nil
}

func (s *Store) open(ctx context.Context, id ID) (*Log, *Archive, error) {
	dir := s.dir(id)
	path := filepath.Join(dir, "log")
	switch info, err := os.Lstat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, ErrNotFound
	case err != nil:
		return nil, nil, &DamagedError{Path: dir, Err: err}
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, nil, &DamagedError{Path: dir, Err: durable.ErrLink}
	case !info.IsDir(), hollow(dir):
		return nil, nil, ErrNotFound
	}
	// The log itself comes first, so that one that cannot be read is named.
	f, err := durable.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, &DamagedError{Path: path, Err: err}
	}
	lk, err := lock(id, dir)
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	l := &Log{dir: dir, path: path, lock: lk, f: f}
	a, err := l.load(ctx)
	if err == nil && a.ID != id {
		err = &DamagedError{Path: path, Reason: fmt.Sprintf("it is the log of session %s", a.ID)}
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close(), unlock(lk))
	}
	l.index = s.indexFile(a.Root)
	return l, a, nil
}

// hollow says whether dir is what a crash leaves while a session is created:
// there is no log yet, nor anything else that is worth something.
func hollow(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return e.Name() != "lock" && !strings.HasPrefix(e.Name(), durable.TempPrefix)
	})
}

// load reads and folds the log, and repairs its end.
func (l *Log) load(ctx context.Context) (*Archive, error) {
	info, err := l.f.Stat()
	if err != nil {
		return nil, err
	}
	s := scan(l.path, l.f, info.Size(), 0, 0)
	a, err := l.fold(ctx, s)
	torn := errors.Is(err, errTorn)
	switch {
	case err != nil && !torn:
		return nil, err
	case a.ID == "":
		// A log is born with its first record, so no crash can have torn it.
		return nil, &DamagedError{Path: l.path, Reason: "its first record is missing"}
	}
	l.entry.Size, l.entry.Sum = s.end, s.sum
	l.synced, l.noted = s.end, s.end
	if torn {
		kept, err := l.cut(ctx, info.Size())
		if err != nil {
			return nil, fmt.Errorf("repair %s: %w", l.path, err)
		}
		a.Repairs = append(a.Repairs, fmt.Sprintf("The last record of this session was incomplete, as after a crash. "+
			"Its %d bytes were moved to %s; everything before them is there.", info.Size()-s.end, kept))
	}
	return a, nil
}

// fold applies all sound records.
func (l *Log) fold(ctx context.Context, s *scanner) (*Archive, error) {
	a := &Archive{}
	if _, err := s.head(); err != nil {
		return nil, err
	}
	for {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		f, err := s.next()
		if errors.Is(err, io.EOF) {
			return a, nil
		}
		if err != nil {
			return a, err
		}
		r, err := f.record()
		if err == nil {
			err = a.Apply(r)
		}
		if err != nil {
			return nil, s.damaged("%v", err)
		}
		l.entry.add(r)
	}
}

// cut moves what lies behind the last sound record to a file of its own and
// returns its path.
func (l *Log) cut(ctx context.Context, size int64) (string, error) {
	end := l.entry.Size
	rest := make([]byte, size-end)
	if _, err := l.f.ReadAt(rest, end); err != nil {
		return "", err
	}
	kept := ""
	for n := 1; ; n++ {
		kept = l.path + ".torn-" + strconv.Itoa(n)
		if _, err := os.Lstat(kept); errors.Is(err, fs.ErrNotExist) {
			break
		} else if err != nil {
			return "", err
		}
	}
	if err := durable.WriteFile(ctx, kept, rest, 0o600); err != nil {
		return "", err
	}
	if err := l.f.Truncate(end); err != nil {
		return "", err
	}
	return kept, l.f.Sync()
}
