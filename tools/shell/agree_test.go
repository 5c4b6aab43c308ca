package shell

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Whatever random text passes the check is run by a real bash in which the only
// programs are cat, which leaves a mark, and ok: cat must not have run. This is
// how comments that go on behind a line's end were found to be read differently.
//
// covers TOOL-12
func TestBashRunsNoRefusedCommandThatPassesTheCheck(t *testing.T) {
	pieces := []string{
		"cat", "cat", "ok", "ok", " ", " ", " ", "\n", "\n", ";", "&&", "||", "'", `"`, `\`, "\\\n", " \\\n", "$", "$'", "{", "}", ",", "#", " # ", "!", "(", ")", "[[", "[", "]",
		"a=", "A=1 ", "b+=", "&", "|", "`", "~", "<", ">", "0", "\t", "if", "then", "fi", "*", "?", "=", "/", "-", "time ", `\x63`, "''", `""`, "${", "$A", "@", "+", "%", " ok ", " cat ",
	}
	dir := t.TempDir()
	mark := filepath.Join(dir, "mark")
	for name, body := range map[string]string{"bin/cat": "echo x > " + mark, "work/cat": "echo x > " + mark, "bin/ok": ""} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/bash\n"+body+"\n"), 0o755))
	}
	gen := rand.New(rand.NewPCG(11, 12))
	for ran := 0; ran < 250; {
		var b strings.Builder
		for range 3 + gen.IntN(9) {
			b.WriteString(pieces[gen.IntN(len(pieces))])
		}
		if s := b.String(); strings.Contains(s, "ca") && Check(s, nil) == nil {
			ran++
			cmd := exec.Command("/bin/bash", "--noprofile", "--norc", "-c", "--", s, "bash")
			cmd.Dir, cmd.Env = filepath.Join(dir, "work"), []string{"PATH=" + filepath.Join(dir, "bin"), "A=cat"}
			_ = cmd.Run() // most of these fail, which does not matter
			if _, err := os.Stat(mark); err == nil {
				t.Errorf("cat ran by %q", s)
				must(t, os.Remove(mark))
			}
		}
	}
}
