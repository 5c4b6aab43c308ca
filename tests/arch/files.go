package arch

import (
	"bytes"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
)

// machine finds paths of a build machine. The pieces keep this file from being
// one of its own findings.
var machine = regexp.MustCompile(`(^|[^A-Za-z0-9_.\-])/(wo` + `rk|ro` + `ot)/[a-z.]`)

// Text returns a sentence for each line of a tracked file that names a path of
// the machine, or one of hosts, where packages come from there.
func Text(name string, data []byte, hosts []string) []string {
	if bytes.IndexByte(data[:min(len(data), 8000)], 0) >= 0 {
		return nil // binary
	}
	var out []string
	for i, line := range strings.Split(string(data), "\n") {
		if found := machine.FindString(line); found != "" {
			out = append(out, fmt.Sprintf("%s:%d names a path of this machine, %q", name, i+1, strings.TrimSpace(found)))
		}
		for _, h := range hosts {
			if strings.Contains(line, h) {
				// The host itself would end up in a log.
				out = append(out, fmt.Sprintf("%s:%d names a package registry of this machine", name, i+1))
			}
		}
	}
	return out
}

// public are the hosts that everybody has; to name them tells nothing.
var public = []string{"proxy.golang.org", "sum.golang.org", "registry.npmjs.org", "pypi.org", "localhost", "127.0.0.1", "::1"}

// Hosts returns the hosts of settings such as GOPROXY that are not public:
// addresses apart by comma, bar, space or line.
func Hosts(settings ...string) []string {
	var out []string
	for _, s := range settings {
		for _, f := range strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(",| \t\r\n=", r) }) {
			u, err := url.Parse(f)
			if err != nil || u.Hostname() == "" || slices.Contains(public, u.Hostname()) || slices.Contains(out, u.Hostname()) {
				continue
			}
			out = append(out, u.Hostname())
		}
	}
	return out
}

// TooLong returns a sentence when a hand-written source file that is not Go is
// longer than MaxLines.
func TooLong(name string, data []byte) []string {
	base := path.Base(name)
	switch {
	case !slices.Contains([]string{".lua", ".ts", ".js", ".mjs"}, path.Ext(name)),
		strings.Contains(base, ".gen."), strings.Contains(base, "_spec."), strings.Contains(base, "_test."), strings.Contains(base, ".test."),
		strings.Contains(name, "testdata/"):
		return nil
	}
	if n := bytes.Count(data, []byte("\n")); n > MaxLines {
		return []string{fmt.Sprintf("%s has %d lines, more than %d: split it by concept", name, n, MaxLines)}
	}
	return nil
}
