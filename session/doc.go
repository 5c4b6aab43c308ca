// Package session keeps conversations on disk: the folder ~/.lakecode ([Home]),
// the sessions in it ([Store]), and per session an append-only [Log] of
// records, which folds into an [Archive].
//
// A log begins with a line that names the format and its [Version]. Each record
// is one line of its own: checksum, length, kind, compact JSON. The checksum
// runs on from record to record, so a missing or repeated record shows as well
// as a changed byte. What a crash can leave is a beginning of the last record;
// opening cuts it off, keeps the bytes in log.torn-<n> and says so in
// Archive.Repairs. Any other flaw is a [DamagedError].
//
// Text that is not UTF-8 is stored with U+FFFD for each invalid byte, the same
// as in the body of a request to a model, so both read alike after reopening.
//
// Invariants, as absences: a log is never rewritten, reset or shortened by more
// than a torn last record; no session is written without its lock; appending
// never reads what was written before; the index answers nothing that the logs
// do not say; no symbolic link below the home is followed; no key is stored; no
// goroutine is started.
//
//	home, err := session.OpenHome(path)
//	store := session.NewStore(home)
//	log, archive, err := store.Create(ctx, root, nil)
//	rec := session.Accepted{Message: m}
//	err = archive.Apply(rec)          // refuses what cannot follow
//	err = log.Append(ctx, true, rec)  // durable when it returns nil
package session
