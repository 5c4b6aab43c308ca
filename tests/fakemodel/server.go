package fakemodel

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lakecode/lakecode/providers/rehearsal"
)

// patience bounds each wait for the program under test.
const patience = 60 * time.Second

// Server is a scripted model of one test. Safe for concurrent use.
type Server struct {
	t     testing.TB
	conf  Config
	judge *Checker
	srv   *rehearsal.Server

	mu       sync.Mutex
	requests []*rehearsal.Request
	changed  chan struct{} // closed and replaced at each arrival
}

// New serves conf.Script until the test ends. What is wrong with a request, a
// request that the script does not foresee, and what was never asked for, fail
// the test.
func New(t testing.TB, conf Config) *Server {
	t.Helper()
	script, err := rehearsal.Parse("script", conf.Script)
	if err != nil {
		t.Fatalf("fakemodel: %v", err)
	}
	s := &Server{t: t, conf: conf, judge: NewChecker(conf), changed: make(chan struct{})}
	s.srv, err = rehearsal.Start(context.Background(), script, rehearsal.Options{
		Observe: s.observe,
		Failed: func(err error) {
			if conf.Partial && errors.Is(err, io.ErrUnexpectedEOF) {
				return // the client was killed while it sent
			}
			t.Errorf("fakemodel: %v", err)
		},
	})
	if err != nil {
		t.Fatalf("fakemodel: %v", err)
	}
	t.Cleanup(s.end)
	return s
}

// end joins the server, then reports.
func (s *Server) end() {
	s.srv.Close()
	if s.conf.AtEnd {
		for _, r := range s.Requests() {
			s.report(r)
		}
	}
	if s.conf.Partial {
		return
	}
	for _, what := range s.srv.Unplayed() {
		s.t.Errorf("fakemodel: %s", what)
	}
}

func (s *Server) observe(r *rehearsal.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r)
	close(s.changed)
	s.changed = make(chan struct{})
	s.mu.Unlock()
	if !s.conf.AtEnd {
		s.report(r)
	}
}

func (s *Server) report(r *rehearsal.Request) {
	for _, what := range s.judge.Check(r) {
		s.t.Errorf("fakemodel: request %d: %s", r.N, what)
	}
}

// URL returns the base URL, without a trailing slash.
func (s *Server) URL() string { return s.srv.URL() }

// Requests returns what has arrived so far, in order.
func (s *Server) Requests() []*rehearsal.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Wait returns the first n requests as soon as they have arrived, and fails the
// test when they do not within 30 s.
func (s *Server) Wait(n int) []*rehearsal.Request {
	s.t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		s.mu.Lock()
		got, changed := slices.Clone(s.requests), s.changed
		s.mu.Unlock()
		if len(got) >= n {
			return got[:n]
		}
		select {
		case <-changed:
		case <-late.C:
			s.t.Fatalf("fakemodel: %d requests arrived within %v, want %d", len(got), patience, n)
		}
	}
}

// Ended waits until the answer to request n, from 1, has ended, and returns how:
// nil, or [rehearsal.ErrLeft] when the client went away. It fails the test when
// that takes more than 30 s.
func (s *Server) Ended(n int) error {
	s.t.Helper()
	r := s.Wait(n)[n-1]
	select {
	case <-r.Done():
		return r.Err()
	case <-time.After(patience):
		s.t.Fatalf("fakemodel: the answer to request %d did not end within %v", n, patience)
		return nil
	}
}

// Release opens a gate of the script for good.
func (s *Server) Release(gate string) {
	s.t.Helper()
	if err := s.srv.Release(gate); err != nil {
		s.t.Fatal(err)
	}
}

// Reached waits until an answer has come to a gate, and fails the test when
// none does within 30 s.
func (s *Server) Reached(gate string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.srv.Reached(ctx, gate); err != nil {
		s.t.Fatal(err)
	}
}

// Providers returns a providers.json (spec 30) with one connection, "fake", to
// this server. Any model id can be used with it.
func (s *Server) Providers() []byte {
	connection := map[string]any{
		"Id": "fake", "DefinitionId": "openai-compatible", "Name": "Fake model", "Revision": 1,
		"BaseUrl": s.URL(), "Protocol": "ChatCompletions",
	}
	if s.conf.Key != "" {
		connection["ApiKey"] = s.conf.Key
	}
	out, err := json.MarshalIndent(map[string]any{"SchemaVersion": 3, "Providers": []any{connection}}, "", "  ")
	if err != nil {
		s.t.Fatalf("fakemodel: %v", err)
	}
	return append(out, '\n')
}

// Install writes Providers to home, which it makes when it is not there.
func (s *Server) Install(home string) {
	s.t.Helper()
	if err := os.MkdirAll(home, 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "providers.json"), s.Providers(), 0o600); err != nil {
		s.t.Fatal(err)
	}
}
