// Package files holds the tools that read, list and write files: read_file,
// list_directory, write_file, edit_file and apply_patch.
//
// [Tools] makes all of them over one workspace. Each is a struct of arguments
// and a function; what they share is the view of a text (text.go), the pager
// that cuts (page.go), the nearest places (candidate.go) and the diff (diff.go).
// An edit is matched in match.go. A patch is read in parse.go, gathered path by
// path in draft.go, and its hunks are placed in place.go and applied in hunk.go.
//
// Invariants, as absences: no path is opened here, all goes through the
// workspace; no limit cuts without saying so and naming the next call; no edit
// or hunk changes a byte outside of the differences between old and new, so byte
// order marks, line ends, trailing spaces and a missing final line end stay; no
// text that is not UTF-8 is written over; nothing is applied by a guess: a match
// is exact and unique, or unique and different only in space at line ends, which
// is said; no file of a patch is written when another cannot be.
//
//	ts, err := files.Tools(files.Config{Workspace: w, Ignored: rules.Ignored})
//	if err != nil { return err }
//	err = registry.Add(ts...)
package files
