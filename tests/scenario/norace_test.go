//go:build !race

package scenario

var raceFlags []string
