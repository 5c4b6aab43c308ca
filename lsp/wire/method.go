package wire

// Requests to the server.
const (
	StateGet               = "lakecode/state/get"
	ConversationCreate     = "lakecode/conversation/create"
	ConversationOpen       = "lakecode/conversation/open"
	ConversationClose      = "lakecode/conversation/close"
	ConversationSubmit     = "lakecode/conversation/submit"
	ConversationStop       = "lakecode/conversation/stop"
	ConversationSubscribe  = "lakecode/conversation/subscribe"
	ConversationTranscript = "lakecode/conversation/transcript"
	ConversationRetrySave  = "lakecode/conversation/retrySave"
	ConversationRename     = "lakecode/conversation/rename"
	InteractionResolve     = "lakecode/interaction/resolve"
	QueueResume            = "lakecode/queue/resume"
	QueueRemove            = "lakecode/queue/remove"
	SessionList            = "lakecode/session/list"
	ModelList              = "lakecode/model/list"
)

// Notifications to the editor.
const (
	EventsNote = "lakecode/events"
	StateNote  = "lakecode/state"
	StatusNote = "lakecode/status"
)

// Direction says who sends a method and whether it is answered.
type Direction string

// The directions.
const (
	Request Direction = "request"      // editor to server, answered
	Note    Direction = "notification" // server to editor
)

// Method is one line of the protocol: its name and the types that belong to it.
type Method struct {
	Name      string
	Direction Direction
	Params    any // a zero struct
	Result    any // a zero struct; nil for a notification
}

// Methods lists the protocol, in the order of docs/protocol.md. The caller owns
// the slice.
func Methods() []Method {
	return []Method{
		{StateGet, Request, StateGetParams{}, StateGetResult{}},
		{ConversationCreate, Request, CreateParams{}, OpenResult{}},
		{ConversationOpen, Request, ConversationParams{}, OpenResult{}},
		{ConversationClose, Request, ConversationParams{}, Empty{}},
		{ConversationSubmit, Request, SubmitParams{}, SubmitResult{}},
		{ConversationStop, Request, ConversationParams{}, Accepted{}},
		{ConversationSubscribe, Request, SubscribeParams{}, SubscribeResult{}},
		{ConversationTranscript, Request, TranscriptParams{}, TranscriptResult{}},
		{ConversationRetrySave, Request, ConversationParams{}, Accepted{}},
		{ConversationRename, Request, RenameParams{}, Accepted{}},
		{InteractionResolve, Request, ResolveParams{}, Accepted{}},
		{QueueResume, Request, ConversationParams{}, Accepted{}},
		{QueueRemove, Request, RemoveParams{}, Accepted{}},
		{SessionList, Request, SessionListParams{}, SessionListResult{}},
		{ModelList, Request, Empty{}, ModelListResult{}},
		{EventsNote, Note, Events{}, nil},
		{StateNote, Note, State{}, nil},
		{StatusNote, Note, Status{}, nil},
	}
}

// Empty is an object without fields.
type Empty struct{}

// Command returns the name under which workspace/executeCommand offers a
// request: "lakecode.conversation.submit" for "lakecode/conversation/submit".
// Its only argument is the params object, as an object or as JSON in a string.
func Command(method string) string {
	b := []byte(method)
	for i, c := range b {
		if c == '/' {
			b[i] = '.'
		}
	}
	return string(b)
}
