package server

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"

	"github.com/lakecode/lakecode/lsp/overlay"
	"github.com/lakecode/lakecode/lsp/wire"
)

// decode reads the params of a request into a T, which then owns its strings.
// Absent params are an empty object; unknown fields are ignored.
func decode[T any](params []byte) (T, error) {
	var out T
	if len(params) == 0 || string(params) == "null" {
		return out, nil
	}
	err := json.Unmarshal(params, &out)
	if err == nil {
		return out, nil
	}
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong) && wrong.Field != "":
		return out, badParam("%s must be %s, not a %s.", wrong.Field, kindOf(wrong.Type.Kind().String()), wrong.Value)
	case errors.As(err, &wrong):
		return out, badParam("The params must be an object, not a %s.", wrong.Value)
	case !json.Valid(params):
		return out, refuse(wire.ParseError, "The params are not JSON: %v.", err)
	}
	return out, badParam("The params cannot be read: %v.", err)
}

// kindOf names a Go kind as JSON calls it.
func kindOf(kind string) string {
	switch {
	case kind == "slice":
		return "an array"
	case kind == "struct", kind == "map", kind == "ptr":
		return "an object"
	case kind == "bool":
		return "true or false"
	case strings.HasPrefix(kind, "uint"):
		return "a whole number from 0"
	case strings.HasPrefix(kind, "int"):
		return "a whole number"
	}
	return "a string"
}

// folder makes an absolute path of what an editor calls a folder: a path or a
// file URI.
func folder(field, name string) (string, error) {
	if p, ok := overlay.FilePath(name); ok {
		return p, nil
	}
	if !filepath.IsAbs(name) {
		return "", badParam("%s must be an absolute path or a file URI, not %q.", field, name)
	}
	return filepath.Clean(name), nil
}
