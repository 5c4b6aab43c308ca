package providers

import (
	"errors"
	"fmt"
	"log/slog"
)

// Secret is a credential. Every way of printing or encoding it hides the value,
// so that a key cannot reach a log, an event, a stored file or a crash report
// by accident. The zero value is "no credential". Safe for concurrent use.
type Secret struct {
	// A pointer, because fmt prints what an unexported field holds without asking
	// the type's methods, but of a pointer only the address.
	v *string
}

const hidden = "[secret]"

var errSecret = errors.New("providers: a secret must not be serialised")

// NewSecret wraps v. The empty string makes the zero Secret.
func NewSecret(v string) Secret {
	if v == "" {
		return Secret{}
	}
	return Secret{&v}
}

// Reveal returns the value. Only the code that puts it on the wire, and the one
// that writes providers.json, may call it.
func (s Secret) Reveal() string {
	if s.v == nil {
		return ""
	}
	return *s.v
}

// IsZero reports whether there is no credential.
func (s Secret) IsZero() bool { return s.v == nil }

// String returns a fixed placeholder.
func (Secret) String() string { return hidden }

// GoString returns a fixed placeholder.
func (Secret) GoString() string { return hidden }

// Format writes a fixed placeholder for every verb, %x and %q included.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(hidden)) }

// LogValue hides the value from log/slog.
func (Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalJSON always fails.
func (Secret) MarshalJSON() ([]byte, error) { return nil, errSecret }

// MarshalText always fails.
func (Secret) MarshalText() ([]byte, error) { return nil, errSecret }

// MarshalBinary always fails; gob would otherwise skip the field silently.
func (Secret) MarshalBinary() ([]byte, error) { return nil, errSecret }
