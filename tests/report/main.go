package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() {
	out := flag.String("out", "", "file that keeps the events, one JSON object per line")
	flag.Parse()
	ok, err := run(os.Stdin, os.Stdout, *out)
	if err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func run(in io.Reader, w io.Writer, path string) (ok bool, err error) {
	keep := io.Discard
	if path != "" {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return false, err
		}
		f, err := os.Create(path)
		if err != nil {
			return false, err
		}
		defer func() {
			if cerr := f.Close(); err == nil {
				ok, err = ok && cerr == nil, cerr
			}
		}()
		keep = f
	}
	r := newReport(w)
	lines := bufio.NewReader(in)
	for {
		line, rerr := lines.ReadBytes('\n')
		if len(line) > 0 {
			if _, err := keep.Write(line); err != nil {
				return false, err
			}
			r.line(line)
		}
		if rerr == io.EOF {
			return r.end(), nil
		}
		if rerr != nil {
			return false, rerr
		}
	}
}
