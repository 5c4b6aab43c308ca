package openai

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestSkipStringAgreesWithJSON(t *testing.T) {
	for _, s := range []string{
		`""`, `"a"`, `"\""`, `"\\"`, `"\\\""`, `"a\"b\\"`, `"\u0022"`, `"\\\\\""`, `"\n\"x\"\n"`, `"x\\"`, `"\"\"\"\""`,
	} {
		if !json.Valid([]byte(s)) {
			t.Fatalf("%s is no JSON", s)
		}
		for _, tail := range []string{"", `,"b":"c"}`, `"`, `\"`} {
			if got := skipString([]byte(s+tail), 0); got != len(s) {
				t.Errorf("skipString(%s) = %d, want %d", s+tail, got, len(s))
			}
		}
	}
	for _, cut := range []string{`"`, `"a`, `"\`, `"\"`, `"\\\"`} {
		if got := skipString([]byte(cut), 0); got != len(cut) {
			t.Errorf("skipString(%s) = %d, want %d", cut, got, len(cut))
		}
	}
}

// A file of many lines in one string, as a server sends it that does not stream:
// looking for the end anew at each escape would take hours.
func TestSkipStringPassesMillionsOfEscapesOnce(t *testing.T) {
	s := `"` + strings.Repeat(`\n`, 8<<20) + `"`
	if got := skipString([]byte(s), 0); got != len(s) {
		t.Errorf("skipString = %d, want %d", got, len(s))
	}
}
