package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.uber.org/zap"

	"github.com/lakecode/lakecode/lsp/wire"
)

// stream is the transport that the JSON-RPC library sees: it only ever returns
// valid messages, answers the rest itself, and its writes never block.
type stream struct {
	frames *frames
	outbox *outbox
	log    *zap.Logger
	in     io.Closer
	close  sync.Once

	// Both belong to the read loop. pending holds the messages of a batch that
	// are still to come; between runs before each read, when every inline handler
	// has been answered.
	pending []*jsonrpc2.ParsedMessage
	between func() (end bool)
	ended   chan struct{} // closed by the read that returned an error
}

func newStream(in io.ReadCloser, out *outbox, between func() bool, log *zap.Logger) *stream {
	return &stream{frames: newFrames(in, log), outbox: out, log: log, in: in, between: between, ended: make(chan struct{})}
}

// Read implements jsonrpc2.Stream. A batch comes out as single messages; their
// responses are single ones too.
func (s *stream) Read(ctx context.Context) (jsonrpc2.Message, int64, error) {
	if s.between() {
		close(s.ended)
		return nil, 0, io.EOF
	}
	for {
		if len(s.pending) > 0 {
			m := s.pending[0]
			s.pending = s.pending[1:]
			if m.Err != nil {
				s.answer(nil, wire.InvalidRequest, m.Err.Message)
				continue
			}
			return m.Msg, 0, nil
		}
		body, err := s.frames.next()
		switch {
		case errors.Is(err, errTooLong):
			s.answer(nil, wire.InvalidRequest, "The message is longer than 64 MiB and was not read.")
			continue
		case err != nil:
			close(s.ended)
			return nil, 0, err
		}
		if msg := s.decode(body); msg != nil {
			return msg, int64(len(body)), nil
		}
	}
}

// decode returns nil for what is no message, after answering it.
func (s *stream) decode(body []byte) jsonrpc2.Message {
	if t := bytes.TrimLeft(body, " \t\r\n"); len(t) > 0 && t[0] == '[' {
		if batch, err := jsonrpc2.ParseRequests(body); err == nil && len(batch) > 0 {
			s.pending = batch
			return nil
		}
	}
	msg, err := jsonrpc2.DecodeMessage(body)
	if err == nil {
		return msg
	}
	if !json.Valid(body) {
		s.answer(nil, wire.ParseError, "The message is not JSON.")
		return nil
	}
	var m struct {
		Version any             `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  any             `json:"method"`
		Result  json.RawMessage `json:"result"`
		Error   json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(body, &m); err != nil {
		s.answer(nil, wire.InvalidRequest, "The message is not an object.")
		return nil
	}
	switch {
	case m.Method == nil && (m.Result != nil || m.Error != nil):
		s.log.Warn("a response that is none was dropped") // an answer to it would be an answer to an answer
	case m.Version != "2.0":
		s.answer(m.ID, wire.InvalidRequest, `"jsonrpc" must be "2.0".`)
	default:
		s.answer(m.ID, wire.InvalidRequest, `"method" must be a string and "id" a string or an integer.`)
	}
	return nil
}

// answer sends an error response for a message that no handler will see. An id
// that is neither a string nor a number becomes null, as JSON-RPC wants it.
func (s *stream) answer(id json.RawMessage, code wire.Code, text string) {
	s.log.Warn("a message was refused", zap.Int("code", int(code)), zap.String("why", text))
	if len(id) == 0 || !strings.ContainsRune(`"-0123456789`, rune(id[0])) {
		id = json.RawMessage("null")
	}
	response, err := json.Marshal(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   any             `json:"error"`
	}{"2.0", id, struct {
		Code    wire.Code `json:"code"`
		Message string    `json:"message"`
	}{code, text}})
	if err == nil {
		_, err = s.outbox.frame(func(dst []byte) []byte { return append(dst, response...) })
	}
	if err != nil {
		s.log.Warn("the refusal could not be sent", zap.Error(err))
	}
}

// Write implements jsonrpc2.Stream. It is safe for concurrent use.
func (s *stream) Write(_ context.Context, msg jsonrpc2.Message) (int64, error) {
	return s.outbox.frame(func(dst []byte) []byte { return jsonrpc2.AppendMessage(dst, msg) })
}

// Close implements jsonrpc2.Stream. It ends reading; the outbox has its own end.
func (s *stream) Close() error {
	var err error
	s.close.Do(func() { err = s.in.Close() })
	return err
}

// codec makes JSON of results and params; the library's own one for LSP is not
// exported.
type codec struct{}

func (codec) Marshal(v any) ([]byte, error) {
	if raw, ok := v.(jsonrpc2.RawMessage); ok && raw != nil {
		return raw, nil
	}
	return protocol.Marshal(v)
}

func (codec) Unmarshal(data []byte, v any) error {
	if raw, ok := v.(*jsonrpc2.RawMessage); ok {
		*raw = bytes.Clone(data)
		return nil
	}
	return protocol.Unmarshal(data, v)
}
