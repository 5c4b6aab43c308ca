package profiles

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"github.com/lakecode/lakecode/providers"
)

// source is the text of the file, for places in errors.
type source struct {
	path string
	text []byte
}

// at makes an error about the byte at offset.
func (s *source) at(offset int, format string, args ...any) error {
	before := s.text[:min(max(offset, 0), len(s.text))]
	line := bytes.Count(before, []byte{'\n'}) + 1
	col := len([]rune(string(before[bytes.LastIndexByte(before, '\n')+1:]))) + 1
	return fmt.Errorf("%s, line %d, column %d: %s", s.path, line, col, fmt.Sprintf(format, args...))
}

// syntax checks that the text is one JSON value.
func (s *source) syntax() error {
	var v json.RawMessage
	err := json.Unmarshal(s.text, &v)
	var bad *json.SyntaxError
	switch {
	case err == nil:
		return nil
	case len(bytes.TrimSpace(s.text)) == 0:
		return fmt.Errorf("%s is empty; delete it, or write a list of connections", s.path)
	case errors.As(err, &bad):
		// The offset counts the byte that was wrong, except at the end of the text.
		off := int(bad.Offset) - 1
		if off >= len(s.text)-1 && bytes.HasPrefix([]byte(bad.Error()), []byte("unexpected end")) {
			off = len(s.text)
		}
		return s.at(off, "this is not JSON (%s)", bad)
	}
	return s.at(0, "this is not JSON")
}

// value is a JSON value and its place in the file.
type value struct {
	raw json.RawMessage
	off int
}

// field says how a member of an object is read.
type field struct {
	want string // what it must be, for errors
	into any    // for json.Unmarshal; a func(value) error is called instead
}

// object reads a JSON object whose members must all be in known, each once.
func (s *source) object(v value, what string, known map[string]field) error {
	if v.raw[0] != '{' {
		return s.at(v.off, "%s must be an object", what)
	}
	seen := map[string]bool{}
	return s.members(v, func(key string, keyOff int, m value) error {
		f, ok := known[key]
		switch {
		case !ok:
			return s.at(keyOff, "unknown field %s in %s", shown(key), what)
		case seen[key]:
			return s.at(keyOff, "field %q is there twice in %s", key, what)
		}
		seen[key] = true
		if m.raw[0] == 'n' {
			return nil // null is as good as nothing
		}
		if read, ok := f.into.(func(value) error); ok {
			return read(m)
		}
		// The decoder's own text would quote the value.
		if json.Unmarshal(m.raw, f.into) != nil {
			return s.at(m.off, "%s must be %s", key, f.want)
		}
		return nil
	})
}

// members calls f for each member of an object, with places in the file.
func (s *source) members(v value, f func(key string, keyOff int, m value) error) error {
	dec := json.NewDecoder(bytes.NewReader(v.raw))
	if _, err := dec.Token(); err != nil {
		return s.at(v.off, "this is not JSON")
	}
	for dec.More() {
		keyOff := v.off + int(dec.InputOffset())
		keyOff += bytes.IndexByte(s.text[keyOff:], '"')
		tok, err := dec.Token()
		key, ok := tok.(string)
		if err != nil || !ok {
			return s.at(keyOff, "this is not JSON")
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return s.at(v.off+int(dec.InputOffset()), "this is not JSON")
		}
		if err := f(key, keyOff, value{raw, v.off + int(dec.InputOffset()) - len(raw)}); err != nil {
			return err
		}
	}
	return nil
}

// list calls f for each element of an array.
func (s *source) list(v value, what string, f func(value) error) error {
	if v.raw[0] != '[' {
		return s.at(v.off, "%s must be a list", what)
	}
	dec := json.NewDecoder(bytes.NewReader(v.raw))
	if _, err := dec.Token(); err != nil {
		return s.at(v.off, "this is not JSON")
	}
	for dec.More() {
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return s.at(v.off+int(dec.InputOffset()), "this is not JSON")
		}
		if err := f(value{raw, v.off + int(dec.InputOffset()) - len(raw)}); err != nil {
			return err
		}
	}
	return nil
}

// secret is a credential in the file. The text is a Secret from here on.
type secret struct{ providers.Secret }

var errSecretText = errors.New("a key must be text")

// UnmarshalJSON takes a JSON string. Its error never quotes the input.
func (s *secret) UnmarshalJSON(raw []byte) error {
	var v string
	if json.Unmarshal(raw, &v) != nil {
		return errSecretText
	}
	s.Secret = providers.NewSecret(v)
	return nil
}

var plain = regexp.MustCompile(`^[A-Za-z][A-Za-z._-]{0,31}$`)

// shown quotes a word of the file, unless it may be a credential that stands in
// the wrong place.
func shown(s string) string {
	if !plain.MatchString(s) || len(s) > 3 && (s[:3] == "sk-" || s[:3] == "pk-") {
		return "(not shown, it may be a key)"
	}
	return fmt.Sprintf("%q", s)
}
