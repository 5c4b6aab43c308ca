package workspace

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"go.uber.org/zap"

	"github.com/lakecode/lakecode/session/durable"
)

// What is remembered of the texts that were read, in bytes, so that a refusal
// can show what has changed since.
const (
	maxSeenText  = 128 << 10
	maxSeenTotal = 2 << 20
)

const (
	readsName   = "reads"
	readsHeader = "lakecode reads 1"
	maxReads    = 16 << 20 // bytes of the file; what is beyond is forgotten
)

// Seen is what the conversation last saw of a file.
type Seen struct {
	Hash [sha256.Size]byte
	Text []byte // nil when it is no longer remembered; do not change it
}

// Is reports whether data is what was seen. What an editor changes by saving a
// buffer that was seen, such as line ends, makes no difference.
func (s Seen) Is(data []byte) bool {
	return s.Hash == sha256.Sum256(data) || s.Text != nil && clean(string(s.Text), data)
}

// reads remembers them, and in a file beside the journal, so that a session
// that is opened again need not read again.
type reads struct {
	file string // empty: in memory only
	log  *zap.Logger

	mu    sync.Mutex // guards all below
	seen  map[string]Seen
	texts []string // paths whose texts are kept, the oldest first
	total int      // bytes of those texts
	ready bool     // the file has its header
	lame  bool     // the file cannot be written; said once
}

// MarkRead notes that the conversation has seen data as the content of p.
func (w *Workspace) MarkRead(p Path, data []byte) {
	w.reads.mark(p.Abs, data)
}

// WasRead returns what the conversation last saw of p, which need not be the
// present content: see [Seen.Is].
func (w *Workspace) WasRead(p Path) (Seen, bool) {
	w.reads.mu.Lock()
	defer w.reads.mu.Unlock()
	s, ok := w.reads.seen[p.Abs]
	return s, ok
}

func (r *reads) mark(abs string, data []byte) {
	s := Seen{Hash: sha256.Sum256(data)}
	r.mu.Lock()
	defer r.mu.Unlock()
	old, had := r.seen[abs]
	if had && old.Hash == s.Hash && old.Text != nil {
		return
	}
	r.forget(abs)
	if len(data) <= maxSeenText {
		s.Text = append(make([]byte, 0, len(data)), data...)
		r.texts = append(r.texts, abs)
		r.total += len(data)
		for r.total > maxSeenTotal {
			r.forget(r.texts[0])
		}
	}
	r.seen[abs] = s
	if !had || old.Hash != s.Hash {
		r.store(abs, s)
	}
}

// forget drops the text of a path.
func (r *reads) forget(abs string) {
	for i, p := range r.texts {
		if p == abs {
			s := r.seen[abs]
			r.total -= len(s.Text)
			s.Text = nil
			r.seen[abs] = s
			r.texts = append(r.texts[:i], r.texts[i+1:]...)
			return
		}
	}
}

// store appends one line. Losing it costs the model one more read, so it is not
// synced and an error is no failure.
func (r *reads) store(abs string, s Seen) {
	if r.file == "" || r.lame || strings.ContainsAny(abs, "\n\r") {
		return
	}
	line := hex.EncodeToString(s.Hash[:]) + " " + abs + "\n"
	if !r.ready {
		line = readsHeader + "\n" + line
	}
	err := os.MkdirAll(filepath.Dir(r.file), 0o700)
	if err == nil {
		var f *os.File
		if f, err = durable.OpenFile(r.file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600); err == nil {
			_, err = f.WriteString(line)
			err = firstErr(err, f.Close())
		}
	}
	if err != nil {
		r.lame = true
		r.log.Warn("what was read is not remembered over a restart", zap.Error(err))
		return
	}
	r.ready = true
}

// load reads the lines of an earlier process; the last of a path counts, and
// one that is damaged only means that the file is read once more.
func (r *reads) load(dir string, log *zap.Logger) {
	r.seen, r.log = map[string]Seen{}, log
	if dir == "" {
		return
	}
	r.file = filepath.Join(dir, readsName)
	f, err := durable.OpenFile(r.file, os.O_RDONLY, 0)
	if err != nil {
		return
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	if !sc.Scan() {
		return
	}
	if sc.Text() != readsHeader {
		r.lame = true // of a newer program: neither understood nor mixed
		return
	}
	r.ready = true
	for n := 0; sc.Scan() && n < maxReads; n += len(sc.Bytes()) {
		hash, abs, ok := strings.Cut(sc.Text(), " ")
		raw, err := hex.DecodeString(hash)
		if ok && err == nil && len(raw) == sha256.Size {
			r.seen[abs] = Seen{Hash: [sha256.Size]byte(raw)}
		}
	}
}

func firstErr(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
