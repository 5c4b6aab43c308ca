package wire

// Version is the version of the protocol that this package describes.
const Version = 1

// Offer is what an editor says at initialize, as the value of
// capabilities.experimental.lakecode or, where an editor cannot set that, of
// initializationOptions.lakecode. Without it the editor is served as a plain
// LSP client.
type Offer struct {
	// Versions are the protocol versions that the editor speaks.
	Versions []int `json:"versions"`
	// Save: the editor saves a document when asked to.
	Save bool `json:"save,omitzero"`
	// Cards: it shows questions and approvals and lets a person answer them.
	// Without it nobody is asked and what needs a person is refused.
	Cards bool `json:"cards,omitzero"`
	// Events: it wants lakecode/state for each conversation that it opens even
	// before it subscribes.
	Events bool `json:"events,omitzero"`
}

// Answer is the server's side of the handshake, in the result of initialize as
// capabilities.experimental.lakecode. Absent when no version is common.
type Answer struct {
	Version  int      `json:"version"`
	Features []string `json:"features"` // see [Features]
}

// Features lists what this version offers beyond the bare protocol; a later
// stage adds to it. The caller owns the slice.
func Features() []string {
	return []string{"conversation", "events", "interaction", "queue", "transcript", "session", "model", "commands"}
}
