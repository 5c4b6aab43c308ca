package convo

import (
	"github.com/lakecode/lakecode/agent"
	"github.com/lakecode/lakecode/providers"
	"github.com/lakecode/lakecode/session"
)

// message is what enters the owner's mailbox.
type message interface{ isMessage() }

type receipt struct {
	agent.Receipt
	// need holds the queued messages whose connection must be looked up before
	// the queue can be resumed.
	need []agent.Queued
	err  error
}

type snapshot struct {
	transcript agent.Transcript
	state      agent.State
	err        error
}

type (
	// commandMsg is a command of a person. For Submit, accept is set, or refusal,
	// which holds unless the message was accepted before; resolved and problem
	// are for ResumeQueue.
	commandMsg struct {
		cmd      agent.Command
		accept   accepted
		refusal  error
		resolved map[string]providers.Snapshot
		problem  string
		reply    chan receipt // capacity 1
	}
	snapshotMsg struct {
		before string
		limit  int
		reply  chan snapshot // capacity 1
	}

	// factMsg and recordsMsg come from the turn that they name.
	factMsg struct {
		turn string
		fact agent.Fact
	}
	recordsMsg struct {
		turn  string
		recs  []session.Record // stored, or kept for the save
		facts []agent.Fact
	}
	showMsg struct{ in agent.Interaction }
	hideMsg struct{ id, how string }

	// The final messages of workers.
	storedMsg struct{ err error } // the accepting worker
	endedMsg  struct {
		end      session.End
		failure  *agent.Failure
		panicked bool
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
