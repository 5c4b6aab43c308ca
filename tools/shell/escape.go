package shell

// escape follows terminal control sequences (ECMA-48) through a stream.
type escape struct {
	state escapeState
	size  int // bytes of the sequence so far
}

type escapeState uint8

const (
	ground    escapeState = iota
	begun                 // after ESC
	control               // CSI: until a byte from @ to ~
	quoted                // OSC, DCS, SOS, PM, APC: until BEL or ESC \
	quotedEsc             // ESC inside of it
	charset               // ESC and an intermediate byte: until a final byte
)

// maxEscape bounds a sequence, in bytes: behind it text is text again, also
// when a binary file seemed to begin one.
const maxEscape = 4 << 10

// eat says whether c belongs to a sequence and is not text. A line end is text
// always, so that a broken sequence costs one line at most.
func (e *escape) eat(c byte) bool {
	if e.state == ground {
		if c != 0x1b {
			return false
		}
		*e = escape{state: begun}
		return true
	}
	if e.size++; e.size > maxEscape || c == '\n' || c == '\r' {
		e.state = ground
		return false
	}
	switch e.state {
	case begun:
		e.state = after(c)
	case control:
		if c >= '@' && c <= '~' {
			e.state = ground
		}
	case quoted:
		switch c {
		case 0x07:
			e.state = ground
		case 0x1b:
			e.state = quotedEsc
		}
	case quotedEsc:
		e.state = quoted
		if c == '\\' {
			e.state = ground
		}
	case charset:
		if c >= '0' {
			e.state = ground
		}
	}
	return true
}

// after is the state that the byte behind ESC leads to.
func after(c byte) escapeState {
	switch {
	case c == '[':
		return control
	case c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_':
		return quoted
	case c >= ' ' && c <= '/':
		return charset
	case c == 0x1b:
		return begun
	}
	return ground
}
