package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// ErrNobody is returned by an Asker when no person is connected.
var ErrNobody = errors.New("nobody is connected who could answer")

type askIn struct {
	Question string   `json:"question" jsonschema:"the question, one or two sentences"`
	Context  string   `json:"context,omitempty" jsonschema:"why you ask and what hangs on the answer"`
	Options  []Option `json:"options,omitempty" jsonschema:"answers to choose from, the recommended one first; at most 9"`
	FreeText bool     `json:"allow_free_text,omitempty" jsonschema:"also take an answer in the person's own words"`
	Multi    bool     `json:"multi_select,omitempty" jsonschema:"several options may be chosen"`
}

const askDescription = `Ask the person a question and wait for the answer. The only way to ask: a question in your text ends the turn.
Use it when a wrong guess would cost work and the files cannot tell. Not for permission to use a tool.
A skipped question means: act on the assumption you stated, and do not ask again.`

// NewAsk makes ask_user (alias ask_tool). Without options free text is taken.
// With nobody connected a call fails at once; a skip is a success (spec 20).
func NewAsk() (Tool, error) {
	return New(Spec{Name: "ask_user", Aliases: []string{"ask_tool"}, Description: askDescription, Tier: Read, Exclusive: true}, runAsk)
}

func runAsk(ctx context.Context, in askIn, io *IO) (Output, error) {
	if strings.TrimSpace(in.Question) == "" {
		return Output{}, Errorf(BadArguments, "Nothing was asked.", "The question is empty.")
	}
	if len(in.Options) > 9 {
		return Output{}, Errorf(BadArguments, "Nothing was asked. Offer at most 9.", "%d options are too many.", len(in.Options))
	}
	for i, o := range in.Options {
		if strings.TrimSpace(o.Label) == "" {
			return Output{}, Errorf(BadArguments, "Nothing was asked.", "Option %d has no label.", i+1)
		}
	}
	if io.Ask == nil {
		return Output{}, nobody()
	}
	a, err := io.Ask.Ask(ctx, Question{
		Call: io.Call.ID, Text: in.Question, Context: in.Context, Options: in.Options,
		FreeText: in.FreeText || len(in.Options) == 0, Multi: in.Multi,
	})
	switch {
	case errors.Is(err, ErrNobody):
		return Output{}, nobody()
	case err != nil:
		return Output{}, Errorf(Cancelled, "", "Not answered: %v.", err)
	case a.Skipped:
		return Output{Text: "The person skipped the question. Act on the assumption you stated and do not ask again."}, nil
	}
	var b strings.Builder
	for _, c := range a.Chosen {
		fmt.Fprintf(&b, "The person chose: %s\n", in.Options[c].Label)
	}
	if a.Text != "" {
		fmt.Fprintf(&b, "The person answered: %s\n", a.Text)
	}
	return Output{Text: strings.TrimSuffix(b.String(), "\n")}, nil
}

func nobody() *Error {
	return Errorf(NotAllowed, "Go on with the safest assumption and say in your answer which one you made; do not do anything that cannot be undone on the strength of it.",
		"Not asked: %v.", ErrNobody)
}
