// Package providers is the neutral model of a conversation with a language
// model: what is asked ([Request]), what comes back ([Delta]), and how it fails
// ([Error]). Each wire protocol lives in a package of its own below this one
// and translates to these types; nothing else in the program sees wire JSON.
//
// Invariants, as absences: nothing here does I/O; a [Secret] cannot be
// serialised or printed; a [Request] holds no pointer into live settings.
//
//	for d, err := range client.Stream(ctx, snap, req) {
//		if err != nil { return err } // *providers.Error
//		switch d := d.(type) {
//		case providers.TextDelta: show(d.Text)
//		case providers.Done:      keep(d.Message)
//		}
//	}
package providers
