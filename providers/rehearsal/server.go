package rehearsal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// maxBody bounds a request, in bytes.
const maxBody = 256 << 20

// Options says how a script is served. The zero value is good.
type Options struct {
	// Addr is where to listen: a loopback address with a port; "" takes a free
	// port of 127.0.0.1.
	Addr string
	// Observe is called with each chat request before its answer begins, on the
	// request's goroutine; several may run at once.
	Observe func(*Request)
	// Failed is called with the reason each time a request is refused: an
	// expectation does not hold, no answer is left, or it is no chat request.
	Failed func(error)
}

// Server plays one script. Safe for concurrent use.
type Server struct {
	script Script
	opts   Options
	born   int64 // unix seconds
	url    string
	http   *http.Server
	ctx    context.Context // of every answer
	stop   context.CancelFunc
	accept sync.WaitGroup // the goroutine that accepts
	gates  map[string]*gate

	// mu guards everything below.
	mu       sync.Mutex
	closed   bool
	handlers sync.WaitGroup // grows under mu while closed is false
	requests int
	next     int          // index of the answer for the next request
	played   map[int]int  // steps begun, by answer
	refused  map[int]bool // answers spent on a request that was not as expected
}

// gate is a place where an answer waits.
type gate struct {
	reached, open  chan struct{}
	once, released sync.Once
}

func (g *gate) arrive() { g.once.Do(func() { close(g.reached) }) }

// Start serves script until Close. The end of ctx breaks off every answer and
// stops new ones; Close must be called all the same. It fails when the address
// is not loopback or is taken.
func Start(ctx context.Context, script Script, opts Options) (*Server, error) {
	addr := opts.Addr
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("rehearsal: the address %q is not host:port: %w", addr, err)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("rehearsal: a script is served on loopback only, for example 127.0.0.1:0; not on %q", addr)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("rehearsal: %w", err)
	}
	s := &Server{
		script: script, opts: opts, born: time.Now().Unix(), url: "http://" + l.Addr().String() + "/v1",
		gates: map[string]*gate{}, played: map[int]int{}, refused: map[int]bool{},
	}
	for _, name := range script.gates() {
		s.gates[name] = &gate{reached: make(chan struct{}), open: make(chan struct{})}
	}
	s.ctx, s.stop = context.WithCancel(ctx)
	s.http = &http.Server{
		Handler:           http.HandlerFunc(s.serve),
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return s.ctx },
		ErrorLog:          log.New(io.Discard, "", 0), // whatever matters is in Options.Failed
	}
	s.accept.Go(func() { _ = s.http.Serve(l) }) // always ErrServerClosed
	return s, nil
}

// URL returns the base URL, without a trailing slash: http://127.0.0.1:PORT/v1.
func (s *Server) URL() string { return s.url }

// Close breaks off what is being answered and returns when nothing of the
// server runs any more. It may be called twice.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	_ = s.http.Close() // only closes connections
	s.accept.Wait()
	s.handlers.Wait()
}

// Release opens a gate of the script for good.
func (s *Server) Release(name string) error {
	g, ok := s.gates[name]
	if !ok {
		return fmt.Errorf("rehearsal: the script %s has no gate %q", s.script.name, name)
	}
	g.released.Do(func() { close(g.open) })
	return nil
}

// Reached waits until an answer has come to a gate. It fails when the script
// has no such gate or ctx ends.
func (s *Server) Reached(ctx context.Context, name string) error {
	g, ok := s.gates[name]
	if !ok {
		return fmt.Errorf("rehearsal: the script %s has no gate %q", s.script.name, name)
	}
	select {
	case <-g.reached:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("rehearsal: no answer came to the gate %q: %w", name, ctx.Err())
	}
}

// Unplayed lists what of the script was never begun, one text per answer or
// step, in order: empty when everything was.
func (s *Server) Unplayed() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for i, a := range s.script.answers {
		if i >= s.next {
			out = append(out, fmt.Sprintf("%s:%d: answer %d was never asked for", s.script.name, a.line, i+1))
			continue
		}
		if s.refused[i] {
			continue // reported when it happened
		}
		for _, p := range a.steps[s.played[i]:] {
			out = append(out, fmt.Sprintf("%s:%d: answer %d broke off before: %s", s.script.name, p.line, i+1, p.text))
		}
	}
	return out
}

