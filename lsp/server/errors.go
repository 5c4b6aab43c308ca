package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"go.lsp.dev/jsonrpc2"

	"github.com/lakecode/lakecode/agent"
	"github.com/lakecode/lakecode/lsp/wire"
)

// ErrorOf returns the code, the message and the data under which a refusal goes
// to a client: a line of wire.Errors. An error that is no *agent.Error and no
// cancellation is "failed".
func ErrorOf(err error) (wire.Code, string, wire.Error) {
	kind, message := "failed", err.Error()
	var data wire.Error
	var refusal *agent.Error
	switch {
	case errors.As(err, &refusal):
		kind, message, data.Next = string(refusal.Code), refusal.Text, refusal.Next
		if refusal.Err != nil {
			data.Detail = refusal.Err.Error()
		}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		kind, message = "cancelled", "The request was cancelled."
	}
	code := wire.RequestFailed
	data.Kind = kind
	for _, e := range wire.Errors() {
		if e.Kind == kind {
			code, data.Retryable = e.Code, e.Retryable
		}
	}
	return code, message, data
}

// rpcError makes any error one that the library sends as it is.
func rpcError(err error) *jsonrpc2.Error {
	var ready *jsonrpc2.Error
	if errors.As(err, &ready) {
		return ready
	}
	code, message, data := ErrorOf(err)
	return withData(code, message, data)
}

func withData(code wire.Code, message string, data wire.Error) *jsonrpc2.Error {
	raw, err := json.Marshal(data)
	if err != nil { // cannot be: strings and booleans
		raw = nil
	}
	return &jsonrpc2.Error{Code: jsonrpc2.Code(code), Message: message, Data: raw}
}

// refuse makes an error without a cause in the agent.
func refuse(code wire.Code, format string, args ...any) *jsonrpc2.Error {
	return jsonrpc2.Errorf(jsonrpc2.Code(code), format, args...)
}

// badParam refuses a request because of one of its parameters.
func badParam(format string, args ...any) *jsonrpc2.Error {
	return withData(wire.InvalidParams, fmt.Sprintf(format, args...), wire.Error{Kind: "badRequest"})
}

func internalError(method string) *jsonrpc2.Error {
	return withData(wire.InternalError, "Internal error in "+method+". The log has the details.", wire.Error{Kind: "internal"})
}
