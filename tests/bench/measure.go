package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/lakecode/lakecode/lsp/wire"
	"github.com/lakecode/lakecode/tests/editor"
)

// start: spawn to the reply to initialize.
func (b *bench) start() error {
	home, root, err := b.fresh("start")
	if err != nil {
		return err
	}
	var warm []float64
	for i := range 21 {
		began := time.Now()
		e, err := editor.Start(editor.Config{Binary: b.bin, Dir: root, Env: env(home)})
		if err != nil {
			return err
		}
		_, err = e.Initialize(root)
		took := ms(time.Since(began))
		e.Kill()
		if err != nil {
			return err
		}
		if i == 0 {
			b.report("spawn to initialize reply, first run", took, 0, "ms")
			continue
		}
		warm = append(warm, took)
	}
	b.report("spawn to initialize reply, warm", median(warm), 20, "ms")
	return b.coldStart(root, home)
}

// coldStart drops the page cache where that is allowed.
func (b *bench) coldStart(root, home string) error {
	if err := exec.Command("sync").Run(); err != nil {
		return err
	}
	if err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0); err != nil {
		fmt.Printf("%-46s not measured: the page cache cannot be dropped here\n", "spawn to initialize reply, cold")
		return nil
	}
	began := time.Now()
	e, err := editor.Start(editor.Config{Binary: b.bin, Dir: root, Env: env(home)})
	if err != nil {
		return err
	}
	defer e.Kill()
	_, err = e.Initialize(root)
	b.report("spawn to initialize reply, cold", ms(time.Since(began)), 0, "ms")
	return err
}

// headless: exec of run -p to the arrival of the first model request.
func (b *bench) headless() error {
	home, root, err := b.fresh("headless")
	if err != nil {
		return err
	}
	m, err := newModel(func(a *answer, _ int, _ []byte) { a.say("done") })
	if err != nil {
		return err
	}
	defer m.close()
	if err := m.install(home); err != nil {
		return err
	}
	var took []float64
	for i := range 21 {
		cmd := exec.Command(b.bin, "run", "-p", "hello", "--provider", "bench", "--model", "m")
		cmd.Dir, cmd.Env = root, env(home)
		began := time.Now()
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("run: %w: %s", err, out)
		}
		if r := m.take(); i > 0 && len(r) == 1 {
			took = append(took, ms(r[0].arrived.Sub(began)))
		}
	}
	b.report("run -p: exec to first model request", median(took), 40, "ms")
	return nil
}

// memory of an idle server that has a conversation and has run a command.
func (b *bench) memory() error {
	home, root, err := b.fresh("memory")
	if err != nil {
		return err
	}
	m, err := newModel(func(a *answer, n int, _ []byte) {
		if n == 0 {
			a.call(n, "bash", map[string]any{"command": "true", "description": "start the reaper"})
			return
		}
		a.say("done")
	})
	if err != nil {
		return err
	}
	defer m.close()
	if err := m.install(home); err != nil {
		return err
	}
	idle, err := editor.Start(editor.Config{Binary: b.bin, Dir: root, Env: env(home)})
	if err != nil {
		return err
	}
	defer idle.Kill()
	if _, err := idle.Initialize(root); err != nil {
		return err
	}
	time.Sleep(2 * time.Second)
	if err := b.footprint("idle after initialize", idle.Pid()); err != nil {
		return err
	}
	c, err := b.editor(home, root, nil)
	if err != nil {
		return err
	}
	defer c.Kill()
	if err := c.turn("go"); err != nil {
		return err
	}
	time.Sleep(2 * time.Second)
	return b.footprint("idle after a turn with bash", c.Pid())
}

func (b *bench) footprint(when string, pid int) error {
	anon, err := field(fmt.Sprintf("/proc/%d/status", pid), "RssAnon")
	if err != nil {
		return err
	}
	b.report(when+": RssAnon", anon, 12, "MiB")
	sum := 0.0
	for _, p := range tree(pid) {
		pss, err := field(fmt.Sprintf("/proc/%d/smaps_rollup", p), "Pss")
		if err != nil {
			return err
		}
		sum += pss
	}
	b.report(when+": Pss of the tree", sum, 40, "MiB")
	return nil
}

