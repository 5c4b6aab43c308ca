package server

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
)

// split returns the bodies in a stream, "too long" for those that are, and the
// error at the end.
func split(in io.Reader) (bodies []string, end error) {
	f := newFrames(in, zap.NewNop())
	for {
		body, err := f.next()
		switch {
		case errors.Is(err, errTooLong):
			bodies = append(bodies, "too long")
		case err != nil:
			return bodies, err
		default:
			bodies = append(bodies, string(body))
		}
	}
}

// covers ED-8 partly
func TestFramesSurviveGarbage(t *testing.T) {
	long := strings.Repeat("x:y ", 1<<16) // 256 KiB without a line end
	tests := []struct {
		name, in string
		want     []string
		end      error
	}{
		{"nothing", "", nil, io.EOF},
		{"two", frame("{1}") + frame("{22}"), []string{"{1}", "{22}"}, io.EOF},
		{"other fields, spelling and line ends", "Content-Type: a; charset=utf-8\r\ncontent-LENGTH:3\n\n{1}" + frame("{2}"), []string{"{1}", "{2}"}, io.EOF},
		{"empty body", frame("") + frame("{1}"), []string{"", "{1}"}, io.EOF},
		{"stray line", "hello world\n" + frame("{1}") + "Warning: x\n" + frame("{2}"), []string{"{1}", "{2}"}, io.EOF},
		{"stray text before the header on its line", frame("{1}") + "oops" + frame("{2}"), []string{"{1}", "{2}"}, io.EOF},
		{"stray line inside of a header", "Content-Length: 3\r\nWARNING x\r\n\r\n{1}" + frame("{2}"), []string{"{1}", "{2}"}, io.EOF},
		{"length too short", "Content-Length: 2\r\n\r\n{\"a\":1}" + frame("{2}"), []string{`{"`, "{2}"}, io.EOF},
		{"length too long takes the next header with it", "Content-Length: 5\r\n\r\n{1}" + frame("{2}") + frame("{3}"), []string{"{1}Co", "{3}"}, io.EOF},
		{"body that quotes a header", "Content-Length: 1\r\n\r\n{\"Content-Length: 4\":1}" + frame("{2}"), []string{"{", "{2}"}, io.EOF},
		{"negative length", "Content-Length: -3\r\n\r\n{1}\n" + frame("{2}"), []string{"{2}"}, io.EOF},
		{"no number", "Content-Length: many\r\n\r\n" + frame("{2}"), []string{"{2}"}, io.EOF},
		{"overflow", "Content-Length: 99999999999999999999999\r\n\r\n" + frame("{2}"), []string{"{2}"}, io.EOF},
		{"unbelievable length", "Content-Length: 1073741825\r\n\r\n" + frame("{2}"), []string{"{2}"}, io.EOF},
		{"two lengths, the last counts", "Content-Length: 9\r\nContent-Length: 3\r\n\r\n{1}" + frame("{2}"), []string{"{1}", "{2}"}, io.EOF},
		{"long line", long + "\n" + frame("{1}"), []string{"{1}"}, io.EOF},
		{"long line that ends in a header", long + frame("{1}") + frame("{2}"), []string{"{1}", "{2}"}, io.EOF},
		{"header cut by the buffer", strings.Repeat("x", readBuffer-8) + frame("{1}"), []string{"{1}"}, io.EOF},
		{"header that never ends", "Content-Length: " + strings.Repeat("1", 1<<17) + "\n\n" + frame("{1}"), []string{"{1}"}, io.EOF},
		{"binary", "\x00\xff\xfe\r\r\n\n:\n: :\n" + frame("{1}"), []string{"{1}"}, io.EOF},
		{"cut header", frame("{1}") + "Content-Length: 3", []string{"{1}"}, io.ErrUnexpectedEOF},
		{"cut before the body", frame("{1}") + "Content-Length: 3\r\n\r\n", []string{"{1}"}, io.ErrUnexpectedEOF},
		{"cut body", frame("{1}") + "Content-Length: 3\r\n\r\n{2", []string{"{1}"}, io.ErrUnexpectedEOF},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for name, in := range map[string]io.Reader{"whole": strings.NewReader(tt.in), "byte by byte": iotest.OneByteReader(strings.NewReader(tt.in))} {
				got, end := split(in)
				if d := cmp.Diff(tt.want, got); d != "" {
					t.Errorf("%s (-want +got):\n%s", name, d)
				}
				if !errors.Is(end, tt.end) {
					t.Errorf("%s: end %v, want %v", name, end, tt.end)
				}
			}
		})
	}
}

// zeros is an endless body.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestLongBodyIsSkippedWithoutBeingHeld(t *testing.T) {
	in := io.MultiReader(
		strings.NewReader("Content-Length: 268435456\r\n\r\n"), io.LimitReader(zeros{}, 256<<20),
		strings.NewReader(frame("{1}")),
	)
	f := newFrames(in, zap.NewNop())
	if _, err := f.next(); !errors.Is(err, errTooLong) {
		t.Fatalf("error %v", err)
	}
	body, err := f.next()
	if err != nil || string(body) != "{1}" {
		t.Fatalf("%q, %v", body, err)
	}
	if cap(f.body) > keepBody {
		t.Errorf("%d bytes are held", cap(f.body))
	}
}

func TestBodyBufferIsGivenBackAfterALongMessage(t *testing.T) {
	f := newFrames(strings.NewReader(frame(strings.Repeat("x", 3<<20))+frame("{1}")), zap.NewNop())
	for range 2 {
		if _, err := f.next(); err != nil {
			t.Fatal(err)
		}
	}
	if cap(f.body) > keepBody {
		t.Errorf("%d bytes are held", cap(f.body))
	}
}

func FuzzFrames(f *testing.F) {
	for _, seed := range []string{
		frame("{1}"), "x" + frame("{1}") + "y\n", "Content-Length: 5\r\n\r\n{1}", "content-length:\n\n", "\r\n\r\n:\n",
		"Content-Length: 0\n\nContent-Length: 00000002\n\nab",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		got, end := split(strings.NewReader(in))
		if end == nil {
			t.Fatal("no end")
		}
		total := 0
		for _, b := range got {
			total += len(b)
		}
		if total > len(in) {
			t.Errorf("%d bytes out of %d", total, len(in))
		}
		again, end2 := split(iotest.HalfReader(strings.NewReader(in)))
		if d := cmp.Diff(got, again); d != "" || end != end2 {
			t.Errorf("the pieces in which it comes matter (-whole +halves):\n%s%v %v", d, end, end2)
		}
		// Whatever came before, a message after a line end is found, unless the
		// input ends inside a body that takes it.
		if end == io.EOF {
			after, _ := split(strings.NewReader(in + "\n" + frame(`{"last":1}`)))
			if len(after) != len(got)+1 || after[len(got)] != `{"last":1}` {
				t.Errorf("the message after it was lost: %q", after)
			}
		}
	})
}
