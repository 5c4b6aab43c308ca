//go:build !windows

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

const (
	keepLogs = 20 // files, the newest
	// stderrQueue bounds the lines that wait for a standard error which nobody
	// reads; more are dropped.
	stderrQueue = 256
)

// newLogger logs JSON lines to a file of this process in dir, and warnings as
// text to standard error. dir may be empty, or not writable: the log then goes
// to standard error alone. close flushes and joins.
func newLogger(dir string, stderr io.Writer) (log *zap.Logger, closeLog func()) {
	enc := zap.NewProductionEncoderConfig()
	enc.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	text := enc
	text.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05")
	drop := newDropWriter(stderr)
	cores := []zapcore.Core{zapcore.NewCore(zapcore.NewConsoleEncoder(text), drop, zap.WarnLevel)}
	level := zap.InfoLevel
	if os.Getenv("LAKECODE_LOG") == "debug" {
		level = zap.DebugLevel
	}
	var file *os.File
	if dir != "" {
		var err error
		if file, err = openLog(dir); err == nil {
			cores = append(cores, zapcore.NewCore(zapcore.NewJSONEncoder(enc), zapcore.Lock(file), level))
		}
	}
	return zap.New(zapcore.NewTee(cores...)), func() {
		drop.close()
		if file != nil {
			_ = file.Close()
		}
	}
}

func openLog(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	prune(dir)
	name := fmt.Sprintf("lakecode-%s-%d.log", time.Now().UTC().Format("20060102T150405"), os.Getpid())
	return os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}

// prune removes the oldest logs; the names sort by time.
func prune(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	var logs []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "lakecode-") && strings.HasSuffix(e.Name(), ".log") {
			logs = append(logs, e.Name())
		}
	}
	slices.Sort(logs)
	for len(logs) >= keepLogs {
		_ = os.Remove(filepath.Join(dir, logs[0]))
		logs = logs[1:]
	}
}

// dropWriter never blocks its caller: an editor that does not read our standard
// error would otherwise stop every goroutine that logs. Its one goroutine ends
// by close.
type dropWriter struct {
	lines chan []byte
	quit  chan struct{}
	done  chan struct{}
	once  sync.Once
}

func newDropWriter(w io.Writer) *dropWriter {
	d := &dropWriter{lines: make(chan []byte, stderrQueue), quit: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(d.done)
		for {
			select {
			case l := <-d.lines:
				_, _ = w.Write(l)
				continue
			default:
			}
			select {
			case l := <-d.lines:
				_, _ = w.Write(l)
			case <-d.quit:
				return
			}
		}
	}()
	return d
}

// Write queues p or drops it.
func (d *dropWriter) Write(p []byte) (int, error) {
	select {
	case d.lines <- slices.Clone(p):
	default:
	}
	return len(p), nil
}

// Sync does nothing: standard error cannot be synced.
func (d *dropWriter) Sync() error { return nil }

// close gives the queue a moment; a reader that is stuck is left behind, since
// the process ends.
func (d *dropWriter) close() {
	d.once.Do(func() { close(d.quit) })
	select {
	case <-d.done:
	case <-time.After(100 * time.Millisecond):
	}
}
