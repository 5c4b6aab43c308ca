package session

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// written returns how many bytes this process has given to write(2) so far.
func written(b *testing.B) int64 {
	b.Helper()
	data, err := os.ReadFile("/proc/self/io")
	must(b, err)
	_, rest, _ := bytes.Cut(data, []byte("wchar: "))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	n, err := strconv.ParseInt(string(line), 10, 64)
	must(b, err)
	return n
}

// benchTurn saves the n-th turn of a session again and again: 4 KiB in the
// records and syncs of a real one.
func benchTurn(b *testing.B, n int) {
	s := newStore(b)
	l, a := newSession(b, s)
	for i := range n - 1 {
		save(b, l, a, turn(fmt.Sprintf("m%06d", i), 4<<10)...)
	}
	must(b, l.Append(b.Context(), true))
	rs := turn(fmt.Sprintf("m%06d", n-1), 4<<10)
	before := l.entry
	var encoded, bytesOut int64
	b.ReportAllocs()
	for b.Loop() {
		start := written(b)
		for i, r := range rs {
			must(b, a.Apply(r))
			_, begins := r.(CallStarted)
			must(b, l.Append(b.Context(), i == 0 || begins || i == len(rs)-1, r))
			encoded += int64(l.enc.out.Len())
		}
		bytesOut += written(b) - start
		a.Turns = a.Turns[:n-1] // back to before the turn
		must(b, l.f.Truncate(before.Size))
		l.entry, l.synced = before, before.Size
	}
	b.ReportMetric(float64(bytesOut)/float64(b.N), "written-B/turn")
	b.ReportMetric(float64(encoded)/float64(b.N), "encoded-B/turn")
}

func BenchmarkTurn10(b *testing.B)   { benchTurn(b, 10) }
func BenchmarkTurn1000(b *testing.B) { benchTurn(b, 1000) }

// BenchmarkList200 lists 200 sessions of 20 turns.
func BenchmarkList200(b *testing.B) {
	for _, kind := range []string{"indexed", "rebuilt"} {
		b.Run(kind, func(b *testing.B) {
			s := newStore(b)
			root := b.TempDir()
			for range 200 {
				l, a, err := s.Create(b.Context(), root, nil)
				must(b, err)
				for i := range 20 {
					save(b, l, a, turn(fmt.Sprint("m", i), 4<<10)...)
				}
				must(b, l.Close())
			}
			for b.Loop() {
				if kind == "rebuilt" {
					must(b, os.RemoveAll(s.indexFile(root)))
				}
				list, err := s.List(b.Context(), root)
				must(b, err)
				if len(list) != 200 || list[0].Turns != 20 {
					b.Fatalf("%d sessions", len(list))
				}
			}
		})
	}
}

// BenchmarkOpen opens a session of 1 000 turns of 4 KiB.
func BenchmarkOpen(b *testing.B) {
	s := newStore(b)
	l, a := newSession(b, s)
	for i := range 1000 {
		save(b, l, a, turn(fmt.Sprint("m", i), 4<<10)...)
	}
	must(b, l.Close())
	info, err := os.Stat(l.path)
	must(b, err)
	b.SetBytes(info.Size())
	for b.Loop() {
		l, _, err := s.Open(b.Context(), l.ID())
		must(b, err)
		must(b, l.Close())
	}
}

// BenchmarkText encodes a text that needs no escapes and one of only escapes.
func BenchmarkText(b *testing.B) {
	for name, text := range map[string]string{"plain": strings.Repeat("word ", 800), "escapes": strings.Repeat("\t\"\n\\", 1000)} {
		b.Run(name, func(b *testing.B) {
			var enc encoder
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				enc.reset()
				if _, err := enc.add(0, "titled", Titled{Title: text}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
