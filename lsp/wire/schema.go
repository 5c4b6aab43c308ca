package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
)

// Schema describes every struct of the protocol, one a line, sorted by first
// use: "State{conversationId string; seq uint64; ...}". It is what the hash in
// docs/protocol.md stands for, and what a generator of other languages' types
// starts from together with [Types].
func Schema() string {
	var b strings.Builder
	for _, m := range Methods() {
		fmt.Fprintf(&b, "%s %s %s %s\n", m.Direction, m.Name, typeName(reflect.TypeOf(m.Params)), typeName(reflect.TypeOf(m.Result)))
	}
	for _, k := range Kinds() {
		fmt.Fprintf(&b, "event %s %s\n", k, reflect.TypeOf(NewEvent(k)).Elem().Name())
	}
	for _, e := range Errors() {
		fmt.Fprintf(&b, "error %d %s %t\n", e.Code, e.Kind, e.Retryable)
	}
	for _, t := range Types() {
		fmt.Fprintf(&b, "%s{", t.Name())
		sep := ""
		for _, f := range reflect.VisibleFields(t) {
			if f.Anonymous { // its fields follow by themselves
				continue
			}
			fmt.Fprintf(&b, "%s%s %s", sep, f.Tag.Get("json"), f.Type)
			sep = "; "
		}
		b.WriteString("}\n")
	}
	return b.String()
}

// Hash is the first 16 hexadecimal digits of the SHA-256 of [Schema].
func Hash() string {
	sum := sha256.Sum256([]byte(Schema()))
	return hex.EncodeToString(sum[:8])
}

// Types lists every struct that can appear on the wire, each once, sorted by
// first use. The caller owns the slice.
func Types() []reflect.Type {
	var all []reflect.Type
	seen := map[reflect.Type]bool{}
	var visit func(t reflect.Type)
	visit = func(t reflect.Type) {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice:
			visit(t.Elem())
			return
		case reflect.Struct:
		default:
			return
		}
		if seen[t] || t.PkgPath() != reflect.TypeFor[Head]().PkgPath() {
			return
		}
		seen[t] = true
		all = append(all, t)
		for _, f := range reflect.VisibleFields(t) {
			if len(f.Index) == 1 {
				visit(f.Type)
			}
		}
	}
	visit(reflect.TypeFor[Offer]())
	visit(reflect.TypeFor[Answer]())
	for _, m := range Methods() {
		visit(reflect.TypeOf(m.Params))
		if m.Result != nil {
			visit(reflect.TypeOf(m.Result))
		}
	}
	for _, k := range Kinds() {
		visit(reflect.TypeOf(NewEvent(k)))
	}
	visit(reflect.TypeFor[Error]())
	return all
}

func typeName(t reflect.Type) string {
	if t == nil {
		return "-"
	}
	return t.Name()
}