// turns: 20 requests with one small read each, at bodies of 100 KB.
func (b *bench) turns() error {
	home, root, err := b.fresh("turns")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(root, "a.txt"), []byte(lines(1<<10)), 0o644); err != nil {
		return err
	}
	const reads = 20
	m, err := newModel(func(a *answer, n int, _ []byte) {
		if n < reads {
			a.call(n, "read_file", map[string]any{"path": "a.txt", "offset": 1 + n%8})
			return
		}
		a.say("done")
	})
	if err != nil {
		return err
	}
	defer m.close()
	if err := m.install(home); err != nil {
		return err
	}
	c, err := b.editor(home, root, nil)
	if err != nil {
		return err
	}
	defer c.Kill()
	var gaps, cpus []float64
	size := 0
	for i := range 6 {
		if err := c.create(); err != nil {
			return err
		}
		before, err := cpu(c.Pid())
		if err != nil {
			return err
		}
		if err := c.turn(lines(92 << 10)); err != nil {
			return err
		}
		after, err := cpu(c.Pid())
		if err != nil {
			return err
		}
		r := m.take()
		if i == 0 {
			continue // warm up
		}
		cpus = append(cpus, ms(after-before)/reads)
		for k := 1; k < len(r); k++ {
			gaps, size = append(gaps, ms(r[k].arrived.Sub(r[k-1].ended))), r[k].size
		}
	}
	what := fmt.Sprintf("answer's end to next request at %d KB", size>>10)
	b.report(what+", p50", median(gaps), 2, "ms")
	b.report(what+", p95", quantile(gaps, 0.95), 6, "ms")
	b.report("CPU of a read turn at 100 KB", median(cpus), 3, "ms")
	return nil
}

// bodies: the same with results of 50 KB, at bodies of 350 KB and 1.2 MB.
func (b *bench) bodies() error {
	home, root, err := b.fresh("bodies")
	if err != nil {
		return err
	}
	const files = 40
	for i := range files {
		if err := os.WriteFile(filepath.Join(root, fmt.Sprintf("%d.txt", i)), []byte(lines(48<<10)), 0o644); err != nil {
			return err
		}
	}
	m, err := newModel(func(a *answer, n int, body []byte) {
		if len(body) < 1300<<10 {
			a.call(n, "read_file", map[string]any{"path": fmt.Sprintf("%d.txt", n%files)})
			return
		}
		a.say("done")
	})
	if err != nil {
		return err
	}
	defer m.close()
	if err := m.install(home); err != nil {
		return err
	}
	c, err := b.editor(home, root, nil)
	if err != nil {
		return err
	}
	defer c.Kill()
	var small, large []float64
	for i := range 9 {
		if err := c.create(); err != nil {
			return err
		}
		if err := c.turn("read it"); err != nil {
			return err
		}
		r := m.take()
		for k := 1; k < len(r) && i > 0; k++ {
			gap := ms(r[k].arrived.Sub(r[k-1].ended))
			switch kb := r[k].size >> 10; {
			case kb > 320 && kb < 400:
				small = append(small, gap)
			case kb > 1150 && kb < 1300:
				large = append(large, gap)
			}
		}
	}
	b.report("read of 50 KB to next request at 350 KB", median(small), 5, "ms")
	b.report("read of 50 KB to next request at 1.2 MB", median(large), 12, "ms")
	return nil
}

// stream: CPU of a token in an answer of 4 000.
func (b *bench) stream() error {
	home, root, err := b.fresh("stream")
	if err != nil {
		return err
	}
	const tokens = 4000
	m, err := newModel(func(a *answer, _ int, _ []byte) {
		for range tokens {
			a.text("token ")
			a.flush()
		}
		a.say("done")
	})
	if err != nil {
		return err
	}
	defer m.close()
	if err := m.install(home); err != nil {
		return err
	}
	c, err := b.editor(home, root, nil)
	if err != nil {
		return err
	}
	defer c.Kill()
	var us []float64
	for i := range 8 {
		before, err := cpu(c.Pid())
		if err != nil {
			return err
		}
		if err := c.turn("talk"); err != nil {
			return err
		}
		after, err := cpu(c.Pid())
		if err != nil {
			return err
		}
		if i > 0 {
			us = append(us, ms(after-before)*1000/tokens)
		}
	}
	b.report("CPU of a streamed token", median(us), 13, "us")
	return nil
}

