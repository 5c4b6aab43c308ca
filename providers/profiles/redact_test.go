package profiles

import (
	"os"
	"path/filepath"
	"testing"
)

func TestKeysAreHiddenInForeignText(t *testing.T) {
	path := filepath.Join(t.TempDir(), "providers.json")
	text := `{"SchemaVersion":3,"Providers":[
		{"Id":"a","DefinitionId":"openai-compatible","Name":"A","Revision":1,"BaseUrl":"https://a/v1","Protocol":"ChatCompletions","ApiKey":"sk-long-enough"},
		{"Id":"b","DefinitionId":"openai-compatible","Name":"B","Revision":1,"BaseUrl":"https://b/v1","Protocol":"ChatCompletions","ApiKey":"short"},
		{"Id":"c","DefinitionId":"openai-compatible","Name":"C","Revision":1,"BaseUrl":"https://c/v1","Protocol":"ChatCompletions"}]}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		"x sk-long-enough y sk-long-enough": "x [secret] y [secret]",
		"a short word":                      "a short word",
		"nothing":                           "nothing",
		"":                                  "",
	} {
		if got := r.Redact(in); got != want {
			t.Errorf("Redact(%q) = %q, want %q", in, got, want)
		}
	}
}
