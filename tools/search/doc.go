// Package search holds the tools that find things in a workspace, search_text
// and find_files, and the answer to what a work tree ignores ([Rules]).
//
// A search runs over three parts. A [walk] meets the files that the ignore
// rules leave: by git's list where there is a work tree, by its own reading of
// folders elsewhere. A reader takes a file whole into a buffer that it keeps. A
// scanner looks in it for a string that every match must contain and judges the
// lines that hold one, and no others. An automaton judges, and finds the lines
// where there is no such string; the regular expression says where a match lies
// in the lines that are shown.
//
// A listing of paths is made by the same walk, and kept with a watch: the times
// of every folder and file that it depends on. The next call looks at those
// first and lists afresh when one differs, or was too fresh to be believed. A
// query is compared with the letters of each path, then as a subsequence, and
// only what may be among the first is aligned.
//
// Invariants, as absences: no link is followed and nothing is opened by a path
// (each folder by the descriptor of the one above it), so a search never leaves
// the root; no pipe, socket or device is waited for; no program runs but git,
// and git runs nothing that a repository configures; a limit on what is searched
// never makes an empty or shorter result but an error; a text that the editor
// has not saved is never passed over for the older one on the disk; no kept
// listing outlives a change on the disk.
//
// Goroutines: the workers of a call, as many as there are processors and at most
// eight, joined before it returns.
//
//	ts, err := search.New(search.Config{Workspace: w, Git: "/usr/bin/git", Run: run})
//	err = registry.Add(ts...)
package search