// latency: from the model's write of a fragment to the editor's read of it.
func (b *bench) latency() error {
	home, root, err := b.fresh("latency")
	if err != nil {
		return err
	}
	const fragments, pause = 1000, 300 * time.Millisecond
	m, err := newModel(func(a *answer, n int, _ []byte) {
		if n%2 == 0 { // one in five milliseconds
			tick := time.NewTicker(5 * time.Millisecond)
			defer tick.Stop()
			for range fragments {
				<-tick.C
				a.text(fmt.Sprintf("t%d ", time.Now().UnixNano()))
				a.flush()
			}
		} else { // one after each silence
			for range 20 {
				time.Sleep(pause)
				a.text(fmt.Sprintf("t%d ", time.Now().UnixNano()))
				a.flush()
			}
		}
		a.say("done")
	})
	if err != nil {
		return err
	}
	defer m.close()
	if err := m.install(home); err != nil {
		return err
	}
	var late []float64
	c, err := b.editor(home, root, func(m editor.Message) { late = append(late, ages(m)...) })
	if err != nil {
		return err
	}
	defer c.Kill()
	if err := c.turn("talk"); err != nil {
		return err
	}
	dense := late
	if len(dense) < fragments {
		return fmt.Errorf("%d of %d fragments arrived", len(dense), fragments)
	}
	late = nil
	b.report("fragment to editor at 200/s, p50", median(dense), 0, "ms")
	b.report("fragment to editor at 200/s, p99", quantile(dense, 0.99), 20, "ms")
	if err := c.turn("slowly"); err != nil {
		return err
	}
	b.report("fragment to editor after silence, p50", median(late), 3, "ms")
	return nil
}

// ages are the times since the stamps in the message's text were written.
func ages(m editor.Message) []float64 {
	if m.Method != wire.EventsNote {
		return nil
	}
	var p struct{ Events []struct{ Kind, Text string } }
	if json.Unmarshal(m.Params, &p) != nil {
		return nil
	}
	var out []float64
	for _, e := range p.Events {
		if e.Kind != string(wire.KindMessageDelta) {
			continue
		}
		for _, f := range strings.Fields(e.Text) {
			if ns, err := strconv.ParseInt(strings.TrimPrefix(f, "t"), 10, 64); err == nil {
				out = append(out, ms(m.At.Sub(time.Unix(0, ns))))
			}
		}
	}
	return out
}

// prompt: what a request carries before the conversation.
func (b *bench) prompt() error {
	home, root, err := b.fresh("prompt")
	if err != nil {
		return err
	}
	var body []byte
	m, err := newModel(func(a *answer, _ int, got []byte) { body = bytes.Clone(got); a.say("done") })
	if err != nil {
		return err
	}
	defer m.close()
	if err := m.install(home); err != nil {
		return err
	}
	c, err := b.editor(home, root, nil)
	if err != nil {
		return err
	}
	defer c.Kill()
	if err := c.turn("hello"); err != nil {
		return err
	}
	var req struct {
		Messages []json.RawMessage
		Tools    []json.RawMessage
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return err
	}
	sum := 0
	for _, t := range req.Tools {
		sum += len(t)
	}
	if len(req.Tools) == 0 || len(req.Messages) == 0 {
		return fmt.Errorf("no tools or messages in the request")
	}
	b.report(fmt.Sprintf("schema of a tool, mean of %d", len(req.Tools)), float64(sum)/float64(len(req.Tools))/1024, 1.2, "KiB")
	b.report("system prompt and schemas", float64(sum+len(req.Messages[0]))/1024, 16, "KiB")
	return nil
}
