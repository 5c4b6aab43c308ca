// Package editors drives real editors against the built binary and the scripted
// model.
package editors

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/neovim/go-client/nvim"

	"github.com/lakecode/lakecode/tests/fakemodel"
)

var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "lakecode-editors-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binary = filepath.Join(dir, "lakecode")
	if out, err := exec.Command("go", "build", "-o", binary, "../../cmd/lakecode").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

const patience = 60 * time.Second

// vim is a headless Neovim with the plugin.
type vim struct {
	*nvim.Nvim
	t          *testing.T
	root, home string
}

func startVim(t *testing.T, files map[string]string, model *fakemodel.Server) *vim {
	t.Helper()
	dir := t.TempDir()
	v := &vim{t: t, root: filepath.Join(dir, "w"), home: filepath.Join(dir, "home")}
	for name, text := range files {
		path := filepath.Join(v.root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(v.root, 0o755); err != nil {
		t.Fatal(err)
	}
	if model != nil {
		model.Install(v.home)
	}
	plugin, err := filepath.Abs("../../editors/neovim")
	if err != nil {
		t.Fatal(err)
	}
	// Debian's Neovim is meant; NVIM names another one.
	program := os.Getenv("NVIM_BINARY")
	if program == "" {
		program = "nvim"
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LAKECODE_HOME=" + v.home, "LANG=C.UTF-8", "TERM=dumb"}
	for _, x := range []string{"CONFIG", "DATA", "STATE", "CACHE"} {
		env = append(env, "XDG_"+x+"_HOME="+filepath.Join(dir, strings.ToLower(x)))
	}
	n, err := nvim.NewChildProcess(nvim.ChildProcessCommand(program), nvim.ChildProcessDir(v.root), nvim.ChildProcessEnv(env),
		nvim.ChildProcessArgs("--clean", "-n", "--headless", "--embed"))
	if err != nil {
		t.Fatalf("start %s (make test installs it): %v", program, err)
	}
	v.Nvim = n
	t.Cleanup(func() {
		_ = n.Command("qa!")
		_ = n.Close()
	})
	v.lua(`
		local plugin, bin = ...
		vim.opt.runtimepath:append(plugin)
		vim.o.columns, vim.o.lines = 160, 50
		vim.cmd('runtime plugin/lakecode.lua')
		require('lakecode').setup({ cmd = { bin }, model = { provider = 'fake', model = 'm' } })
		_G.notes = {}
		vim.notify = function(m) table.insert(_G.notes, m) end
	`, nil, plugin, binary)
	return v
}

func (v *vim) lua(code string, result any, args ...any) {
	v.t.Helper()
	if err := v.ExecLua(code, result, args...); err != nil {
		v.t.Fatalf("lua: %v", err)
	}
}

func (v *vim) cmd(c string) {
	v.t.Helper()
	if err := v.Command(c); err != nil {
		v.t.Fatalf("%s: %v", c, err)
	}
}

// keys types as a person does.
func (v *vim) keys(k string) {
	v.t.Helper()
	code, err := v.ReplaceTermcodes(k, true, true, true)
	if err != nil {
		v.t.Fatal(err)
	}
	if err := v.FeedKeys(code, "tx", false); err != nil {
		v.t.Fatal(err)
	}
}

// text is the content of the buffer whose name ends so.
func (v *vim) text(name string) string {
	v.t.Helper()
	var lines []string
	v.lua(`
		for _, b in ipairs(vim.api.nvim_list_bufs()) do
			if vim.endswith(vim.api.nvim_buf_get_name(b), ...) then return vim.api.nvim_buf_get_lines(b, 0, -1, false) end
		end
		return {}`, &lines, name)
	return strings.Join(lines, "\n")
}

func (v *vim) chat() string { return v.text("lakecode://chat") }

// until waits for a text in the chat.
func (v *vim) until(part string) {
	v.t.Helper()
	v.poll(fmt.Sprintf("%q in the chat", part), func() bool { return strings.Contains(v.chat(), part) })
}

func (v *vim) poll(what string, ok func() bool) {
	v.t.Helper()
	for deadline := time.Now().Add(patience); !ok(); {
		if time.Now().After(deadline) {
			var notes []string
			v.lua("return notes", &notes)
			v.t.Fatalf("no %s; chat:\n%s\nnotes: %q", what, v.chat(), notes)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// send types a message into the composer and sends it.
func (v *vim) send(text string) {
	v.t.Helper()
	v.cmd("Lakecode")
	v.poll("open conversation", func() bool {
		var ok bool
		v.lua("local c = require('lakecode.chat'); return c.state ~= nil", &ok)
		return ok
	})
	v.keys("i" + text + "<Esc>")
	v.keys("<CR>")
}

func (v *vim) want(parts ...string) {
	v.t.Helper()
	got, at := v.chat(), 0
	for _, p := range parts {
		i := strings.Index(got[at:], p)
		if i < 0 {
			v.t.Errorf("the chat lacks %q, or has it too early:\n%s", p, got)
			return
		}
		at += i
	}
}

// covers TOOL-4 partly
// covers ED-1 partly
// covers PLAN-1 partly
func TestNeovimFixesAFileAndSeesUnsavedText(t *testing.T) {
	m := fakemodel.New(t, fakemodel.Config{Script: `
		expect user contains "fix it"
		say I will look.
		call read_file {"path": "a.txt"}
		call search_text {"pattern": "typed"}
		end
		expect result[1] contains "typed in Neovim"
		expect result[1] contains "unsaved"
		expect result[2] contains "a.txt"
		call edit_file {"path": "b.txt", "edits": [{"old": "wrong", "new": "right"}]}
		call bash {"command": "false", "description": "show a failing command"}
		call read_file {"path": "../no"}
		end
		say "Two lines\nof text."`})
	v := startVim(t, map[string]string{"a.txt": "on disk\n", "b.txt": "wrong\n"}, m)
	v.cmd("edit b.txt")
	v.cmd("edit a.txt")
	v.keys("cctyped in Neovim<Esc>")
	v.send("please fix it")
	v.until("of text.")
	v.want("## You", "please fix it", "## Lakecode", "I will look.", "✓ read_file  a.txt", "✓ search_text  typed",
		"✓ edit_file  b.txt  +1 -1", "✓ bash  false", "show a failing command", "✗ read_file  ../no", "Two lines\nof text.")
	if b, err := os.ReadFile(filepath.Join(v.root, "b.txt")); err != nil || string(b) != "right\n" {
		t.Errorf("b.txt is %q, %v", b, err)
	}
	if b, err := os.ReadFile(filepath.Join(v.root, "a.txt")); err != nil || string(b) != "on disk\n" {
		t.Errorf("a.txt is %q, %v", b, err)
	}
	if got := v.text("lakecode://message"); got != "" {
		t.Errorf("the composer holds %q", got)
	}
	v.poll("buffer of b.txt that shows the edit", func() bool { return v.text("/b.txt") == "right" })
}

func TestNeovimStopsByEscEsc(t *testing.T) {
	m := fakemodel.New(t, fakemodel.Config{Partial: true, Script: `
		say Beginning
		gate hold
		say never`})
	v := startVim(t, nil, m)
	v.send("go")
	v.until("Beginning")
	m.Reached("hold")
	v.keys("<Esc><Esc>")
	v.until("Stopped.")
	v.poll("idle state", func() bool {
		var s string
		v.lua("return require('lakecode.chat').status()", &s)
		return s == "Lakecode idle"
	})
}

func TestNeovimAnswersAQuestion(t *testing.T) {
	m := fakemodel.New(t, fakemodel.Config{Script: `
		call ask_user {"question": "Which?", "options": [{"label": "red"}, {"label": "blue"}]}
		end
		expect result contains "blue"
		say Blue.`})
	v := startVim(t, nil, m)
	v.lua(`vim.ui.select = function(items, opts, done) _G.offered = { opts.prompt, items }; done(items[2], 2) end`, nil)
	v.send("paint")
	v.until("Blue.")
	var offered []any
	v.lua("return offered", &offered)
	if fmt.Sprint(offered) != "[Which? [red blue (skip the question)]]" {
		t.Errorf("offered %v", offered)
	}
}

// covers ED-6 partly
func TestNeovimGoesOnAfterTheServerDied(t *testing.T) {
	m := fakemodel.New(t, fakemodel.Config{Script: `
		say First answer.
		end
		expect body contains "First answer."
		say Second answer.`})
	v := startVim(t, nil, m)
	v.send("one")
	v.until("First answer.")
	v.poll("saved turn", func() bool {
		var s string
		v.lua("return require('lakecode.chat').status()", &s)
		return s == "Lakecode idle"
	})
	if out, err := exec.Command("pkill", "-9", "-f", binary).CombinedOutput(); err != nil {
		t.Fatalf("pkill: %v %s", err, out)
	}
	v.until("The server ended")
	v.send("two")
	v.until("Second answer.")
	v.want("one", "First answer.", "two", "Second answer.")
}

func TestNeovimKeepsARefusedMessage(t *testing.T) {
	v := startVim(t, nil, nil)
	v.send("hello there")
	v.until("Not sent")
	if got := v.text("lakecode://message"); got != "hello there" {
		t.Errorf("the composer holds %q", got)
	}
}
