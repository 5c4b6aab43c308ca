package convo

import (
	"context"
	"slices"
	"sync"

	"github.com/lakecode/lakecode/session"
)

// Store is the log of one session; *session.Log implements it.
type Store interface {
	Append(ctx context.Context, sync bool, rs ...session.Record) error
	Close() error
}

// book writes to the store. What is owed to it, because it was only noted or
// could not be written, goes along with the next write, in order. Safe for
// concurrent use.
type book struct {
	store Store
	write sync.Mutex // held across a write, so that writes keep their order

	mu   sync.Mutex // guards debt; never held across a write
	debt []session.Record
}

func newBook(s Store) *book { return &book{store: s} }

// note leaves recs to the next write. It does not wait.
func (b *book) note(recs ...session.Record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.debt = append(b.debt, recs...)
}

// append writes the debt and recs. On an error recs become debt.
func (b *book) append(ctx context.Context, sync bool, recs ...session.Record) error {
	b.write.Lock()
	defer b.write.Unlock()
	b.note(recs...)
	return b.flush(ctx, sync, nil)
}

// appendNew writes recs durably, or nothing at all: on an error they are
// forgotten.
func (b *book) appendNew(ctx context.Context, recs ...session.Record) error {
	b.write.Lock()
	defer b.write.Unlock()
	return b.flush(ctx, true, recs)
}

// flush writes the debt and more. write is held.
func (b *book) flush(ctx context.Context, sync bool, more []session.Record) error {
	b.mu.Lock()
	n := len(b.debt)
	recs := slices.Concat(b.debt, more)
	b.mu.Unlock()
	if err := b.store.Append(ctx, sync, recs...); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.debt = slices.Clone(b.debt[n:])
	return nil
}

// owes reports whether anything is still to be written.
func (b *book) owes() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.debt) > 0
}
