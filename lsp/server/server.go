package server

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"go.lsp.dev/jsonrpc2"
	"go.uber.org/zap"

	"github.com/lakecode/lakecode/agent"
	"github.com/lakecode/lakecode/lsp/overlay"
)

// Bounds of ending a connection.
const (
	joinTime  = 300 * time.Millisecond // for handlers and the input to let go
	drainTime = 200 * time.Millisecond // for the last responses to be read, and again for the output to let go
)

// Config is what a Server needs. Host, Docs and Log are required.
type Config struct {
	Host    agent.Host     // not closed by the server
	Docs    *overlay.Store // filled with what the editor opens
	Version string         // of the program, for serverInfo
	// Dir is the absolute path of the folder to work in where the editor names
	// none. Empty: conversations then need a cwd.
	Dir string
	Log *zap.Logger
}

// Server serves one editor. Make a new one for each connection.
type Server struct {
	host    agent.Host
	docs    *overlay.Store
	version string
	dir     string
	log     *zap.Logger

	outbox  *outbox
	conn    jsonrpc2.Conn
	methods map[string]method
	notes   map[string]func(params []byte) error
	ctx     context.Context // of the connection; ends before Serve returns
	end     context.CancelCauseFunc
	work    sync.WaitGroup // every goroutine but the writer and the library's
	present *presenter

	life   life
	calls  calls
	status status

	// after belongs to the read loop: what runs once the present message is
	// answered.
	after []func()

	mu    sync.Mutex // guards all below; never held across a call
	ended bool       // no goroutine may be added to work
	open  map[string]*conversation
}

// New makes a server. It panics when a required field is missing.
func New(c Config) *Server {
	if c.Host == nil || c.Docs == nil || c.Log == nil {
		panic("server.New: Host, Docs and Log are required")
	}
	s := &Server{
		host: c.Host, docs: c.Docs, version: c.Version, dir: c.Dir, log: c.Log,
		open: map[string]*conversation{}, calls: calls{cancel: map[jsonrpc2.ID]context.CancelCauseFunc{}},
	}
	s.methods, s.notes = s.table(), s.noteTable()
	s.status = status{s: s, of: map[*conversation]summary{}}
	return s
}

// Causes of the end of a connection.
var (
	errInputEnded = errors.New("the editor closed the connection")
	errParentGone = errors.New("the editor's process is gone")
)

// Serve speaks with the editor until it says exit, closes in, stops reading,
// dies (processId of initialize), or ctx ends. It closes in and out. Clean tells
// whether shutdown came before the end, as LSP 3.18 wants it for exit code 0.
// err is why writing failed, or the cause of ctx when that ended; the end of the
// input is no error.
//
// Conversations stay open: Host is the caller's to close. All goroutines are
// joined, except that one which is stuck in the host, or in a read or write that
// closing in or out does not interrupt, is left behind after at most 0.7 s.
func (s *Server) Serve(ctx context.Context, in io.ReadCloser, out io.WriteCloser) (clean bool, err error) {
	s.ctx, s.end = context.WithCancelCause(ctx)
	defer s.end(nil)
	s.outbox = newOutbox(out)
	st := newStream(in, s.outbox, s.between, s.log)
	s.conn = jsonrpc2.NewConn(st, jsonrpc2.WithCodec(codec{}))
	s.present = &presenter{s: s, wake: make(chan struct{}, 1), wait: createTime, stop: map[string]func(){}}
	s.spawn(s.present.run)

	written := make(chan error, 1)
	var writer sync.WaitGroup
	writer.Go(func() { written <- s.outbox.run() })
	s.conn.Go(s.ctx, s.handle)

	select {
	case <-st.ended:
		s.end(errInputEnded)
	case <-s.outbox.done:
		s.end(errGone)
	case <-s.ctx.Done():
	}
	cause := context.Cause(s.ctx)
	s.log.Info("connection ends", zap.Error(cause))
	s.finish()
	s.join(st, written, out)

	if w := s.outbox.failure(); w != nil {
		err = w
	} else if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return s.life.clean(), err
}

// spawn starts a goroutine that Serve joins. After the end it does nothing and
// returns false.
func (s *Server) spawn(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.work.Go(f)
	}
	return !s.ended
}

// finish lets go of the conversations and ends what waits for the editor.
func (s *Server) finish() {
	s.mu.Lock()
	s.ended = true
	all := s.open
	s.open = map[string]*conversation{}
	s.mu.Unlock()
	for _, c := range all {
		c.leave()
	}
}

// join waits for all goroutines, within bounds. The responses of handlers that
// end now are still written.
func (s *Server) join(st *stream, written <-chan error, out io.Closer) {
	if err := st.Close(); err != nil {
		s.log.Debug("closing the input", zap.Error(err))
	}
	idle := make(chan struct{})
	var waiter sync.WaitGroup
	waiter.Go(func() {
		s.work.Wait()
		<-s.conn.Done()
		close(idle)
	})
	if !before(idle, joinTime) {
		s.log.Warn("something did not let go of the connection")
	}
	s.outbox.close()
	done := make(chan struct{})
	waiter.Go(func() {
		if err := <-written; err != nil {
			s.log.Debug("writing ended", zap.Error(err))
		}
		close(done)
	})
	if !before(done, drainTime) {
		s.log.Warn("the last messages were not read")
	}
	if err := out.Close(); err != nil {
		s.log.Debug("closing the output", zap.Error(err))
	}
	before(done, drainTime)
}

// before waits for c, but not longer than d.
func before(c <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c:
		return true
	case <-t.C:
		return false
	}
}

// between runs on the read loop before each read. It reports that exit came.
func (s *Server) between() (end bool) {
	for _, f := range s.after {
		f()
	}
	s.after = s.after[:0]
	return s.life.exited()
}
