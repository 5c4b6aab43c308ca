// Package durable puts files into place so that a crash, a full disk or a
// cancelled call leaves either the old file or the new one, never a mixture and
// never nothing. It is the only package that renames files.
//
// [WriteFile] replaces one file. [Stage] and [StageIn] prepare a change that
// may be one of many: all are staged first, which is where a full disk or a
// missing permission shows, then each is committed, and each committed one can
// be put back as it was. [ReadFile] is the reading side of the same rules.
//
// Invariants, as absences: no file is written in place; no symbolic link is
// followed at the last step of a path, neither read nor replaced; nothing is
// renamed that is not yet on the disk; no temporary file outlives its Staged
// unless the process is killed (names start with [TempPrefix]); no goroutine.
//
// What a replacement keeps of the former file: its permission bits and, where
// the process may do so, its owner. It does not keep other hard links, extended
// attributes or access lists.
//
//	s, err := durable.StageIn(root, "a/b.go", text, 0o644)
//	if err != nil { return err }
//	defer s.Discard()
//	if err := s.Commit(); err != nil { return err }
//	if err := tell(); err != nil { return errors.Join(err, s.Restore()) }
package durable
