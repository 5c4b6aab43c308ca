// Command fakemodel serves a script as a model on loopback, for benchmarks and
// for people:
//
//	go run ./tests/fakemodel/cmd -script FILE [-addr 127.0.0.1:8080] [-key KEY]
//
// Standard output has one JSON line with the address, then one per request:
// its number, when it arrived and when its body was complete (nanoseconds since
// 1970), its size. It ends by SIGINT or SIGTERM or, with -pipe, with standard
// input. Then the requests are judged; what is wrong goes to standard error, and
// the exit code is 1.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/lakecode/lakecode/providers/rehearsal"
	"github.com/lakecode/lakecode/tests/fakemodel"
)

func main() {
	var conf fakemodel.Config
	file := flag.String("script", "", "file with the script; without it, the built-in tour")
	addr := flag.String("addr", "", "loopback address to listen on; without it, a free port")
	pipe := flag.Bool("pipe", false, "end with standard input")
	flag.StringVar(&conf.Key, "key", "", "key that every request must carry")
	flag.BoolVar(&conf.Rewrites, "rewrites", false, "allow the history to change between requests")
	flag.Parse()
	ctx, stop := context.Background(), func() {}
	if !*pipe { // a read of standard input does not end with a context
		ctx, stop = signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	}
	code := run(ctx, *file, *addr, *pipe, conf)
	stop()
	os.Exit(code)
}

// desk writes what happens and keeps the requests.
type desk struct {
	mu       sync.Mutex
	out      *json.Encoder
	requests []*rehearsal.Request
	failures int
}

func (d *desk) observe(r *rehearsal.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.requests = append(d.requests, r)
	// A reader that has gone is no reason to stop serving.
	_ = d.out.Encode(map[string]any{"n": r.N, "arrived": r.Arrived.UnixNano(), "read": r.Read.UnixNano(), "bytes": len(r.Body)})
}

func (d *desk) failed(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failures++
	fmt.Fprintln(os.Stderr, "fakemodel:", err)
}

func run(ctx context.Context, file, addr string, pipe bool, conf fakemodel.Config) int {
	script := rehearsal.Tour()
	if file != "" {
		text, err := os.ReadFile(file)
		if err == nil {
			script, err = rehearsal.Parse(file, string(text))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "fakemodel:", err)
			return 2
		}
	}
	d := &desk{out: json.NewEncoder(os.Stdout)}
	srv, err := rehearsal.Start(ctx, script, rehearsal.Options{Addr: addr, Observe: d.observe, Failed: d.failed})
	if err != nil {
		fmt.Fprintln(os.Stderr, "fakemodel:", err)
		return 2
	}
	d.mu.Lock()
	err = d.out.Encode(map[string]string{"url": srv.URL()})
	d.mu.Unlock()
	if err != nil {
		srv.Close()
		return 2
	}
	if pipe {
		_, _ = io.Copy(io.Discard, bufio.NewReader(os.Stdin)) // ends when whoever started us does
	} else {
		<-ctx.Done()
	}
	srv.Close()
	return d.verdict(srv, conf)
}

// verdict judges everything that came.
func (d *desk) verdict(srv *rehearsal.Server, conf fakemodel.Config) int {
	judge := fakemodel.NewChecker(conf)
	for _, r := range d.requests {
		for _, what := range judge.Check(r) {
			d.failed(fmt.Errorf("request %d: %s", r.N, what))
		}
	}
	for _, what := range srv.Unplayed() {
		d.failed(fmt.Errorf("%s", what))
	}
	if d.failures > 0 {
		return 1
	}
	return 0
}
