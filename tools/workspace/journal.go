package workspace

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/lakecode/lakecode/session/durable"
)

// The layout of a journal folder.
const (
	objects = "objects" // former contents, named by their SHA-256
	pending = "pending" // intents of changes that are under way
	changes = "changes" // intents of changes that have ended, in the order of their names
)

// How a change ended.
const (
	done   = "done"
	undone = "undone"
)

const intentVersion = 1

// maxIntent bounds a record in bytes.
const maxIntent = 16 << 20

// lockRetry is how often a journal that another process uses is tried again.
const lockRetry = 5 * time.Millisecond

// intent is the record of a change set: enough to undo it.
type intent struct {
	Version int          `json:"version"`
	ID      string       `json:"id"`
	Call    string       `json:"call"`
	Title   string       `json:"title"`
	Root    string       `json:"root"`
	Time    time.Time    `json:"time"`
	Files   []intentFile `json:"files"`
	Folders []string     `json:"folders,omitzero"` // made for it, the outer first
	End     string       `json:"end,omitzero"`
}

// intentFile is one file: hashes in hexadecimal, empty where there is no file.
type intentFile struct {
	Rel    string      `json:"path"`
	Before string      `json:"before,omitzero"`
	After  string      `json:"after,omitzero"`
	Mode   fs.FileMode `json:"mode"` // permission bits
}

// journal is a folder of intents and pre-images. Several processes may share it.
type journal struct{ dir string }

// intent describes what is about to be done.
func (w *Workspace) intent(cs ChangeSet, steps []step) intent {
	now := time.Now().UTC()
	in := intent{
		Version: intentVersion, Call: cs.Call, Title: cs.Title, Root: w.real, Time: now,
		ID: fmt.Sprintf("%s-%s", now.Format("20060102T150405.000000000"), rand.Text()[:8]),
	}
	for _, s := range steps {
		in.Files = append(in.Files, intentFile{Rel: s.Path.Rel, Before: digest(s.before), After: digest(s.Data), Mode: s.mode.Perm()})
		if s.Data == nil {
			continue
		}
		var missing []string
		for dir := filepath.Dir(s.Path.Rel); dir != "."; dir = filepath.Dir(dir) {
			if _, err := w.root.Lstat(dir); err == nil {
				break
			}
			missing = append(missing, dir)
		}
		for _, dir := range slices.Backward(missing) {
			if !slices.Contains(in.Folders, dir) {
				in.Folders = append(in.Folders, dir)
			}
		}
	}
	return in
}

func digest(data []byte) string {
	if data == nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// lock keeps other processes from this journal, and waits for them until ctx
// ends. Whoever has it knows that every pending intent is of a dead process.
func (j journal) lock(ctx context.Context) (unlock func(), err error) {
	for _, dir := range []string{"", objects, pending, changes} {
		if err := os.MkdirAll(filepath.Join(j.dir, dir), 0o700); err != nil {
			return nil, err
		}
	}
	f, err := durable.OpenFile(filepath.Join(j.dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(lockRetry)
	defer tick.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil // closing unlocks
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(err, f.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), f.Close())
		case <-tick.C:
		}
	}
}

// begin puts pre-images and intent on the disk.
func (j journal) begin(ctx context.Context, in intent, steps []step) error {
	for i, f := range in.Files {
		if f.Before == "" {
			continue
		}
		if _, err := j.object(f.Before); err == nil {
			continue
		}
		if err := durable.WriteFile(ctx, filepath.Join(j.dir, objects, f.Before), steps[i].before, 0o600); err != nil {
			return err
		}
	}
	return j.write(ctx, pending, in)
}

// finish moves the intent to the changes that have ended.
func (j journal) finish(ctx context.Context, in intent, how string) error {
	in.End = how
	if err := j.write(ctx, changes, in); err != nil {
		return err
	}
	return os.Remove(j.file(pending, in.ID))
}

func (j journal) file(where, id string) string { return filepath.Join(j.dir, where, id+".json") }

func (j journal) write(ctx context.Context, where string, in intent) error {
	raw, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return durable.WriteFile(ctx, j.file(where, in.ID), append(raw, '\n'), 0o600)
}

// object returns a pre-image, checked against its name.
func (j journal) object(hash string) ([]byte, error) {
	data, err := durable.ReadFile(filepath.Join(j.dir, objects, hash), MaxWritable)
	if err != nil {
		return nil, err
	}
	if digest(data) != hash {
		return nil, fmt.Errorf("pre-image %s is damaged", hash)
	}
	return data, nil
}

// sweep removes what a process left that was killed while it wrote a record.
// The lock must be held: then nobody is writing one.
func (j journal) sweep() {
	for _, dir := range []string{objects, pending, changes} {
		entries, err := os.ReadDir(filepath.Join(j.dir, dir))
		if err != nil {
			continue
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), durable.TempPrefix) {
				_ = os.Remove(filepath.Join(j.dir, dir, e.Name())) // one that stays does no harm
			}
		}
	}
}

// open lists the intents that have not ended. A record that cannot be read is
// named in bad and left where it is.
func (j journal) open() (list []intent, bad []string, err error) {
	entries, err := os.ReadDir(filepath.Join(j.dir, pending))
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries { // sorted by name, which is the order of time
		if !strings.HasSuffix(e.Name(), ".json") || strings.HasPrefix(e.Name(), durable.TempPrefix) {
			continue
		}
		in, err := j.read(e.Name())
		if err != nil {
			bad = append(bad, fmt.Sprintf("%s: %v", e.Name(), err))
			continue
		}
		list = append(list, in)
	}
	return list, bad, nil
}

func (j journal) read(name string) (intent, error) {
	var in intent
	raw, err := durable.ReadFile(filepath.Join(j.dir, pending, name), maxIntent)
	if err != nil {
		return in, err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return in, err
	}
	if in.Version != intentVersion {
		return in, fmt.Errorf("has version %d, this program knows %d", in.Version, intentVersion)
	}
	return in, nil
}
