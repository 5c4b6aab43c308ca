package server

import (
	"context"
	"encoding/json"
	"errors"
	"runtime/debug"
	"strings"
	"sync"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.uber.org/zap"

	"github.com/lakecode/lakecode/lsp/wire"
)

// method begins to answer a request. It runs on the read loop: it decodes params,
// which are gone when it returns, takes the request's place in the order, and
// either answers or returns what there is to wait for. ctx ends with the
// connection and by $/cancelRequest.
type method func(ctx context.Context, params []byte) (result any, wait waiting, err error)

// waiting is the rest of a request. It runs beside the read loop and must end
// soon after ctx.
type waiting func(ctx context.Context) (any, error)

// errCancelled is the cause when the editor cancels a request.
var errCancelled = errors.New("cancelled by the editor")

// calls are the requests that are being answered.
type calls struct {
	mu     sync.Mutex // guards cancel
	cancel map[jsonrpc2.ID]context.CancelCauseFunc
}

// handle is the handler of the connection. The library recycles rctx and req as
// soon as it returns, ends the connection when a notification fails or a handler
// panics, and sends plain errors with code 0; all of that is kept from it here.
func (s *Server) handle(rctx context.Context, req *jsonrpc2.Request) (result any, err error) {
	name, call := strings.Clone(req.Method()), req.IsCall()
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("panic in a handler", zap.String("method", name), zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
			result, err = nil, internalError(name)
		}
		switch {
		case err == nil:
		case call:
			err = rpcError(err)
		default:
			s.log.Warn("notification was ignored", zap.String("method", name), zap.Error(err))
			err = nil
		}
	}()
	if !call {
		return nil, s.note(name, req.Params())
	}
	ctx, done := s.calls.begin(jsonrpc2.DetachContext(rctx), req.ID())
	defer done()
	if err := s.life.allows(name); err != nil {
		return nil, err
	}
	m, ok := s.methods[name]
	if !ok {
		return nil, refuse(wire.MethodNotFound, "Lakecode does not know the method %q.", name)
	}
	result, wait, err := m(ctx, req.Params())
	if err != nil || wait == nil {
		return result, err
	}
	jsonrpc2.Async(rctx) // the next message is read from here on
	result, err = wait(ctx)
	if err != nil && ctx.Err() != nil {
		err = ctx.Err() // however the wait calls it
	}
	return result, err
}

// note handles a notification. Unknown ones are ignored, as LSP 3.18 asks.
func (s *Server) note(name string, params []byte) error {
	switch name {
	case protocol.MethodExit:
		s.life.exit()
		return nil
	case protocol.MethodCancelRequest:
		return s.calls.cancelled(params)
	}
	h, ok := s.notes[name]
	if !ok || s.life.allows(name) != nil {
		s.log.Debug("notification was dropped", zap.String("method", name), zap.Bool("known", ok))
		return nil
	}
	return h(params)
}

// begin makes the context of a request known to cancelRequest. It does so on the
// read loop, so a cancellation cannot come before it.
func (c *calls) begin(parent context.Context, id jsonrpc2.ID) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	c.mu.Lock()
	c.cancel[id] = cancel
	c.mu.Unlock()
	return ctx, func() {
		c.mu.Lock()
		delete(c.cancel, id)
		c.mu.Unlock()
		cancel(nil)
	}
}

// cancelled handles $/cancelRequest (LSP 3.18, Cancellation Support). Ids that
// nobody waits for are ignored: the answer may be on its way.
func (c *calls) cancelled(params []byte) error {
	var p struct {
		ID json.RawMessage `json:"id"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return err
	}
	var number int64
	var text string
	var id jsonrpc2.ID
	switch {
	case json.Unmarshal(p.ID, &text) == nil:
		id = jsonrpc2.NewStringID(text)
	case json.Unmarshal(p.ID, &number) == nil:
		id = jsonrpc2.NewNumberID(number)
	default:
		return errors.New("the id is neither a string nor an integer")
	}
	c.mu.Lock()
	cancel := c.cancel[id]
	c.mu.Unlock()
	if cancel != nil {
		cancel(errCancelled)
	}
	return nil
}
