package session

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sample returns the bytes of a log and where each of its lines ends. The log
// lies in a store of its own.
func sample(t *testing.T) (s *Store, id ID, data []byte, ends []int) {
	t.Helper()
	s = memStore(t)
	l, a := newSession(t, s)
	save(t, l, a, full()...)
	must(t, l.Close())
	data, err := os.ReadFile(logFile(s, l.ID()))
	must(t, err)
	for i, b := range data {
		if b == '\n' {
			ends = append(ends, i+1)
		}
	}
	return s, l.ID(), data, ends
}

// openAs puts data in the place of the session's log and opens it. It returns
// how many lines the log has after that.
func openAs(t testing.TB, s *Store, id ID, data []byte) (*Archive, int, error) {
	t.Helper()
	must(t, os.WriteFile(logFile(s, id), data, 0o600))
	l, a, err := s.Open(t.Context(), id)
	after, rerr := os.ReadFile(logFile(s, id))
	must(t, rerr)
	if err != nil {
		if !bytes.Equal(after, data) {
			t.Fatalf("a log that was refused was changed, after: %v", err)
		}
		return nil, 0, err
	}
	must(t, l.Close())
	if !bytes.HasPrefix(data, after) {
		t.Fatal("opening wrote something else than a beginning of the log")
	}
	return a, bytes.Count(after, []byte("\n")), nil
}

// keptAside returns the content of log.torn-1 and removes it.
func keptAside(t testing.TB, s *Store, id ID) []byte {
	t.Helper()
	path := filepath.Join(s.dir(id), "log.torn-1")
	data, err := os.ReadFile(path)
	must(t, err)
	must(t, os.Remove(path))
	return data
}

