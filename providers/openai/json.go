package openai

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"unicode/utf8"
)

// The functions below walk JSON that json.Valid has accepted. Decoding by
// reflection would cost more than everything else that is done for a token, and
// a struct cannot say "a string here, but an object or null from that server".

// members walks the members of a JSON object. A value that is no object has none.
type members struct {
	b []byte
	i int
}

func object(raw []byte) members {
	if len(raw) == 0 || raw[0] != '{' {
		return members{}
	}
	return members{raw, 1}
}

// next returns the next key, as it is written between its quotes, and its value.
func (m *members) next() (key, val []byte, ok bool) {
	i := space(m.b, m.i)
	if i < len(m.b) && m.b[i] == ',' {
		i = space(m.b, i+1)
	}
	if i >= len(m.b) || m.b[i] != '"' {
		return nil, nil, false
	}
	end := skip(m.b, i)
	key = m.b[i+1 : end-1]
	i = space(m.b, space(m.b, end)+1) // over the colon
	m.i = skip(m.b, i)
	return key, m.b[i:m.i], true
}

// elements walks the elements of a JSON array. A value that is no array has none.
type elements struct {
	b []byte
	i int
}

func array(raw []byte) elements {
	if len(raw) == 0 || raw[0] != '[' {
		return elements{}
	}
	return elements{raw, 1}
}

func (e *elements) next() (val []byte, ok bool) {
	i := space(e.b, e.i)
	if i < len(e.b) && e.b[i] == ',' {
		i = space(e.b, i+1)
	}
	if i >= len(e.b) || e.b[i] == ']' {
		return nil, false
	}
	e.i = skip(e.b, i)
	return e.b[i:e.i], true
}

// get returns the value of a member, or nil.
func get(raw []byte, key string) (val []byte) {
	for m := object(raw); ; {
		k, v, ok := m.next()
		if !ok {
			return val
		}
		if string(k) == key {
			val = v
		}
	}
}

func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// skip returns the index behind the value that begins at i.
func skip(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			i = skipString(b, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\n', '\r', '\t':
			i++
		default:
			for i < len(b) && !delimiter(b[i]) {
				i++
			}
		}
		if depth <= 0 {
			return i
		}
	}
	return len(b)
}

// delimiter reports whether c ends a number or a literal.
func delimiter(c byte) bool {
	return c == ',' || c == '}' || c == ']' || c == ' ' || c == '\n' || c == '\r' || c == '\t'
}

// skipString returns the index behind the string whose quote is at i. It looks
// at each byte a constant number of times, however many are escaped.
func skipString(b []byte, i int) int {
	for i++; i < len(b); {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return len(b)
		}
		for end := i + n; i <= end; {
			esc := bytes.IndexByte(b[i:end], '\\')
			if esc < 0 {
				return end + 1
			}
			i += esc + 2 // over what is escaped, perhaps the quote
		}
	}
	return len(b)
}

// str returns the value of a JSON string, and "" for every other value. Bytes
// that are no UTF-8 become U+FFFD.
func str(raw []byte) string {
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	s := raw[1 : len(raw)-1]
	if bytes.IndexByte(s, '\\') < 0 && utf8.Valid(s) {
		return string(s)
	}
	var out string
	if json.Unmarshal(raw, &out) != nil {
		return ""
	}
	return out
}

// number returns a whole number that is written as a number or as a string.
func number(raw []byte) (int, bool) {
	if len(raw) > 0 && raw[0] == '"' {
		raw = raw[1 : len(raw)-1]
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<40 {
		return 0, false
	}
	return int(f), true
}

// null reports whether a member is absent or null.
func null(raw []byte) bool { return len(raw) == 0 || raw[0] == 'n' }
