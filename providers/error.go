package providers

import (
	"fmt"
	"strings"
	"time"
)

// Kind sorts failures by what the caller, or the person, can do about them.
type Kind string

// The kinds (design/providers 10.2).
const (
	Auth          Kind = "auth"          // 401: the key is wrong or missing
	Permission    Kind = "permission"    // 403
	NotFound      Kind = "notFound"      // 404: address or model
	RateLimited   Kind = "rateLimited"   // 429, may pass by itself
	Quota         Kind = "quota"         // 402, or 429 that says that money is out
	TooLong       Kind = "tooLong"       // the context does not fit the model's window
	Invalid       Kind = "invalid"       // other 4xx: the request was refused
	Filtered      Kind = "filtered"      // refused by a content filter
	Overloaded    Kind = "overloaded"    // 408, 409, 5xx
	Network       Kind = "network"       // no connection, or it broke
	Timeout       Kind = "timeout"       // the server went silent
	BrokenStream  Kind = "protocol"      // not what the protocol allows, a cut stream included
	Cancelled     Kind = "cancelled"     // the caller's context ended
	Misconfigured Kind = "misconfigured" // refused before the network
)

// Error is a failure of a model call. Its text names the connection, the model,
// the status and the server's own message, with keys redacted, and is fit to be
// shown. Err, when set, is the cause and must not be shown.
type Error struct {
	Kind       Kind
	Provider   string // what a person calls the connection
	Model      string
	Status     int           // HTTP status; 0 when there was none
	Message    string        // the server's or our own words, redacted
	Next       string        // what to do about it; may be empty
	RetryAfter time.Duration // 0 when the server gave no hint
	Err        error
}

// Error returns the text for a person, in one line without Next.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Provider != "" {
		b.WriteString(e.Provider)
	}
	if e.Model != "" {
		fmt.Fprintf(&b, " (%s)", e.Model)
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	if e.Status != 0 {
		fmt.Fprintf(&b, "HTTP %d: ", e.Status)
	}
	b.WriteString(e.Message)
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
