package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// goBench runs Go benchmarks and returns their metrics by benchmark and unit.
func goBench(pkg, pattern, benchtime string) (map[string]map[string]float64, error) {
	cmd := exec.Command("go", "test", "-run", "^$", "-bench", pattern, "-benchtime", benchtime, pkg)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go test -bench: %w\n%s%s", err, out, stderr.Bytes())
	}
	all := map[string]map[string]float64{}
	for l := range strings.Lines(string(out)) {
		f := strings.Fields(l)
		if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark") {
			continue
		}
		name := strings.TrimPrefix(f[0], "Benchmark")
		if i := strings.LastIndexByte(name, '-'); i > 0 {
			if _, err := strconv.Atoi(name[i+1:]); err == nil {
				name = name[:i]
			}
		}
		m := map[string]float64{}
		for i := 2; i+1 < len(f); i += 2 {
			if v, err := strconv.ParseFloat(f[i], 64); err == nil {
				m[f[i+1]] = v
			}
		}
		all[name] = m
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no benchmark in %s matches %s", pkg, pattern)
	}
	return all, nil
}

// save: what the 1 000th turn of a session costs against the 10th.
func (b *bench) save() error {
	m, err := goBench("./session", "^BenchmarkTurn", "200x")
	if err != nil {
		return err
	}
	for _, unit := range []string{"written-B/turn", "encoded-B/turn"} {
		early, late := m["Turn10"][unit], m["Turn1000"][unit]
		if early == 0 {
			return fmt.Errorf("no metric %s", unit)
		}
		b.report("saving turn 1000 against turn 10, "+unit, late/early, 1.1, "x")
	}
	return nil
}

// search: search_text against ripgrep on Go's standard library, in one run.
func (b *bench) search() error {
	if _, err := exec.LookPath("rg"); err != nil && os.Getenv("RG") == "" {
		return fmt.Errorf("ripgrep is not installed; run .ci/install.sh")
	}
	m, err := goBench("./tools/search", "^BenchmarkRipgrep", "15x")
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		v := m[name]
		b.report("search "+filepath.Base(name)+" against ripgrep", v["ratio"], v["bar"], "x")
	}
	return nil
}

// find: find_files over 100 000 paths of a work tree that has not changed since
// it was listed.
func (b *bench) find() error {
	m, err := goBench("./tools/search", "^BenchmarkFind$", "1x")
	if err != nil {
		return err
	}
	v := m["Find"]
	if v["ms/call"] == 0 {
		return errors.New("no metric ms/call")
	}
	b.report("find_files over 100 000 paths", v["ms/call"], v["bar"], "ms")
	b.report("find_files over 100 000 paths, ranking alone", v["ms/ranking"], 0, "ms")
	b.report("find_files over 100 000 paths, first listing", v["ms/first"], 0, "ms")
	return nil
}
