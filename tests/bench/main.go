// Command bench measures what docs/performance.md promises, on the built binary
// over its real boundaries, and prints a line for each bar: the bar, the figure
// (a median of several runs unless it says otherwise) and the verdict. It exits
// with 1 on a miss. Ratios are of two things measured in the same run.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

func main() {
	bin := flag.String("bin", "bin/lakecode", "the binary to measure")
	only := flag.String("only", "", "a regular expression for the names of measurements")
	flag.Parse()
	b := &bench{}
	var err error
	if b.bin, err = filepath.Abs(*bin); err != nil {
		fail(err)
	}
	want, err := regexp.Compile(*only)
	if err != nil {
		fail(err)
	}
	if b.dir, err = os.MkdirTemp("", "lakecode-bench-"); err != nil {
		fail(err)
	}
	for _, m := range []struct {
		name string
		run  func() error
	}{
		{"start", b.start},
		{"headless", b.headless},
		{"memory", b.memory},
		{"turns", b.turns},
		{"bodies", b.bodies},
		{"stream", b.stream},
		{"latency", b.latency},
		{"prompt", b.prompt},
		{"save", b.save},
		{"search", b.search},
		{"find", b.find},
	} {
		if !want.MatchString(m.name) {
			continue
		}
		if err := m.run(); err != nil {
			b.missed = true
			fmt.Printf("%-46s FAILED: %v\n", m.name, err)
		}
	}
	_ = os.RemoveAll(b.dir)
	if b.missed {
		os.Exit(1)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "bench:", err)
	os.Exit(1)
}

type bench struct {
	bin, dir string
	missed   bool
}

// report prints one line. A bar of 0 means that the figure has none.
func (b *bench) report(name string, figure, bar float64, unit string) {
	verdict, limit := "ok", fmt.Sprintf("<= %g %s", bar, unit)
	switch {
	case bar == 0:
		verdict, limit = "", "no bar"
	case figure > bar:
		verdict, b.missed = "MISS", true
	}
	fmt.Printf("%-46s %14s %12.3f %-6s %s\n", name, limit, figure, unit, verdict)
}

func median(v []float64) float64 { return quantile(v, 0.5) }

func quantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return 0
	}
	s := slices.Clone(v)
	slices.Sort(s)
	return s[min(len(s)-1, int(q*float64(len(s))))]
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
