package overlay

import (
	"path"
	"strings"
)

// FilePath returns the absolute path that a file URI names on this machine, and
// whether there is one. Escapes that are not hexadecimal stand for themselves.
// A raw "?" or "#" belongs to the name: taking it for a query would make one
// file's buffer pass for another's.
func FilePath(uri string) (string, bool) {
	scheme, rest, ok := strings.Cut(uri, ":")
	if !ok || !strings.EqualFold(scheme, "file") {
		return "", false
	}
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		slash := strings.IndexByte(after, '/')
		if slash < 0 {
			return "", false
		}
		if host := after[:slash]; host != "" && !strings.EqualFold(host, "localhost") {
			return "", false // another machine's file
		}
		rest = after[slash:]
	}
	name := unescape(rest)
	if !strings.HasPrefix(name, "/") || strings.ContainsRune(name, 0) {
		return "", false
	}
	return path.Clean(name), true
}

// FileURI returns the file URI of an absolute path, escaped as RFC 3986 wants a
// path.
func FileURI(name string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	b.WriteString("file://")
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-._~/!$&'()*+,=@", c) >= 0:
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	return b.String()
}

func unescape(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			hi, lo := unhex(s[i+1]), unhex(s[i+2])
			if hi >= 0 && lo >= 0 {
				b.WriteByte(byte(hi<<4 | lo))
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// identity makes the differently escaped spellings of one URI equal.
func identity(uri string) string {
	if p, ok := FilePath(uri); ok {
		return "file://" + p
	}
	return uri
}
