package session

import (
	"errors"
	"fmt"
	"slices"
)

// Apply folds the next record into the archive. It refuses a record that cannot
// follow the ones before, and then changes nothing. So a caller that applies
// first and appends after it never writes a log that cannot be read.
//
// The archive takes over the record's slices and changes its own in place.
func (a *Archive) Apply(r Record) error {
	if err := a.apply(r); err != nil {
		return fmt.Errorf("record %s: %w", r.kind(), err)
	}
	return nil
}

func (a *Archive) apply(r Record) error {
	if c, ok := r.(Created); ok {
		return a.create(c)
	}
	if a.ID == "" {
		return errors.New("comes before the session is created")
	}
	switch r := r.(type) {
	case Accepted:
		return a.accept(r.Message)
	case Dropped:
		_, err := a.take(r.ID)
		return err
	case TurnStarted:
		return a.start(r)
	case Titled:
		a.Title = r.Title
		return nil
	case ItemAdded:
		t, err := a.running(r.Turn)
		if err != nil {
			return err
		}
		return t.add(r.Item)
	case CallStarted:
		t, err := a.running(r.Turn)
		if err != nil {
			return err
		}
		return t.begin(r.Call)
	case TurnEnded:
		t, err := a.running(r.Turn)
		if err != nil {
			return err
		}
		t.End = &r.End
		return nil
	}
	return errors.New("is of no known type")
}

func (a *Archive) create(c Created) error {
	switch {
	case a.ID != "":
		return fmt.Errorf("the session was created before, as %s", a.ID)
	case c.ID == "":
		return errors.New("has no id")
	}
	a.ID, a.Root, a.Created, a.Instructions = c.ID, c.Root, c.Time, c.Instructions
	return nil
}

func (a *Archive) accept(m Message) error {
	if m.ID == "" {
		return errors.New("the message has no id")
	}
	if slices.ContainsFunc(a.Queue, func(q Message) bool { return q.ID == m.ID }) ||
		slices.ContainsFunc(a.Turns, func(t Turn) bool { return t.Message.ID == m.ID }) {
		return fmt.Errorf("message %s was accepted before", m.ID)
	}
	a.Queue = append(a.Queue, m)
	return nil
}

// take removes a message from the queue.
func (a *Archive) take(id string) (Message, error) {
	i := slices.IndexFunc(a.Queue, func(m Message) bool { return m.ID == id })
	if i < 0 {
		return Message{}, fmt.Errorf("message %s is not in the queue", id)
	}
	m := a.Queue[i]
	a.Queue = slices.Delete(a.Queue, i, i+1)
	return m, nil
}

func (a *Archive) start(r TurnStarted) error {
	if n := len(a.Turns); n > 0 && a.Turns[n-1].End == nil {
		return fmt.Errorf("turn %s has not ended", a.Turns[n-1].Message.ID)
	}
	m, err := a.take(r.ID)
	if err != nil {
		return err
	}
	a.Turns = append(a.Turns, Turn{Message: m, Started: r.Time})
	return nil
}

// running returns the last turn, which must have the given id and no end.
func (a *Archive) running(id string) (*Turn, error) {
	if n := len(a.Turns); n > 0 {
		if t := &a.Turns[n-1]; t.Message.ID == id && t.End == nil {
			return t, nil
		}
	}
	return nil, fmt.Errorf("turn %s is not running", id)
}

func (t *Turn) add(it Item) error {
	switch {
	case it.Answer != nil && it.Result == nil && it.Note == nil:
	case it.Note != nil && it.Result == nil && it.Answer == nil:
	case it.Result != nil && it.Answer == nil && it.Note == nil:
		if err := t.open(it.Result.Call); err != nil {
			return err
		}
	default:
		return fmt.Errorf("item %s is not exactly one of answer, result and note", it.ID)
	}
	t.Items = append(t.Items, it)
	return nil
}

func (t *Turn) begin(call string) error {
	if err := t.open(call); err != nil {
		return err
	}
	made, _ := t.count(call)
	begun := 0
	for _, id := range t.CallsStarted {
		if id == call {
			begun++
		}
	}
	if begun >= made {
		return fmt.Errorf("call %s was started before", call)
	}
	t.CallsStarted = append(t.CallsStarted, call)
	return nil
}

// open says whether the call still lacks its result.
func (t *Turn) open(call string) error {
	made, answered := t.count(call)
	switch {
	case made == 0:
		return fmt.Errorf("call %s was not made", call)
	case answered >= made:
		return fmt.Errorf("call %s has its result already", call)
	}
	return nil
}

// count returns how often the turn's answers make a call with this id and how
// many results there are for it. Some servers use an id again in a later
// answer, so one may occur more than once.
func (t *Turn) count(call string) (made, answered int) {
	for _, it := range t.Items {
		switch {
		case it.Result != nil && it.Result.Call == call:
			answered++
		case it.Answer != nil:
			for _, c := range it.Answer.Calls {
				if c.ID == call {
					made++
				}
			}
		}
	}
	return made, answered
}
