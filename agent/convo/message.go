package convo

import (
	"context"
	"slices"
	"sync"

	"github.com/lakecode/lakecode/agent"
	"github.com/lakecode/lakecode/providers"
	"github.com/lakecode/lakecode/session"
)

// message is what enters the owner's mailbox.
type message interface{ isMessage() }

type receipt struct {
	agent.Receipt
	err error
}

type snapshot struct {
	transcript agent.Transcript
	state      agent.State
	err        error
}

type (
	// commandMsg is a command of a person. accept is set for Submit; resolved
	// and problem for ResumeQueue.
	commandMsg struct {
		cmd      agent.Command
		accept   accepted
		resolved map[string]providers.Snapshot
		problem  string
		reply    chan receipt
	}
	snapshotMsg struct {
		before string
		limit  int
		reply  chan snapshot
	}

	factMsg    struct{ fact agent.Fact }
	recordsMsg struct{ recs []session.Record } // stored, or kept for the save
	showMsg    struct{ in agent.Interaction }
	hideMsg    struct{ id, how string }

	// The final messages of workers.
	storedMsg struct{ err error } // the accepting worker
	endedMsg  struct {
		end     session.End
		failure *agent.Failure
	}
	savedMsg struct{ err error }
)

func (commandMsg) isMessage()  {}
func (snapshotMsg) isMessage() {}
func (factMsg) isMessage()     {}
func (recordsMsg) isMessage()  {}
func (showMsg) isMessage()     {}
func (hideMsg) isMessage()     {}
func (storedMsg) isMessage()   {}
func (endedMsg) isMessage()    {}
func (savedMsg) isMessage()    {}

// book writes to the store and keeps what could not be written, in order, until
// a later write takes it along. Safe for concurrent use.
type book struct {
	store Store

	mu   sync.Mutex // guards debt, and makes appends keep its order
	debt []session.Record
}

func newBook(s Store) *book { return &book{store: s} }

// append writes the debt and recs. On an error recs become debt.
func (b *book) append(ctx context.Context, sync bool, recs ...session.Record) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	err := b.store.Append(ctx, sync, slices.Concat(b.debt, recs)...)
	if err != nil {
		b.debt = append(b.debt, recs...)
		return err
	}
	b.debt = nil
	return nil
}

// appendNew writes recs, or nothing at all: on an error they are forgotten.
func (b *book) appendNew(ctx context.Context, recs ...session.Record) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.store.Append(ctx, true, slices.Concat(b.debt, recs)...); err != nil {
		return err
	}
	b.debt = nil
	return nil
}
