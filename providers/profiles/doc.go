// Package profiles reads providers.json: the connections to model servers, their
// credentials and what is known about their models (spec 30). [Load] reads the
// file, [Registry.Resolve] turns a choice of connection, model and effort into a
// providers.Snapshot.
//
// Invariants, as absences: no connection is built in and nothing comes from the
// environment; the file is never written, a damaged or foreign one least of all;
// no symbolic link is followed; no error text holds a credential; nothing is
// invented about a model that the file does not describe; no network.
//
//	reg, err := profiles.Load("/home/u/.lakecode/providers.json")
//	if err != nil { return err }
//	snap, err := reg.Resolve("local", "my-model", "")
package profiles
