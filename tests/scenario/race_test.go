//go:build race

package scenario

var raceFlags = []string{"-race"}
