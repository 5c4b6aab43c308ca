package wire

// Code is the code of a JSON-RPC error response.
type Code int

// Codes of JSON-RPC 2.0 and LSP 3.18 (section "Base Protocol", error codes).
const (
	ParseError           Code = -32700 // the body is not JSON
	InvalidRequest       Code = -32600 // not a request, or not now
	MethodNotFound       Code = -32601
	InvalidParams        Code = -32602 // a parameter is wrong; the message names it
	InternalError        Code = -32603 // a fault of ours; it is in the log
	ServerNotInitialized Code = -32002 // initialize comes first
	RequestFailed        Code = -32803 // valid, but it did not work out
	RequestCancelled     Code = -32800 // by $/cancelRequest, or the connection ended
)

// Codes of our own refusals. They are stable.
const (
	CodeBusy            Code = 1
	CodeBlocked         Code = 2
	CodeAlreadyResolved Code = 3
	CodeNoHuman         Code = 4
	CodeBadModel        Code = 5
	CodeNotFound        Code = 6
	CodeNotSaved        Code = 7
	CodeLocked          Code = 8
	CodeDamaged         Code = 9
	CodeClosed          Code = 10
	CodeUnsupported     Code = 11
)

// Error is the data of an error response. Kind is stable and meant for
// programs; Detail and Next are for a person and add to the message.
type Error struct {
	Kind      string `json:"kind"`
	Retryable bool   `json:"retryable"` // the same request may work later
	Detail    string `json:"detail,omitzero"`
	Next      string `json:"next,omitzero"`
}

// ErrorInfo is one line of the table of errors.
type ErrorInfo struct {
	Code      Code
	Kind      string
	Retryable bool
	Meaning   string
}

// Errors is the table of the errors that carry an [Error], in the order of
// docs/protocol.md. The caller owns the slice.
func Errors() []ErrorInfo {
	return []ErrorInfo{
		{CodeBusy, "busy", true, "not while other work is running, or too many requests wait"},
		{CodeBlocked, "blocked", false, "the last save failed: retrySave first"},
		{CodeAlreadyResolved, "alreadyResolved", false, "the interaction is decided or gone"},
		{CodeNoHuman, "noHuman", false, "nobody is there to answer"},
		{CodeBadModel, "badModel", false, "the connection or model cannot be used"},
		{InvalidParams, "badRequest", false, "a parameter is wrong; the message names it"},
		{CodeNotFound, "notFound", false, "no such session, conversation, message or interaction"},
		{CodeNotSaved, "notSaved", true, "the message could not be stored and was not accepted"},
		{CodeLocked, "locked", true, "another process has the session open"},
		{CodeDamaged, "damaged", false, "a stored file cannot be read; it is left as it is"},
		{CodeClosed, "closed", false, "the conversation is closing"},
		{CodeUnsupported, "unsupported", false, "this build or mode does not do that"},
		{RequestCancelled, "cancelled", true, "the request was cancelled"},
		{RequestFailed, "failed", false, "the request was valid but did not work out"},
		{InternalError, "internal", false, "a fault of Lakecode; the log has it"},
	}
}
