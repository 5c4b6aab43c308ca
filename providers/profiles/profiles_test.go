package profiles

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lakecode/lakecode/providers"
)

const canary = "sk-canary-0123456789abcdef"

// place writes providers.json into a fresh folder.
func place(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "providers.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func load(t *testing.T, text string) *Registry {
	t.Helper()
	reg, err := Load(place(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

// file is a whole file with the given connections.
func file(connections ...string) string {
	return `{"SchemaVersion": 3, "Providers": [` + strings.Join(connections, ", ") + `]}`
}

// conn is a sound connection with some fields replaced or added.
func conn(id string, fields ...string) string {
	all := map[string]string{
		"Id": `"` + id + `"`, "DefinitionId": `"openai-compatible"`, "Name": `"Local server"`, "Revision": `2`,
		"BaseUrl": `"http://127.0.0.1:8080/v1/"`, "Protocol": `"ChatCompletions"`, "ApiKey": `"` + canary + `"`,
	}
	for i := 0; i+1 < len(fields); i += 2 {
		all[fields[i]] = fields[i+1]
		if fields[i+1] == "" {
			delete(all, fields[i])
		}
	}
	var out []string
	for _, k := range []string{"Id", "DefinitionId", "Name", "Revision", "BaseUrl", "Protocol", "ApiKey", "ModelOverrides"} {
		if v, ok := all[k]; ok {
			out = append(out, fmt.Sprintf("%q: %s", k, v))
		}
	}
	return "{" + strings.Join(out, ", ") + "}"
}

const manual = `{"my-model": {"Manual": true, "Definition": {"Name": "Mine", "ContextWindowTokens": 128000, "MaxInputTokens": 112000,
	"MaxOutputTokens": 16000, "InputModalities": ["Text", "Image"], "OutputModalities": ["Text"], "ReasoningEfforts": ["none", "high"]}}}`

// Without a file there is nothing: no connection is built in and no key of the
// environment is taken. A connection appears once the file is edited.
// covers PROV-7
func TestNoFileIsEmptyAndEnvironmentIsIgnored(t *testing.T) {
	for _, name := range []string{"OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY"} {
		t.Setenv(name, canary)
	}
	path := filepath.Join(t.TempDir(), "no", "providers.json")
	reg, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := reg.List(); len(got) != 0 {
		t.Errorf("models out of nothing: %+v", got)
	}
	if p, m, ok := reg.Default(); ok {
		t.Errorf("a default out of nothing: %s %s", p, m)
	}
	for _, id := range []string{"", "openai", "local", "rehearsal"} {
		checkRefused(t, reg, id, "m", "", "no connection to a model is set up", path)
	}
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(file(conn("local"))), 0o600); err != nil {
		t.Fatal(err)
	}
	if reg, err = Load(path); err != nil {
		t.Fatal(err)
	}
	snap, err := reg.Resolve("local", "any/model:7b", "")
	if err != nil {
		t.Fatal(err)
	}
	checkSnapshot(t, snap, providers.Snapshot{
		Provider: "local", Name: "Local server", Revision: 2, Protocol: providers.ChatCompletions,
		BaseURL: "http://127.0.0.1:8080/v1", Model: "any/model:7b", Key: providers.NewSecret(canary),
	})
	if got, err := os.ReadFile(path); err != nil || string(got) != file(conn("local")) {
		t.Errorf("the file was touched: %s, %v", got, err)
	}
}

func checkSnapshot(t *testing.T, got, want providers.Snapshot) {
	t.Helper()
	if got.Key.Reveal() != want.Key.Reveal() {
		t.Error("the key is another one")
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(providers.Snapshot{}, "Key")); diff != "" {
		t.Errorf("snapshot (-want +got):\n%s", diff)
	}
}

// checkRefused wants a Resolve to fail with a text that holds the pieces.
func checkRefused(t *testing.T, reg *Registry, provider, model, effort string, pieces ...string) {
	t.Helper()
	snap, err := reg.Resolve(provider, model, effort)
	var e *providers.Error
	if !errors.As(err, &e) || e.Kind != providers.Misconfigured || e.Next == "" {
		t.Fatalf("%+v, %#v: want a refusal with a next step", snap, err)
	}
	checkText(t, e.Error()+" "+e.Next, pieces...)
}

func checkText(t *testing.T, s string, pieces ...string) {
	t.Helper()
	for _, p := range pieces {
		if !strings.Contains(s, p) {
			t.Errorf("%q does not hold %q", s, p)
		}
	}
	if strings.Contains(s, "canary") || strings.Contains(s, canary[12:]) {
		t.Errorf("%q holds the key", s)
	}
}

func TestDescribedModel(t *testing.T) {
	reg := load(t, file(conn("local", "ModelOverrides", manual, "Name", "")))
	limits := providers.Limits{Context: 128000, Input: 112000, Output: 16000, Images: true, Efforts: []string{"none", "high"}}
	want := providers.Snapshot{
		Provider: "local", Name: "local", Revision: 2, Protocol: providers.ChatCompletions,
		BaseURL: "http://127.0.0.1:8080/v1", Model: "my-model", Effort: "high", Key: providers.NewSecret(canary), Limits: limits,
	}
	for _, ids := range [][2]string{{"local", "my-model"}, {"local", ""}, {"", ""}, {"", "my-model"}} {
		got, err := reg.Resolve(ids[0], ids[1], "high")
		if err != nil {
			t.Fatal(err)
		}
		checkSnapshot(t, got, want)
	}
	list := []Entry{{Provider: "local", Model: "my-model", Name: "local", ModelName: "Mine", Limits: limits, Known: true}}
	if diff := cmp.Diff(list, reg.List()); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	if p, m, ok := reg.Default(); !ok || p != "local" || m != "my-model" {
		t.Errorf("default %q %q %v", p, m, ok)
	}
	checkRefused(t, reg, "local", "my-model", "low", `effort "low" is not supported`, `"none", "high"`)
	if _, err := reg.Resolve("local", "my-model", "none"); err != nil {
		t.Error(err)
	}
	if _, err := reg.Resolve("local", "other", "xhigh"); err != nil {
		t.Error(err)
	}
	checkRefused(t, reg, "local", "other", "ultra", `effort "ultra" is not supported`)
}

func TestOverridesOfAnUnknownModel(t *testing.T) {
	reg := load(t, file(conn("local", "ModelOverrides", `{"b": {"CatalogModelId": "gpt", "Overrides": {"MaxOutputTokens": 16000, "ReasoningEfforts": ["low"]}}, "a": {"Manual": true}, "c": {"Manual": true}}`)))
	want := []Entry{
		{Provider: "local", Model: "a", Name: "Local server", ModelName: "a"},
		{Provider: "local", Model: "b", Name: "Local server", ModelName: "b", Limits: providers.Limits{Output: 16000, Efforts: []string{"low"}}},
		{Provider: "local", Model: "c", Name: "Local server", ModelName: "c"},
	}
	if diff := cmp.Diff(want, reg.List()); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	checkRefused(t, reg, "local", "", "", "no model is named", `"a", "b", "c"`)
	checkRefused(t, reg, "", "", "", "no connection is named", `"local"`)
}

func TestResolveRefuses(t *testing.T) {
	for _, v := range []struct {
		name   string
		fields []string
		pieces []string
	}{
		{"Anthropic", []string{"DefinitionId", `"anthropic-compatible"`, "Protocol", `"AnthropicMessages"`}, []string{"anthropic-compatible", "not supported yet"}},
		{"a definition of a later version", []string{"DefinitionId", `"openrouter"`, "BaseUrl", "", "Protocol", ""}, []string{`does not know DefinitionId "openrouter"`}},
		{"a key as definition", []string{"DefinitionId", `"` + canary + `"`}, []string{"not shown"}},
		{"Responses", []string{"Protocol", `"Responses"`}, []string{`Protocol "Responses" is not supported yet`, "ChatCompletions"}},
		{"no protocol", []string{"Protocol", ""}, []string{"Protocol is missing"}},
		{"no address", []string{"BaseUrl", ""}, []string{"BaseUrl is missing"}},
		{"address without scheme", []string{"BaseUrl", `"127.0.0.1:8080"`}, []string{"BaseUrl is not an address"}},
		{"address of a file", []string{"BaseUrl", `"file:///etc"`}, []string{"must begin with http"}},
		{"address without host", []string{"BaseUrl", `"http:///v1"`}, []string{"names no server"}},
		{"address with a key", []string{"BaseUrl", `"https://u:` + canary + `@h/v1"`}, []string{"credentials belong into ApiKey"}},
		{"address with a query", []string{"BaseUrl", `"https://h/v1?key=` + canary + `"`}, []string{"must not hold ?"}},
		{"address of the method", []string{"BaseUrl", `"https://h/v1/chat/completions"`}, []string{"must end before /chat/completions"}},
		{"key with a line end", []string{"ApiKey", `"` + canary + `\n"`}, []string{"ApiKey holds"}},
		{"a model without text", []string{"ModelOverrides", `{"m": {"Manual": true, "Definition": {"OutputModalities": ["Image"]}}}`}, []string{"writes no text"}},
	} {
		t.Run(v.name, func(t *testing.T) {
			reg := load(t, file(conn("local", v.fields...), conn("good")))
			checkRefused(t, reg, "local", "m", "", v.pieces...)
			if _, err := reg.Resolve("good", "m", ""); err != nil {
				t.Errorf("the other connection suffers: %v", err)
			}
			for _, e := range reg.List() {
				checkText(t, e.Problem, v.pieces[0])
			}
		})
	}
	reg := load(t, file(conn("one"), conn("two")))
	checkRefused(t, reg, "three", "m", "", "three: there is no connection with this id", `"one", "two"`)
	checkRefused(t, reg, "", "m", "", `"one", "two"`)
}

// A file that is not as it must be is refused with its name and the place, and
// left as it is. No text repeats a key.
func TestBadFiles(t *testing.T) {
	good := conn("local")
	for _, v := range []struct {
		name, text string
		pieces     []string
	}{
		{"empty", " \n", []string{"is empty"}},
		{"cut", file(good)[:60], []string{"line 1, column 61", "not JSON"}},
		{"damaged", "{\n  \"SchemaVersion\": 3,\n  \"Providers\": [}\n}", []string{"line 3, column 17", "not JSON"}},
		{"damaged beside the key", "{\"SchemaVersion\": 3, \"Providers\": [{\"Id\": \"x\",\n\"ApiKey\": \"" + canary + "\" \"x\"}]}", []string{"line 2", "not JSON"}},
		{"key without quotes", "{\"SchemaVersion\": 3, \"Providers\": [{\"Id\": \"x\",\n\"ApiKey\": " + canary + "}]}", []string{"line 2, column 11", "not JSON"}},
		{"key with a bare line end", "{\"SchemaVersion\": 3, \"Providers\": [{\"ApiKey\": \"" + canary + "\n\"}]}", []string{"line 1", "not JSON"}},
		{"two values", file(good) + " {}", []string{"not JSON"}},
		{"a list", "[]", []string{"must be an object"}},
		{"no version", `{"Providers": []}`, []string{"SchemaVersion is missing"}},
		{"version as text", `{"SchemaVersion": "3"}`, []string{"SchemaVersion must be a whole number"}},
		{"newer version", "{\n \"SchemaVersion\": 4, \"Novelty\": 1}", []string{"line 2", "SchemaVersion is 4", "newer version", "reads up to 3"}},
		{"version 1", `{"SchemaVersion": 1, "Providers": [{"Id": "x", "Endpoint": "http://h", "ApiKey": "` + canary + `"}]}`, []string{"schema 1", "left as it is", "openai-compatible"}},
		{"version 2", "{\"SchemaVersion\": 2, \"Providers\": [\n" + good + "]}", []string{"line 2", "schema 2"}},
		{"unknown field of the file", "{\"SchemaVersion\": 3,\n  \"Provider\": []}", []string{"line 2, column 3", `unknown field "Provider"`}},
		{"unknown field of a connection", "{\"SchemaVersion\": 3, \"Providers\": [\n{\"Id\": \"x\",\n\t\"BaseURL\": \"http://h\"}]}", []string{"line 3, column 2", `unknown field "BaseURL" in a connection`}},
		{"a key as a field", file(`{"` + canary + `": 1}`), []string{"unknown field (not shown"}},
		{"unknown field of a model", file(conn("x", "ModelOverrides", `{"m": {"Manul": true}}`)), []string{`unknown field "Manul" in a model`}},
		{"unknown field of a definition", file(conn("x", "ModelOverrides", `{"m": {"Definition": {"Context": 1}}}`)), []string{`unknown field "Context" in a Definition`}},
		{"field twice", file(`{"Id": "x", "Id": "y"}`), []string{`"Id" is there twice`}},
		{"wrong type", file(`{"Id": 7}`), []string{"Id must be text"}},
		{"key of a wrong type", file(`{"Id": "x", "ApiKey": ["` + canary + `"]}`), []string{"ApiKey must be text"}},
		{"Providers as an object", `{"SchemaVersion": 3, "Providers": {}}`, []string{"Providers must be a list"}},
		{"a connection as text", `{"SchemaVersion": 3, "Providers": ["` + canary + `"]}`, []string{"a connection must be an object"}},
		{"ModelOverrides as a list", file(conn("x", "ModelOverrides", `[]`)), []string{"ModelOverrides must be an object"}},
		{"tokens below zero", file(conn("x", "ModelOverrides", `{"m": {"Definition": {"ContextWindowTokens": -1}}}`)), []string{"positive number of tokens"}},
		{"tokens with a fraction", file(conn("x", "ModelOverrides", `{"m": {"Overrides": {"MaxOutputTokens": 1.5}}}`)), []string{"positive number of tokens"}},
		{"unknown effort", file(conn("x", "ModelOverrides", `{"m": {"Overrides": {"ReasoningEfforts": ["hgih"]}}}`)), []string{"ReasoningEfforts may hold", `"high"`}},
		{"unknown modality", file(conn("x", "ModelOverrides", `{"m": {"Definition": {"InputModalities": ["Smell"]}}}`)), []string{`InputModalities may hold "Text", "Image"`}},
		{"no id", file(`{"DefinitionId": "openai-compatible"}`), []string{"needs an Id"}},
		{"no definition", file(`{"Id": "x"}`), []string{"needs a DefinitionId"}},
		{"an id twice", file(conn("x"), conn("x")), []string{`the Id "x" is there twice`}},
		{"rehearsal as id", file(conn("rehearsal")), []string{`"rehearsal" is built in`}},
		{"rehearsal as definition", file(conn("x", "DefinitionId", `"rehearsal"`)), []string{`"rehearsal" is built in`}},
	} {
		t.Run(v.name, func(t *testing.T) {
			path := place(t, v.text)
			reg, err := Load(path)
			if err == nil {
				t.Fatalf("read as %+v", reg.List())
			}
			checkText(t, err.Error(), append(v.pieces, path)...)
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
			if got, err := os.ReadFile(path); err != nil || string(got) != v.text {
				t.Errorf("the file was touched: %q, %v", got, err)
			}
		})
	}
}

func TestOldFileWithoutConnections(t *testing.T) {
	if got := load(t, `{"SchemaVersion": 2, "Providers": []}`).List(); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

func TestNullAndByteOrderMark(t *testing.T) {
	reg := load(t, "\ufeff"+file(conn("local", "ApiKey", "null", "ModelOverrides", "null", "Name", "null")))
	snap, err := reg.Resolve("local", "m", "")
	if err != nil || !snap.Key.IsZero() || snap.Name != "local" {
		t.Errorf("%+v, %v", snap, err)
	}
}

func TestUnfitFiles(t *testing.T) {
	dir := t.TempDir()
	real := place(t, file(conn("local")))
	link := filepath.Join(dir, "link.json")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	big := filepath.Join(dir, "big.json")
	if err := os.WriteFile(big, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(big, 1<<30); err != nil {
		t.Fatal(err)
	}
	for path, piece := range map[string]string{link: "symbolic link", dir: "not a regular file", big: "larger than 4 MiB", real + "/x": "not a directory"} {
		reg, err := Load(path)
		if err == nil {
			t.Errorf("%s was read as %+v", path, reg.List())
			continue
		}
		checkText(t, err.Error(), piece, path)
	}
}

func TestWarnings(t *testing.T) {
	path := place(t, file(conn("local"), conn("far", "BaseUrl", `"http://gpu.example/v1"`), conn("keyless", "BaseUrl", `"http://gpu.example/v1"`, "ApiKey", ""), conn("safe", "BaseUrl", `"https://h/v1"`)))
	for mode, want := range map[os.FileMode][]string{0o600: {"unencrypted"}, 0o640: {"chmod 600", "unencrypted"}, 0o604: {"chmod 600", "unencrypted"}} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		reg, err := Load(path)
		if err != nil {
			t.Fatal(err)
		}
		got := reg.Warnings()
		if len(got) != len(want) {
			t.Fatalf("mode %04o: %q", mode, got)
		}
		for i, piece := range want {
			checkText(t, got[i], piece)
		}
		if !strings.Contains(got[len(got)-1], `"far"`) {
			t.Errorf("%q", got)
		}
	}
}

// A registry that is printed by accident shows no key.
func TestRegistryPrintsNoKey(t *testing.T) {
	reg := load(t, file(conn("local")))
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
		checkText(t, fmt.Sprintf(verb+verb+verb, reg, *reg, reg.connections[0]))
	}
}

// FuzzLoad: no content makes Load panic or name the key.
func FuzzLoad(f *testing.F) {
	f.Add(file(conn("local", "ModelOverrides", manual)))
	f.Add(`{"SchemaVersion":2,"Providers":[{}]}`)
	f.Add("{\"SchemaVersion\":3,\n\"Providers\":null}")
	f.Fuzz(func(t *testing.T, text string) {
		src := &source{path: "providers.json", text: []byte(text)}
		reg := &Registry{path: "providers.json"}
		err := src.syntax()
		if err == nil {
			err = reg.read(src)
		}
		if err != nil {
			if strings.Contains(err.Error(), "canary") {
				t.Errorf("%q holds the key", err)
			}
			return
		}
		for _, e := range reg.List() {
			if e.Model != "" && e.Problem == "" {
				if _, err := reg.Resolve(e.Provider, e.Model, ""); err != nil {
					t.Errorf("%+v: %v", e, err)
				}
			}
		}
	})
}
