package rehearsal

import (
	"fmt"
	"slices"
)

// Limits of a script. They bound what a mistyped number can cost.
const (
	maxSteps  = 500_000 // after repeat is unrolled
	maxRepeat = 100_000
	maxTokens = 1_000_000
	maxBomb   = 64 << 30 // bytes, unpacked
)

// Script is what a model will say, answer by answer. It is immutable and safe
// for concurrent use; the zero Script answers nothing.
type Script struct {
	name    string
	models  []string
	answers []answer
}

// answer is what one request gets.
type answer struct {
	line  int // where it begins
	wants []expectation
	steps []placed
	usage usage
}

// placed is a step with its place in the script.
type placed struct {
	line int
	text string // as written, shortened
	step step
}

// Name returns the name given to [Parse].
func (s Script) Name() string { return s.name }

// Answers returns how many requests the script answers.
func (s Script) Answers() int { return len(s.answers) }

// Models returns the models that a server of the script lists.
func (s Script) Models() []string {
	if len(s.models) == 0 {
		return []string{"rehearsal"}
	}
	return slices.Clone(s.models)
}

// gates lists the names of the script's gates.
func (s Script) gates() []string {
	var names []string
	for _, a := range s.answers {
		for _, p := range a.steps {
			if g, ok := p.step.(gateStep); ok {
				names = append(names, g.name)
			}
		}
	}
	return names
}

// Error is a mistake in a script.
type Error struct {
	Script string
	Line   int // from 1
	Text   string
}

// Error returns the place and the mistake.
func (e *Error) Error() string { return fmt.Sprintf("%s:%d: %s", e.Script, e.Line, e.Text) }
