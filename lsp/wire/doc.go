// Package wire is Lakecode's own protocol on top of LSP, version 1: method
// names, their params and results, the events of a conversation, and the codes
// of errors. docs/protocol.md explains it in prose; a test keeps the two equal.
//
// Main types: [Methods] lists every method with its types, [Event] is the union
// of what can happen in a conversation, [State] is what is so now, [Turn] and
// [Item] are its history, [Error] is the data of a refusal.
//
// Invariants, as absences: nothing here but data, so no behaviour depends on
// this package; no array is ever null and no optional field is ever present
// with its zero value; no duration without its unit in its name; no union
// without a "kind"; no id whose form a client may look into.
//
// Within a version fields, kinds, methods and features are only added. A reader
// ignores what it does not know.
//
//	for _, e := range batch.Events {
//		if d, ok := e.(*wire.MessageDelta); ok {
//			show(d.ItemID, d.Text)
//		}
//	}
package wire
