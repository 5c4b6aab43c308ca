package convo

import (
	"context"
	"slices"
	"sync"

	"github.com/lakecode/lakecode/agent"
)

// gate lets one interaction at a time reach the person, in order of arrival. An
// answer and the end of the asker's context may race: exactly one wins. Safe
// for concurrent use.
type gate struct {
	// Called with mu held, so that what is shown follows the transitions in their
	// order. They may wait for the owner, which never enters the gate.
	show func(agent.Interaction)
	hide func(id string, how string)

	mu     sync.Mutex // guards all below
	people int        // attached
	active *pending
	wait   []*pending
}

type pending struct {
	in     agent.Interaction
	answer chan agent.Decision // capacity 1, sent at most once
	done   bool
}

// attach says that a person can answer until release is called. When the last
// one goes, waiting askers stay: the person may come back.
func (g *gate) attach() (release func()) {
	g.mu.Lock()
	g.people++
	g.mu.Unlock()
	var once sync.Once
	return func() {
		once.Do(func() {
			g.mu.Lock()
			g.people--
			g.mu.Unlock()
		})
	}
}

// ask waits for a person's decision. It fails at once when nobody is attached.
func (g *gate) ask(ctx context.Context, in agent.Interaction) (agent.Decision, error) {
	g.mu.Lock()
	if g.people == 0 {
		g.mu.Unlock()
		return agent.Decision{}, agent.Errorf(agent.NoHuman, "", "Nobody is connected who could answer.")
	}
	a := &pending{in: in, answer: make(chan agent.Decision, 1)}
	g.wait = append(g.wait, a)
	g.advance()
	g.mu.Unlock()
	select {
	case d := <-a.answer:
		return d, nil
	case <-ctx.Done():
		if d, ok := g.withdraw(a); ok {
			return d, nil
		}
		return agent.Decision{}, context.Cause(ctx)
	}
}

// resolve decides the interaction on display; AlreadyResolved for any other id.
func (g *gate) resolve(id string, d agent.Decision) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	a := g.active
	if a == nil || a.in.ID != id {
		return agent.Errorf(agent.AlreadyResolved, "", "This question is already answered or gone.")
	}
	if err := fits(a.in, d); err != nil {
		return err
	}
	a.done, g.active = true, nil
	how := "answered"
	if d.Skip {
		how = "skipped"
	}
	g.hide(id, how)
	a.answer <- d // after hide, so that the answer's effects follow its event
	g.advance()
	return nil
}

// fits checks a decision against what was asked: an empty answer is none.
func fits(in agent.Interaction, d agent.Decision) error {
	bad := func(format string, args ...any) error {
		return agent.Errorf(agent.BadRequest, "", format, args...)
	}
	if d.Skip {
		return nil
	}
	seen := map[int]bool{}
	for _, c := range d.Chosen {
		if c < 0 || c >= len(in.Options) || seen[c] {
			return bad("There is no option %d to choose, or it is chosen twice.", c)
		}
		seen[c] = true
	}
	switch {
	case len(d.Chosen) == 0 && d.Text == "":
		return bad("An answer needs a choice or a text; skip says that there is none.")
	case len(d.Chosen) > 1 && !in.Multi:
		return bad("Only one option can be chosen.")
	case d.Text != "" && !in.FreeText:
		return bad("This question takes no free text.")
	}
	return nil
}

func (g *gate) withdraw(a *pending) (agent.Decision, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if a.done {
		return <-a.answer, true // sent before done could be seen
	}
	a.done = true
	if g.active == a {
		g.active = nil
		g.hide(a.in.ID, "withdrawn")
	} else if i := slices.Index(g.wait, a); i >= 0 {
		g.wait = slices.Delete(g.wait, i, i+1)
	}
	g.advance()
	return agent.Decision{}, false
}

// advance shows the next interaction when none is on display. mu is held.
func (g *gate) advance() {
	if g.active != nil || len(g.wait) == 0 {
		return
	}
	g.active, g.wait = g.wait[0], g.wait[1:]
	g.show(g.active.in)
}
