package session

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"strings"
)

// magic starts the first line of a log; the version follows it.
const magic = "lakecode-session "

// castagnoli is the polynomial that processors compute themselves.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// header returns the first line of a log.
func header() []byte { return []byte(magic + strconv.Itoa(Version) + "\n") }

// sumOf returns the checksum that the first record continues.
func sumOf(header []byte) uint32 { return crc32.Checksum(header, castagnoli) }

// encoder writes records. Its checksum runs on from record to record.
type encoder struct {
	out  bytes.Buffer
	json bytes.Buffer
}

// add encodes one record after the one with checksum sum and returns its own.
func (e *encoder) add(sum uint32, kind string, value any) (uint32, error) {
	e.json.Reset()
	enc := json.NewEncoder(&e.json)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil { // ends with a newline
		return sum, fmt.Errorf("encode %s: %w", kind, err)
	}
	body := strconv.Itoa(e.json.Len()-1) + " " + kind + " "
	sum = crc32.Update(sum, castagnoli, []byte(body))
	sum = crc32.Update(sum, castagnoli, e.json.Bytes()[:e.json.Len()-1])
	fmt.Fprintf(&e.out, "%08x %s", sum, body)
	e.out.Write(e.json.Bytes())
	return sum, nil
}

// reset empties the encoder and gives back the memory of a very large record.
func (e *encoder) reset() {
	const keep = 1 << 20 // bytes
	if e.out.Cap() > keep || e.json.Cap() > keep {
		*e = encoder{}
	}
	e.out.Reset()
}

// frame is one line of a log, checked. data is valid until the next call of
// next.
type frame struct {
	kind string
	data []byte
	sum  uint32
}

// errTorn: what follows the last sound record is the beginning of another one,
// or the whole of a last one whose checksum does not fit.
var errTorn = errors.New("the last record is incomplete")

// scanner reads a log of a known size from the front.
type scanner struct {
	path string // for errors
	r    *bufio.Reader
	size int64
	at   int64  // where the record begins that next looked at last
	end  int64  // after the last sound record
	sum  uint32 // checksum of it
	line []byte
}

// scan starts at offset end, behind a record with the given checksum; both are
// 0 for a whole log, whose first line must be read with head. r delivers what
// follows end.
func scan(path string, r io.Reader, size, end int64, sum uint32) *scanner {
	return &scanner{path: path, r: bufio.NewReaderSize(io.LimitReader(r, size-end), 64<<10), size: size, end: end, sum: sum}
}

func (s *scanner) damaged(format string, args ...any) error {
	return &DamagedError{Path: s.path, Offset: s.at, Reason: fmt.Sprintf(format, args...)}
}

// head reads the first line and returns the version.
func (s *scanner) head() (int, error) {
	if err := s.readLine(); err != nil {
		return 0, err
	}
	text, ok := strings.CutPrefix(string(s.line), magic)
	if !ok {
		return 0, s.damaged("it does not begin as a session log")
	}
	text, ok = strings.CutSuffix(text, "\n")
	v, err := strconv.Atoi(text)
	if !ok || err != nil || v < 1 || strconv.Itoa(v) != text {
		return 0, s.damaged("its first line has no version")
	}
	if v > Version {
		return 0, &NewerError{Path: s.path, Version: v}
	}
	s.end += int64(len(s.line))
	s.sum = sumOf(s.line)
	return v, nil
}

// next returns the next record; io.EOF after the last, errTorn for a torn one,
// a *DamagedError for a bad record that others follow.
func (s *scanner) next() (frame, error) {
	s.at = s.end
	if s.end == s.size {
		return frame{}, io.EOF
	}
	if err := s.readLine(); err != nil {
		return frame{}, err
	}
	f, length, why := parse(s.line, s.sum)
	if why == "" {
		s.end += int64(len(s.line))
		s.sum = f.sum
		return f, nil
	}
	// The end of a record is told twice, by the newline and by the length. Only
	// where neither says that more follows may the rest be cut off as torn: a
	// single changed byte cannot spoil both.
	if s.end+int64(len(s.line)) < s.size || length > 0 && s.end+length < s.size {
		return frame{}, s.damaged("%s", why)
	}
	return frame{}, errTorn
}

// readLine reads up to and including the next newline, or the rest.
func (s *scanner) readLine() error {
	s.line = s.line[:0]
	for {
		part, err := s.r.ReadSlice('\n')
		s.line = append(s.line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err == nil, errors.Is(err, io.EOF):
			return nil
		default:
			return &DamagedError{Path: s.path, Offset: s.end, Err: err}
		}
	}
}

// parse takes a line apart. why is empty for a sound record. length is the size
// of the line that the record claims, 0 when it claims none.
func parse(line []byte, before uint32) (f frame, length int64, why string) {
	sum, rest, ok := bytes.Cut(line, []byte(" "))
	if !ok || len(sum) != 8 {
		return f, 0, "a record has no checksum"
	}
	number, tail, ok := bytes.Cut(rest, []byte(" "))
	n, err := strconv.ParseUint(string(number), 10, 40)
	if !ok || err != nil {
		return f, 0, "a record has no length"
	}
	kind, data, ok := bytes.Cut(tail, []byte(" "))
	if !ok {
		return f, 0, "a record has no kind"
	}
	length = int64(len(line)-len(data)) + int64(n) + 1
	if uint64(len(data)) != n+1 || data[n] != '\n' {
		return f, length, "a record does not have the length that it says"
	}
	want, err := strconv.ParseUint(string(sum), 16, 32)
	f.sum = crc32.Update(before, castagnoli, rest[:len(rest)-1])
	if err != nil || uint32(want) != f.sum || fmt.Sprintf("%08x", want) != string(sum) {
		return f, length, "the checksum of a record does not fit"
	}
	f.kind, f.data = string(kind), data[:n]
	return f, length, ""
}

// record decodes a frame. Fields and kinds that this version does not know are
// errors: what is in a log of a known version is known.
func (f frame) record() (Record, error) {
	switch f.kind {
	case Created{}.kind():
		return strict[Created](f.data)
	case Accepted{}.kind():
		return strict[Accepted](f.data)
	case Dropped{}.kind():
		return strict[Dropped](f.data)
	case TurnStarted{}.kind():
		return strict[TurnStarted](f.data)
	case ItemAdded{}.kind():
		return strict[ItemAdded](f.data)
	case CallStarted{}.kind():
		return strict[CallStarted](f.data)
	case TurnEnded{}.kind():
		return strict[TurnEnded](f.data)
	case Titled{}.kind():
		return strict[Titled](f.data)
	}
	return nil, fmt.Errorf("unknown kind of record %q", f.kind)
}

func strict[T Record](data []byte) (Record, error) {
	var v T
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("record %s: %w", v.kind(), err)
	}
	if d.InputOffset() != int64(len(data)) {
		return nil, fmt.Errorf("record %s: more than one value", v.kind())
	}
	return v, nil
}