// enter counts a handler in; false once the server is closing.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.handlers.Add(1)
	return true
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	arrived := time.Now()
	if !s.enter() {
		refuse(w, http.StatusServiceUnavailable, "the server is closing")
		return
	}
	defer s.handlers.Done()
	switch r.Method + " " + r.URL.Path {
	case "GET /v1/models":
		s.models(w)
	case "POST /v1/chat/completions":
		s.chat(w, r, arrived)
	default:
		s.failed(fmt.Errorf("request for %s %s, which is not served", r.Method, r.URL.Path))
		refuse(w, http.StatusNotFound, fmt.Sprintf("%s %s is not served; there are GET /v1/models and POST /v1/chat/completions", r.Method, r.URL.Path))
	}
}

func (s *Server) models(w http.ResponseWriter) {
	type model struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"`
		OwnedBy string `json:"owned_by"`
	}
	list := []model{}
	for _, name := range s.script.Models() {
		list = append(list, model{name, "model", s.born, "rehearsal"})
	}
	w.Header().Set("Content-Type", "application/json")
	// An error means that the client left.
	_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": list})
}

func (s *Server) chat(w http.ResponseWriter, r *http.Request, arrived time.Time) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		s.failed(fmt.Errorf("the body of a request could not be read: %w", err))
		refuse(w, http.StatusBadRequest, "the body could not be read")
		return
	}
	req := &Request{Arrived: arrived, Read: time.Now(), Path: r.URL.Path, Header: r.Header, Body: body, done: make(chan struct{})}
	s.mu.Lock()
	s.requests++
	req.N = s.requests
	at := s.next
	if at < len(s.script.answers) {
		s.next++
	}
	s.mu.Unlock()
	defer close(req.done)
	if s.opts.Observe != nil {
		s.opts.Observe(req)
	}
	model, err := s.foresee(req, at)
	if err != nil {
		req.err = err
		s.mu.Lock()
		s.refused[at] = true
		s.mu.Unlock()
		s.failed(err)
		// Not a 5xx: a client rightly tries those again, and would spend the
		// answers that follow.
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	if req.err = s.play(w, r, req, at, model); req.err == nil {
		return
	}
	if errors.Is(req.err, errCut) {
		req.err = nil
	}
	// Returning would end the answer as if it were complete. This breaks the
	// connection instead; the deferred calls run.
	panic(http.ErrAbortHandler)
}

// foresee says why the script does not answer a request, or nil, and the model
// that is asked for.
func (s *Server) foresee(req *Request, at int) (model string, err error) {
	if at >= len(s.script.answers) {
		return "", fmt.Errorf("the script %s ends after %d answers, and request %d came", s.script.name, len(s.script.answers), req.N)
	}
	model, stream, err := req.outline()
	if err != nil {
		return "", fmt.Errorf("request %d is not a chat request: %w", req.N, err)
	}
	if !stream {
		return "", fmt.Errorf("request %d does not ask for a stream, and a script is only streamed", req.N)
	}
	wants := s.script.answers[at].wants
	if len(wants) == 0 {
		return model, nil
	}
	c, err := req.Chat()
	if err != nil {
		return "", fmt.Errorf("request %d is not a chat request: %w", req.N, err)
	}
	for _, e := range wants {
		if err := e.check(req, c); err != nil {
			return "", fmt.Errorf("%s:%d: request %d: %w", s.script.name, e.line, req.N, err)
		}
	}
	return model, nil
}

// play sends answer at in the name of model.
func (s *Server) play(w http.ResponseWriter, r *http.Request, req *Request, at int, model string) error {
	p := &player{
		w: w, rc: http.NewResponseController(w), ctx: r.Context(), srv: s, req: req, n: at + 1,
		model: quote(model), reason: "stop",
	}
	a := s.script.answers[at]
	for i, st := range a.steps {
		s.mu.Lock()
		s.played[at] = i + 1
		s.mu.Unlock()
		if err := st.step.play(p); err != nil {
			if errors.Is(err, errCut) {
				return errCut
			}
			return ErrLeft
		}
	}
	if err := p.finish(a.usage); err != nil {
		return ErrLeft
	}
	return nil
}

func (s *Server) failed(err error) {
	if s.opts.Failed != nil {
		s.opts.Failed(err)
	}
}

// refuse answers with an error as OpenAI's servers write it.
func refuse(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, errorBody("rehearsal: "+message)) // an error means that the client left
}
