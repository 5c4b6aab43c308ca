package wire

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const protocol = "../../docs/protocol.md"

// rows returns the first cells of the lines of a table that begin like this.
func rows(doc, begin string, cells int) (out []string) {
	for line := range strings.Lines(doc) {
		if !regexp.MustCompile(begin).MatchString(line) {
			continue
		}
		row := strings.Split(strings.TrimSpace(line), "|")[1:]
		for i := range row {
			row[i] = strings.TrimSpace(row[i])
		}
		out = append(out, strings.Join(row[:cells], " | "))
	}
	return out
}

func TestDocumentAndCodeAgree(t *testing.T) {
	data, err := os.ReadFile(protocol)
	if err != nil {
		t.Fatal(err)
	}
	doc := string(data)
	check := func(what string, want, got []string) {
		t.Helper()
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: the table of %s (+) is not what the code says (-):\n%s", what, protocol, d)
		}
	}
	var methods, events, errors []string
	for _, m := range Methods() {
		result := "–"
		if m.Result != nil {
			result = "`" + reflect.TypeOf(m.Result).Name() + "`"
		}
		methods = append(methods, fmt.Sprintf("`%s` | %s | `%s` | %s", m.Name, m.Direction, reflect.TypeOf(m.Params).Name(), result))
	}
	for _, k := range Kinds() {
		events = append(events, fmt.Sprintf("`%s` | `%s`", k, reflect.TypeOf(NewEvent(k)).Elem().Name()))
	}
	for _, e := range Errors() {
		yes := map[bool]string{true: "yes", false: "no"}[e.Retryable]
		errors = append(errors, fmt.Sprintf("%d | `%s` | %s | %s", e.Code, e.Kind, yes, e.Meaning))
	}
	check("methods", methods, rows(doc, "^\\| `lakecode/", 4))
	check("events", events, rows(doc, "^\\| `[a-zA-Z]+` \\| `[A-Z]", 2))
	check("errors", errors, rows(doc, `^\| -?\d`, 4))

	if hash := regexp.MustCompile("Wire hash: `([0-9a-f]*)`").FindStringSubmatch(doc); hash == nil || hash[1] != Hash() {
		t.Errorf("the structs have changed: say so in %s and set its hash to %s (it has %q)", protocol, Hash(), hash)
	}
	for _, m := range Methods() {
		if n := strings.Count(doc, m.Name); n < 2 {
			t.Errorf("%s has no prose about %s", protocol, m.Name)
		}
	}
}

func TestHashSeesEveryChange(t *testing.T) {
	schema := Schema()
	for _, typ := range Types() {
		for _, f := range reflect.VisibleFields(typ) {
			if !f.Anonymous && !strings.Contains(schema, f.Tag.Get("json")+" "+f.Type.String()) {
				t.Errorf("%s.%s is not in the schema", typ.Name(), f.Name)
			}
		}
	}
	if lines := strings.Split(schema, "\n"); len(slices.Compact(slices.Sorted(slices.Values(lines)))) != len(lines) {
		t.Error("a line of the schema comes twice")
	}
}
