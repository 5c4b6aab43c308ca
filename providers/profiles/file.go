package profiles

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/lakecode/lakecode/providers"
	"github.com/lakecode/lakecode/session/durable"
)

const (
	schema  = 3       // the version this program reads as it is
	maxFile = 4 << 20 // bytes of providers.json
)

// connection is one entry of the file.
type connection struct {
	id, definition, name string
	revision             int
	base, protocol       string
	key                  secret
	models               map[string]model
}

// model is what the file says about a model of a connection.
type model struct {
	manual, defined bool
	catalog         string
	name            string
	limits          providers.Limits
	modalities      []string // of the input; nil when not said
	outputs         []string
}

// Load reads providers.json at path, an absolute path. A file that does not exist
// is an empty list, not an error.
//
// Errors name the file and, for bad content, line and column: it cannot be read,
// it is a link or no regular file, it is damaged, it has an unknown field or a
// wrong type, an id is there twice, its SchemaVersion is newer, or older and not
// convertible. The file is left as it is.
func Load(path string) (*Registry, error) {
	text, err := durable.ReadFile(path, maxFile)
	reg := &Registry{path: path}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return reg, nil
	case err != nil:
		return nil, unreadable(path, err)
	}
	src := &source{path: path, text: bytes.TrimPrefix(text, []byte("\ufeff"))}
	if err := src.syntax(); err != nil {
		return nil, err
	}
	if err := reg.read(src); err != nil {
		return nil, err
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Perm()&0o044 != 0 {
		reg.warnings = append(reg.warnings, fmt.Sprintf("%s holds keys and others may read it (mode %04o); run: chmod 600 %s", path, info.Mode().Perm(), path))
	}
	for _, c := range reg.connections {
		if c.exposed() {
			reg.warnings = append(reg.warnings, fmt.Sprintf("the key of connection %q travels unencrypted, because its BaseUrl begins with http://", c.id))
		}
	}
	return reg, nil
}

func unreadable(path string, err error) error {
	switch {
	case errors.Is(err, durable.ErrLink):
		return fmt.Errorf("%s is a symbolic link; links are refused for the file with the keys, put the file itself there", path)
	case errors.Is(err, durable.ErrNotRegular):
		return fmt.Errorf("%s is not a regular file", path)
	case errors.Is(err, durable.ErrTooLarge):
		return fmt.Errorf("%s is larger than %d MiB, which no list of connections is", path, maxFile>>20)
	case errors.Is(err, fs.ErrPermission):
		mode := ""
		if info, serr := os.Lstat(path); serr == nil {
			mode = fmt.Sprintf(" (its mode is %04o)", info.Mode().Perm())
		}
		return fmt.Errorf("%s cannot be read: permission denied%s; make it yours and run: chmod 600 %s", path, mode, path)
	}
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return fmt.Errorf("%s cannot be read: %w", path, err)
}

// read takes the whole file in. The version is looked at before anything else,
// because it says what the rest may hold.
func (r *Registry) read(src *source) error {
	top := value{bytes.TrimSpace(src.text), len(src.text) - len(bytes.TrimLeft(src.text, " \t\r\n"))}
	version, off := 0, top.off
	if top.raw[0] != '{' {
		return src.at(top.off, "the file must be an object with SchemaVersion and Providers")
	}
	find := func(key string, _ int, m value) error {
		if key != "SchemaVersion" {
			return nil
		}
		off = m.off
		if json.Unmarshal(m.raw, &version) != nil {
			return src.at(m.off, "SchemaVersion must be a whole number")
		}
		return nil
	}
	if err := src.members(top, find); err != nil {
		return err
	}
	switch {
	case version > schema:
		return src.at(off, "SchemaVersion is %d, written by a newer version of Lakecode; this one reads up to %d and leaves the file as it is", version, schema)
	case version < 1:
		return src.at(off, "SchemaVersion is missing; the present one is %d", schema)
	case version < schema:
		return r.convert(src, top, version)
	}
	known := map[string]field{
		"SchemaVersion": {"a whole number", &version},
		"Providers": {"a list", func(v value) error {
			return src.list(v, "Providers", func(v value) error { return r.connection(src, v) })
		}},
	}
	return src.object(top, "the file", known)
}

