package fakemodel

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/lakecode/lakecode/providers/rehearsal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder is a testing.TB that writes down what it is told.
type recorder struct {
	testing.TB
	mu     sync.Mutex
	errors []string
	ends   []func()
}

func (*recorder) Helper()            {}
func (r *recorder) Cleanup(f func()) { r.ends = append(r.ends, f) }

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

// end ends the recorded test and returns what failed in it.
func (r *recorder) end() []string {
	for i := len(r.ends) - 1; i >= 0; i-- {
		r.ends[i]()
	}
	return r.errors
}

func post(t *testing.T, s *Server, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer k"}}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return resp.StatusCode, err.Error()
	}
	return resp.StatusCode, string(text)
}

func TestEveryKindOfFailureFailsTheTest(t *testing.T) {
	check := func(name string, conf Config, bodies []string, want ...string) {
		t.Helper()
		conf.Key = "k"
		rec := &recorder{TB: t}
		s := New(rec, conf)
		for _, b := range bodies {
			post(t, s, b)
		}
		if d := cmp.Diff(want, rec.end()); d != "" {
			t.Errorf("%s (-want +got)\n%s", name, d)
		}
	}
	good, bad := talk(system, user), talk(system, user, result("9"))
	check("nothing wrong", Config{Script: "say x"}, []string{good})
	check("a bad request", Config{Script: "say x"}, []string{bad}, "fakemodel: request 1: message 3 is a result of 9, which no call right before it has")
	check("a bad request, judged at the end", Config{Script: "say x", AtEnd: true}, []string{bad},
		"fakemodel: request 1: message 3 is a result of 9, which no call right before it has")
	check("an answer never asked for", Config{Script: "say x\nend\nsay y"}, []string{good}, "fakemodel: script:3: answer 2 was never asked for")
	check("an answer that may be left over", Config{Script: "say x\nend\nsay y", Partial: true}, []string{good})
	check("a bad request all the same", Config{Script: "say x\nend\nsay y", Partial: true}, []string{bad},
		"fakemodel: request 1: message 3 is a result of 9, which no call right before it has")
	check("nothing asked for", Config{Script: "say x"}, nil, "fakemodel: script:1: answer 1 was never asked for")
	check("a request too many", Config{Script: "say x"}, []string{good, good}, "fakemodel: the script script ends after 1 answers, and request 2 came")
	check("an expectation", Config{Script: "expect user contains bye\nsay x"}, []string{good},
		`fakemodel: script:1: request 1: expect user contains bye: the user message of the request: "hello"`)
}

func TestTestControlsTheModel(t *testing.T) {
	s := New(t, Config{Key: "k", Script: "say before\ngate g\nsay after\nend\ncut"})
	got := make(chan string, 1)
	var wg sync.WaitGroup
	wg.Go(func() { _, text := post(t, s, talk(system, user)); got <- text })
	defer wg.Wait()
	s.Reached("g")
	if first := s.Wait(1)[0]; first.N != 1 || string(first.Body) != talk(system, user) || first.Arrived.IsZero() {
		t.Errorf("the request was not recorded as it came: %+v", first)
	}
	s.Release("g")
	if text := <-got; !strings.Contains(text, "after") {
		t.Errorf("the answer after the gate: %s", text)
	}
	if err := s.Ended(1); err != nil {
		t.Errorf("the answer ended with %v", err)
	}
	if _, text := post(t, s, talk(system, user)); !strings.Contains(text, "EOF") {
		t.Errorf("a cut answer: %s", text)
	}
	if err := s.Ended(2); err != nil || errors.Is(err, rehearsal.ErrLeft) {
		t.Errorf("a cut is what the script wants, not the client's doing: %v", err)
	}
}

func TestInstallWritesAConnection(t *testing.T) {
	s := New(t, Config{Key: "k", Script: "say x"})
	post(t, s, talk(system, user))
	home := filepath.Join(t.TempDir(), "home")
	s.Install(home)
	text, err := os.ReadFile(filepath.Join(home, "providers.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		SchemaVersion int
		Providers     []struct{ Id, DefinitionId, BaseUrl, Protocol, ApiKey string }
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if p := got.Providers; got.SchemaVersion != 3 || len(p) != 1 || p[0].BaseUrl != s.URL() || p[0].ApiKey != "k" || p[0].Protocol != "ChatCompletions" {
		t.Errorf("providers.json: %s", text)
	}
}

func TestCommandServesAndJudges(t *testing.T) {
	dir := t.TempDir()
	script, bin := filepath.Join(dir, "script"), filepath.Join(dir, "fakemodel")
	if err := os.WriteFile(script, []byte("say x\nend\nsay y"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-o", bin, "./cmd").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	cmd := exec.Command(bin, "-pipe", "-script", script, "-key", "k")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := json.NewDecoder(out)
	var hello struct{ URL string }
	if err := lines.Decode(&hello); err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest(http.MethodPost, hello.URL+"/chat/completions", strings.NewReader(talk(system, user)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer wrong"}}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	var line struct {
		N, Bytes      int
		Arrived, Read int64
	}
	if err := lines.Decode(&line); err != nil || line.N != 1 || line.Bytes == 0 || line.Arrived == 0 || line.Read < line.Arrived {
		t.Errorf("the line of the request: %+v, %v", line, err)
	}
	in.Close()
	err = cmd.Wait()
	if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(stderr.String(), "Authorization") || !strings.Contains(stderr.String(), "answer 2 was never asked for") {
		t.Errorf("exit %v, stderr:\n%s", err, stderr.String())
	}
}
