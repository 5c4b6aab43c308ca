package agent

import "fmt"

// Code names a refusal. The words are part of the protocol.
type Code string

// The codes of refused commands and requests.
const (
	Busy            Code = "busy"            // not while work is running
	Blocked         Code = "blocked"         // the last save failed; RetrySave first
	AlreadyResolved Code = "alreadyResolved" // the interaction is decided or gone
	NoHuman         Code = "noHuman"         // nobody is there to answer
	BadModel        Code = "badModel"        // connection or model cannot be used
	BadRequest      Code = "badRequest"      // an argument is wrong
	NotFound        Code = "notFound"        // no such session, message or interaction
	NotSaved        Code = "notSaved"        // the message could not be stored and was not accepted
	Locked          Code = "locked"          // another process has the session open
	Damaged         Code = "damaged"         // a stored file cannot be read; it is left as it is
	Closed          Code = "closed"          // the conversation is closing
	Unsupported     Code = "unsupported"     // this build or mode does not do that
)

// Error is a refusal for a person: Text says what is wrong, Next what to do.
type Error struct {
	Code Code
	Text string
	Next string
	Err  error
}

// Error returns Text and Next.
func (e *Error) Error() string {
	if e.Next == "" {
		return e.Text
	}
	return e.Text + " " + e.Next
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an Error.
func Errorf(code Code, next, format string, args ...any) *Error {
	return &Error{Code: code, Next: next, Text: fmt.Sprintf(format, args...)}
}