func (r *Registry) connection(src *source, v value) error {
	c := &connection{models: map[string]model{}}
	const what = "a connection"
	text := func(into *string) field { return field{"text", into} }
	err := src.object(v, what, map[string]field{
		"Id": text(&c.id), "DefinitionId": text(&c.definition), "Name": text(&c.name),
		"BaseUrl": text(&c.base), "Protocol": text(&c.protocol),
		"Revision": {"a whole number", &c.revision},
		"ApiKey":   {"text", &c.key},
		"ModelOverrides": {"an object", func(v value) error {
			if v.raw[0] != '{' {
				return src.at(v.off, "ModelOverrides must be an object")
			}
			return src.members(v, func(id string, _ int, m value) error {
				got, err := readModel(src, m)
				c.models[id] = got
				return err
			})
		}},
	})
	switch {
	case err != nil:
		return err
	case c.id == "":
		return src.at(v.off, "a connection needs an Id")
	case c.id == reserved || c.definition == reserved:
		return src.at(v.off, "%q is built in; its connection cannot be in the file", reserved)
	case r.find(c.id) != nil:
		return src.at(v.off, "the Id %s is there twice", shown(c.id))
	case c.definition == "":
		return src.at(v.off, "connection %s needs a DefinitionId, such as %q", shown(c.id), openaiCompatible)
	}
	r.connections = append(r.connections, c)
	return nil
}

func readModel(src *source, v value) (m model, err error) {
	describe := func(what string) func(v value) error {
		return func(v value) error {
			return src.object(v, what, map[string]field{
				"Name":                {"text", &m.name},
				"ContextWindowTokens": {"a whole number", tokens(src, &m.limits.Context)},
				"MaxInputTokens":      {"a whole number", tokens(src, &m.limits.Input)},
				"MaxOutputTokens":     {"a whole number", tokens(src, &m.limits.Output)},
				"InputModalities":     {"a list of words", words(src, "InputModalities", &m.modalities, "Text", "Image")},
				"OutputModalities":    {"a list of words", words(src, "OutputModalities", &m.outputs, "Text", "Image")},
				"ReasoningEfforts":    {"a list of words", words(src, "ReasoningEfforts", &m.limits.Efforts, efforts...)},
			})
		}
	}
	err = src.object(v, "a model", map[string]field{
		"CatalogModelId": {"text", &m.catalog},
		"Manual":         {"true or false", &m.manual},
		"Definition":     {"an object", func(v value) error { m.defined = true; return describe("a Definition")(v) }},
		"Overrides":      {"an object", describe("Overrides")},
	})
	m.limits.Images = slices.Contains(m.modalities, "Image")
	return m, err
}

// tokens reads a positive number of tokens.
func tokens(src *source, into *int) func(value) error {
	return func(v value) error {
		n := 0
		if json.Unmarshal(v.raw, &n) != nil || n <= 0 {
			return src.at(v.off, "this must be a positive number of tokens")
		}
		*into = n
		return nil
	}
}

// words reads a list whose elements are all among allowed.
func words(src *source, what string, into *[]string, allowed ...string) func(value) error {
	return func(v value) error {
		return src.list(v, what, func(v value) error {
			for _, w := range allowed {
				if string(v.raw) == `"`+w+`"` {
					*into = append(*into, w)
					return nil
				}
			}
			return src.at(v.off, "%s may hold %s", what, quoted(allowed))
		})
	}
}

// convert reads a file of schema 1 or 2. Those held address and protocol of every
// connection, and one that is no definition's of this version cannot be taken
// over: which rules it falls under would be a guess.
func (r *Registry) convert(src *source, top value, version int) error {
	return src.members(top, func(key string, _ int, v value) error {
		if key != "Providers" {
			return nil
		}
		return src.list(v, "Providers", func(v value) error {
			return src.at(v.off, "this connection is written in schema %d, and its address belongs to no provider that this version knows; "+
				"write it anew in schema %d with DefinitionId %q (the file is left as it is)", version, schema, openaiCompatible)
		})
	})
}
