package server

import (
	"errors"
	"fmt"
	"math"

	"go.lsp.dev/protocol"
	"go.uber.org/zap"

	"github.com/lakecode/lakecode/lsp/overlay"
)

// The notifications of LSP 3.18, Text Document Synchronization, as far as we
// read them. The library's own types are not used: they take a change whose
// range is out of bounds for a whole text, and they rewrite URIs.
type (
	opened struct {
		TextDocument struct {
			URI        string `json:"uri"`
			LanguageID string `json:"languageId"`
			Version    int32  `json:"version"`
			Text       string `json:"text"`
		} `json:"textDocument"`
	}
	changed struct {
		TextDocument struct {
			URI     string `json:"uri"`
			Version int32  `json:"version"`
		} `json:"textDocument"`
		Changes []struct {
			Range *span  `json:"range"`
			Text  string `json:"text"`
		} `json:"contentChanges"`
	}
	span struct {
		Start position `json:"start"`
		End   position `json:"end"`
	}
	position struct {
		Line      int64 `json:"line"`
		Character int64 `json:"character"`
	}
	named struct {
		TextDocument struct {
			URI string `json:"uri"`
		} `json:"textDocument"`
		Text *string `json:"text"`
	}
)

func (s *Server) noteTable() map[string]func([]byte) error {
	return map[string]func([]byte) error{
		protocol.MethodInitialized:                        s.initialized,
		protocol.MethodTextDocumentDidOpen:                s.didOpen,
		protocol.MethodTextDocumentDidChange:              s.didChange,
		protocol.MethodTextDocumentDidClose:               s.didClose,
		protocol.MethodTextDocumentDidSave:                s.didSave,
		protocol.MethodWorkspaceDidChangeWorkspaceFolders: s.foldersChanged,
		protocol.MethodWindowWorkDoneProgressCancel:       func(p []byte) error { return s.present.cancelled(p) },
	}
}

func (s *Server) didOpen(params []byte) error {
	var p opened
	if err := protocol.Unmarshal(params, &p); err != nil {
		return err
	}
	if p.TextDocument.URI == "" {
		return errors.New("textDocument.uri is missing")
	}
	s.docs.Open(overlay.Doc{
		URI: p.TextDocument.URI, Language: p.TextDocument.LanguageID,
		Version: p.TextDocument.Version, Text: p.TextDocument.Text,
	})
	return nil
}

func (s *Server) didChange(params []byte) error {
	var p changed
	if err := protocol.Unmarshal(params, &p); err != nil {
		return s.missed(params, err)
	}
	changes := make([]overlay.Change, 0, len(p.Changes))
	for _, c := range p.Changes {
		one := overlay.Change{Text: c.Text}
		if c.Range != nil {
			start, err1 := c.Range.Start.check()
			end, err2 := c.Range.End.check()
			if err := errors.Join(err1, err2); err != nil {
				return s.missed(params, err)
			}
			one.Range = &overlay.Range{Start: start, End: end}
		}
		changes = append(changes, one)
	}
	err := s.docs.Change(p.TextDocument.URI, p.TextDocument.Version, changes)
	var clamped *overlay.ClampedError
	if errors.As(err, &clamped) {
		s.log.Warn("change was out of range", zap.Error(err))
		return nil
	}
	return err
}

// missed is for a change that cannot be read: the document is out of step from
// here on, which is told to the overlay by a change that cannot be the next one.
func (s *Server) missed(params []byte, why error) error {
	var p named
	if err := protocol.Unmarshal(params, &p); err == nil && p.TextDocument.URI != "" {
		var stale *overlay.StaleError
		if err := s.docs.Change(p.TextDocument.URI, math.MinInt32, nil); err != nil && !errors.As(err, &stale) {
			return errors.Join(why, err)
		}
	}
	return why
}

// check makes a place of a position. LSP has unsigned 31-bit numbers; beyond
// those the nearest is taken and clamped to the text later, below zero there is
// no meaning.
func (p position) check() (overlay.Position, error) {
	if p.Line < 0 || p.Character < 0 {
		return overlay.Position{}, fmt.Errorf("position %d:%d is negative", p.Line, p.Character)
	}
	return overlay.Position{
		Line:      uint32(min(p.Line, math.MaxInt32)),
		Character: uint32(min(p.Character, math.MaxInt32)),
	}, nil
}

func (s *Server) didClose(params []byte) error {
	var p named
	if err := protocol.Unmarshal(params, &p); err != nil {
		return err
	}
	s.docs.Close(p.TextDocument.URI)
	return nil
}

func (s *Server) didSave(params []byte) error {
	var p named
	if err := protocol.Unmarshal(params, &p); err != nil {
		return err
	}
	s.docs.Save(p.TextDocument.URI, p.Text)
	return nil
}
