package files

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const bom = "\uFEFF"

// sniff is how many bytes decide whether a file that is not read whole is text.
const sniff = 8 << 10

// text is the content of a file as characters.
type text struct {
	s        string // without byte order mark
	encoding string // empty: UTF-8
	bom      bool
}

// decode turns bytes into text. ok is false for a binary file.
func decode(data []byte) (t text, ok bool) {
	switch {
	case bytes.HasPrefix(data, []byte{0xFF, 0xFE, 0, 0}), bytes.HasPrefix(data, []byte{0, 0, 0xFE, 0xFF}):
		return text{s: utf32Text(data[4:], data[0] == 0xFF), encoding: "UTF-32", bom: true}, true
	case bytes.HasPrefix(data, []byte{0xFF, 0xFE}):
		return text{s: utf16Text(data[2:], binary.LittleEndian), encoding: "UTF-16 (little endian)", bom: true}, true
	case bytes.HasPrefix(data, []byte{0xFE, 0xFF}):
		return text{s: utf16Text(data[2:], binary.BigEndian), encoding: "UTF-16 (big endian)", bom: true}, true
	case bytes.IndexByte(data, 0) >= 0:
		return text{}, false
	}
	s, had := strings.CutPrefix(string(data), bom)
	t = text{s: s, bom: had}
	if utf8.ValidString(s) {
		return t, true
	}
	if good, bad := runes(data); good >= bad {
		t.s, t.encoding = strings.ToValidUTF8(s, "\uFFFD"), "damaged UTF-8"
		return t, true
	}
	var b strings.Builder
	for _, c := range data {
		b.WriteRune(rune(c))
	}
	return text{s: b.String(), encoding: "not UTF-8 (shown as ISO-8859-1)"}, true
}

// runes counts the well-formed multi-byte sequences and the bytes in none.
func runes(data []byte) (good, bad int) {
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		switch {
		case r == utf8.RuneError && n == 1:
			bad++
		case n > 1:
			good++
		}
		data = data[n:]
	}
	return good, bad
}

func utf16Text(data []byte, order binary.ByteOrder) string {
	units := make([]uint16, 0, len(data)/2)
	for ; len(data) > 1; data = data[2:] {
		units = append(units, order.Uint16(data))
	}
	return string(utf16.Decode(units))
}

func utf32Text(data []byte, little bool) string {
	var b strings.Builder
	for ; len(data) > 3; data = data[4:] {
		r := binary.BigEndian.Uint32(data)
		if little {
			r = binary.LittleEndian.Uint32(data)
		}
		b.WriteRune(rune(min(r, utf8.MaxRune+1))) // what is no rune becomes U+FFFD
	}
	return b.String()
}

// binaryKind names what a binary file seems to be.
func binaryKind(head []byte) string {
	head = head[:min(len(head), 512)]
	if looksUTF16(head) {
		return "perhaps UTF-16 without a byte order mark"
	}
	return http.DetectContentType(head)
}

// looksUTF16: Latin text in UTF-16 has a zero in every other byte.
func looksUTF16(head []byte) bool {
	var zeros [2]int
	for i, c := range head {
		if c == 0 {
			zeros[i%2]++
		}
	}
	most, least := max(zeros[0], zeros[1]), min(zeros[0], zeros[1])
	return len(head) >= 8 && most*5 > len(head)*2 && least*20 < len(head)
}

// ends describes the line ends of s; empty for plain LF and for none.
func ends(s string) string {
	crlf := strings.Count(s, "\r\n")
	switch lf := strings.Count(s, "\n") - crlf; {
	case crlf == 0:
		return ""
	case lf == 0:
		return "CRLF line ends"
	default:
		return fmt.Sprintf("mixed line ends (%d CRLF, %d LF)", crlf, lf)
	}
}

// lines counts lines: a final line end begins no further one.
func lines(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}
