package wire

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// golden is one file of testdata: a struct with every field set, and one with
// only what is always there.
type golden struct {
	Full    json.RawMessage `json:"full"`
	Minimal json.RawMessage `json:"minimal"`
}

// sample returns a *T whose fields are all set, or with full unset only the
// arrays that are always present.
func sample(t reflect.Type, full bool) reflect.Value {
	v := reflect.New(t)
	for _, f := range reflect.VisibleFields(t) {
		if f.Anonymous {
			continue
		}
		fill(v.Elem().FieldByIndex(f.Index), f, full)
	}
	if e, ok := v.Interface().(Event); ok {
		for _, k := range Kinds() {
			if reflect.TypeOf(NewEvent(k)) == v.Type() {
				e.Header().Kind = k
			}
		}
	}
	return v
}

func fill(v reflect.Value, f reflect.StructField, full bool) {
	name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		if full {
			v.Set(reflect.ValueOf(time.Date(2026, 11, 30, 12, 30, 0, 250e6, time.UTC)))
		}
	case v.Type() == reflect.TypeFor[[]Event]():
		v.Set(reflect.ValueOf([]Event{}))
		if full {
			for _, k := range []Kind{KindMessageDelta, KindLagged} {
				v.Set(reflect.Append(v, sample(reflect.TypeOf(NewEvent(k)).Elem(), true)))
			}
		}
	case v.Kind() == reflect.Slice:
		if full {
			one := reflect.New(v.Type().Elem()).Elem()
			fill(one, f, true)
			v.Set(reflect.Append(v, one))
		} else if opts != "omitzero" {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		}
	case v.Kind() == reflect.Pointer:
		if full {
			v.Set(sample(v.Type().Elem(), true))
		}
	case v.Kind() == reflect.Struct:
		if full || opts != "omitzero" {
			v.Set(sample(v.Type(), full).Elem())
		}
	case !full:
	case v.Kind() == reflect.String:
		v.SetString(name + "-1")
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(7)
	case v.CanUint():
		v.SetUint(7)
	}
}

func TestEveryStructHasItsGoldenJSON(t *testing.T) {
	for _, typ := range Types() {
		t.Run(typ.Name(), func(t *testing.T) {
			full, minimal := sample(typ, true), sample(typ, false)
			var g golden
			for _, one := range []struct {
				v   reflect.Value
				out *json.RawMessage
			}{{full, &g.Full}, {minimal, &g.Minimal}} {
				data, err := json.Marshal(one.v.Interface())
				if err != nil {
					t.Fatal(err)
				}
				if bytes.Contains(data, []byte("null")) {
					t.Errorf("null on the wire: %s", data)
				}
				*one.out = data
				back := reflect.New(typ)
				if err := json.Unmarshal(data, back.Interface()); err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(one.v.Interface(), back.Interface()); d != "" {
					t.Errorf("decoding gives something else (-sent +got):\n%s", d)
				}
			}
			got, err := json.MarshalIndent(g, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, '\n')
			file := filepath.Join("testdata", typ.Name()+".json")
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), string(got)); d != "" {
				t.Errorf("%s (-golden +now; a field that went away or changed needs a new version):\n%s", file, d)
			}
		})
	}
}

func TestTypesAreComplete(t *testing.T) {
	listed := map[string]bool{"Method": true, "ErrorInfo": true} // about the protocol, not on it
	for _, typ := range Types() {
		listed[typ.Name()] = true
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			s, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if _, isStruct := s.Type.(*ast.StructType); isStruct && s.Name.IsExported() && !listed[s.Name.Name] {
				t.Errorf("%s: struct %s belongs to no method, event or error", name, s.Name.Name)
			}
			return true
		})
	}
	golden, err := filepath.Glob("testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range golden {
		if name := strings.TrimSuffix(filepath.Base(g), ".json"); !listed[name] {
			t.Errorf("%s is the golden file of no struct", g)
		}
	}
}

func TestTagsFollowTheRules(t *testing.T) {
	camel := regexp.MustCompile(`^[a-z][a-zA-Z]*(,omitzero)?$`)
	for _, typ := range Types() {
		for _, f := range reflect.VisibleFields(typ) {
			if f.Anonymous {
				continue
			}
			tag := f.Tag.Get("json")
			if !camel.MatchString(tag) {
				t.Errorf("%s.%s: tag %q is not camelCase with at most omitzero", typ.Name(), f.Name, tag)
			}
			switch f.Type.Kind() {
			case reflect.Map, reflect.Interface, reflect.Float64, reflect.Float32:
				t.Errorf("%s.%s: a %s cannot be generated for other languages", typ.Name(), f.Name, f.Type)
			case reflect.Pointer:
				if !strings.HasSuffix(tag, ",omitzero") {
					t.Errorf("%s.%s: a pointer without omitzero can be null", typ.Name(), f.Name)
				}
			}
			if f.Type == reflect.TypeFor[time.Duration]() {
				t.Errorf("%s.%s: a duration needs its unit in its name", typ.Name(), f.Name)
			}
		}
	}
}

func TestEventsOfUnknownKindsAreLeftOut(t *testing.T) {
	var got Events
	err := json.Unmarshal([]byte(`{"conversationId":"c","epoch":"e","new":1,"events":[
		{"kind":"fromTheFuture","seq":1,"time":"2026-11-30T12:00:00Z"},
		{"kind":"callStarted","seq":2,"time":"2026-11-30T12:00:00Z","callId":"k","more":{}}]}`), &got)
	if err != nil {
		t.Fatal(err)
	}
	head := Head{Kind: KindCallStarted, Seq: 2, Time: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}
	want := Events{ConversationID: "c", Epoch: "e", Events: []Event{&CallStarted{Head: head, CallID: "k"}}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestErrorCodesAndKindsAreUnique(t *testing.T) {
	codes, kinds := map[Code]bool{}, map[string]bool{}
	for _, e := range Errors() {
		if codes[e.Code] || kinds[e.Kind] || e.Meaning == "" {
			t.Errorf("code %d, kind %q: used twice or without a meaning", e.Code, e.Kind)
		}
		codes[e.Code], kinds[e.Kind] = true, true
	}
}