// covers CONV-7
//
// Wherever a log ends, all whole records before that are there, and the rest is
// kept aside. A log without its first record was never one.
func TestLogCutAtEveryByte(t *testing.T) {
	s, id, data, ends := sample(t)
	for n := range len(data) {
		whole := 0 // lines
		for whole < len(ends) && ends[whole] <= n {
			whole++
		}
		a, lines, err := openAs(t, s, id, data[:n])
		if whole < 2 {
			var damaged *DamagedError
			if !errors.As(err, &damaged) || damaged.Path != logFile(s, id) {
				t.Fatalf("cut at %d of %d: %v", n, len(data), err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("cut at %d of %d: %v", n, len(data), err)
		}
		if lines != whole {
			t.Fatalf("cut at %d: %d lines left, want %d", n, lines, whole)
		}
		rest := data[ends[whole-1]:n]
		if len(rest) == 0 {
			if len(a.Repairs) != 0 {
				t.Fatalf("cut at %d: repairs %q", n, a.Repairs)
			}
			continue
		}
		if len(a.Repairs) != 1 || !strings.Contains(a.Repairs[0], fmt.Sprint(len(rest), " bytes")) {
			t.Fatalf("cut at %d: repairs %q", n, a.Repairs)
		}
		if got := keptAside(t, s, id); !bytes.Equal(got, rest) {
			t.Fatalf("cut at %d: %q kept, want %q", n, got, rest)
		}
	}
}

// No changed byte passes: it is damage, or in the last record a repair that
// costs that record alone. Most variants are only read, some really opened.
func TestLogWithAnyByteChanged(t *testing.T) {
	s, id, data, ends := sample(t)
	path, last := logFile(s, id), ends[len(ends)-2]
	for n := range data {
		for i, b := range []byte{data[n] ^ 1, data[n] ^ 0x80, '\n', ' ', '0', '9', 0} {
			if b == data[n] {
				continue
			}
			bad := bytes.Clone(data)
			bad[n] = b
			sc := scan(path, bytes.NewReader(bad), int64(len(bad)), 0, 0)
			_, err := (&Log{}).fold(t.Context(), sc)
			torn := errors.Is(err, errTorn)
			var damaged *DamagedError
			var newer *NewerError
			switch {
			case errors.As(err, &newer) && n < ends[0]:
			case errors.As(err, &damaged) && damaged.Offset <= int64(n) && damaged.Path == path:
			case torn && n >= last && sc.end == int64(last):
			default:
				t.Fatalf("byte %d of %d to %q: %v, sound up to %d", n, len(data), b, err, sc.end)
			}
			if (n+i)%20 != 0 {
				continue
			}
			a, lines, err := openAs(t, s, id, bad)
			switch {
			case torn != (err == nil):
				t.Fatalf("byte %d to %q: open says %v", n, b, err)
			case torn:
				if len(a.Repairs) != 1 || lines != len(ends)-1 {
					t.Fatalf("byte %d to %q: %d lines of %d, repairs %q", n, b, lines, len(ends), a.Repairs)
				}
				keptAside(t, s, id)
			}
		}
	}
}

// Whole records that are missing, repeated or swapped are damage as well.
func TestLogWithLinesMoved(t *testing.T) {
	s, id, data, _ := sample(t)
	lines := bytes.SplitAfter(data, []byte("\n"))
	lines = lines[:len(lines)-1]
	for i := 1; i < len(lines)-1; i++ {
		for name, change := range map[string]func(l [][]byte) [][]byte{
			"missing":  func(l [][]byte) [][]byte { return append(l[:i:i], l[i+1:]...) },
			"repeated": func(l [][]byte) [][]byte { return append(l[:i+1:i+1], l[i:]...) },
			"swapped":  func(l [][]byte) [][]byte { l[i], l[i+1] = l[i+1], l[i]; return l },
		} {
			copied := append([][]byte(nil), lines...)
			_, n, err := openAs(t, s, id, bytes.Join(change(copied), nil))
			var damaged *DamagedError
			// The last line alone may pass for a torn one.
			if errors.As(err, &damaged) || err == nil && i >= len(lines)-2 && n == i {
				must(t, os.RemoveAll(filepath.Join(s.dir(id), "log.torn-1")))
				continue
			}
			t.Errorf("line %d %s: %v", i, name, err)
		}
	}
}

// A power cut may leave a file that is longer than what was written to it.
func TestLogThatEndsInZeros(t *testing.T) {
	s, id, data, ends := sample(t)
	a, lines, err := openAs(t, s, id, append(bytes.Clone(data), make([]byte, 5000)...))
	if err != nil || lines != len(ends) || len(a.Repairs) != 1 {
		t.Errorf("%d lines, %v", lines, err)
	}
}

// refused opens a log with the given lines after the header, each well formed.
func refused(t *testing.T, lines ...string) error {
	t.Helper()
	s, id, _, _ := sample(t)
	var out bytes.Buffer
	out.Write(header())
	sum := sumOf(header())
	for _, l := range append([]string{fmt.Sprintf(`created {"id":%q,"root":"/r","time":"2026-01-01T00:00:00Z"}`, id)}, lines...) {
		kind, data, _ := strings.Cut(l, " ")
		body := fmt.Sprintf("%d %s %s", len(data), kind, data)
		sum = crc32.Update(sum, castagnoli, []byte(body))
		fmt.Fprintf(&out, "%08x %s\n", sum, body)
	}
	_, _, err := openAs(t, s, id, out.Bytes())
	return err
}

func TestLogWithRecordsThatCannotBe(t *testing.T) {
	must(t, refused(t, `titled {"title":"fine"}`))
	for line, want := range map[string]string{
		`renamed {"title":"x"}`:             `unknown kind of record "renamed"`,
		`titled {"title":"x","colour":"y"}`: `unknown field "colour"`,
		`titled {"title":`:                  "record titled",
		`titled {"title":"x"} {}`:           "more than one value",
		`turnStarted {"id":"m1"}`:           "message m1 is not in the queue",
	} {
		err := refused(t, line)
		var damaged *DamagedError
		if !errors.As(err, &damaged) || damaged.Offset == 0 || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), fmt.Sprintf("truncate -s %d ", damaged.Offset)) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestLogOfAnotherVersion(t *testing.T) {
	s, id, data, _ := sample(t)
	rest := data[len(header()):]
	for line, version := range map[string]int{
		"lakecode-session 2\n":                    2,
		"lakecode-session 99\n":                   99,
		"lakecode-session 0\n":                    0,
		"lakecode-session 01\n":                   0,
		"lakecode-session +1\n":                   0,
		"lakecode-session \n":                     0,
		"lakecode-session 1 \n":                   0,
		"lakecode-session 99999999999999999999\n": 0,
		"\n": 0,
	} {
		_, _, err := openAs(t, s, id, append([]byte(line), rest...))
		var newer *NewerError
		var damaged *DamagedError
		if version > 0 && (!errors.As(err, &newer) || newer.Version != version || newer.Path != logFile(s, id)) ||
			version == 0 && !errors.As(err, &damaged) {
			t.Errorf("%q: %v", line, err)
		}
	}
}

// Whatever a file holds, reading it ends without a panic, and what it finds
// sound is found again, alone and with more behind it.
func FuzzScan(f *testing.F) {
	var enc encoder
	enc.out.Write(header())
	sum := sumOf(header())
	for _, r := range append([]Record{Created{ID: "s", Root: "/r"}}, full()...) {
		var err error
		sum, err = enc.add(sum, r.kind(), r)
		must(f, err)
	}
	good := enc.out.Bytes()
	f.Add(good, 0, byte(0))
	f.Add(good, 300, byte('\n'))
	f.Add(good[:len(good)-3], 20, byte('9'))
	f.Add([]byte("lakecode-session 1\n00000000 99999999 x "), 0, byte('l'))
	f.Fuzz(func(t *testing.T, data []byte, at int, b byte) {
		data = bytes.Clone(data)
		if at >= 0 && at < len(data) {
			data[at] = b
		}
		n, end, sum, err := readAll(data)
		if end < 0 || end > len(data) {
			t.Fatalf("end %d of %d", end, len(data))
		}
		if err != nil {
			return
		}
		n2, end2, sum2, err := readAll(data[:end])
		if n2 != n || end2 != end || sum2 != sum || err != nil {
			t.Fatalf("%d records up to %d, then %d up to %d, %v", n, end, n2, end2, err)
		}
		var enc encoder
		if _, err := enc.add(sum, "titled", Titled{Title: "more"}); err != nil {
			t.Fatal(err)
		}
		n3, _, _, err := readAll(append(data[:end:end], enc.out.Bytes()...))
		if n3 != n+1 || err != nil {
			t.Fatalf("%d records with one more on %d, %v", n3, n, err)
		}
	})
}

// readAll counts the sound records; err is damage.
func readAll(data []byte) (n, end int, sum uint32, err error) {
	s := scan("log", bytes.NewReader(data), int64(len(data)), 0, 0)
	if _, err := s.head(); err != nil {
		return 0, 0, 0, err
	}
	for {
		f, err := s.next()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, errTorn):
			return n, int(s.end), s.sum, nil
		case err != nil:
			return n, int(s.end), s.sum, err
		}
		_, _ = f.record()
		n++
	}
}
