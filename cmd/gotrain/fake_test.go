//go:build cgo && linux

package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/npu/acl/fakecann"
)

// machine is a machine with NPUs: a fake of CANN and what it counted.
type machine struct {
	t       *testing.T
	home    string // the toolkit
	stats   string // a folder, with a file of each process that loaded CANN
	env     []string
	patient bool     // runs may take long
	allow   []string // violations with one of these texts are none
}

// withNPUs is a machine with eight NPUs and a version of CANN; the test is skipped where there is no C compiler.
func withNPUs(t *testing.T, version string, switches ...string) *machine {
	t.Helper()
	return &machine{t: t, home: fakecann.Install(t, fakecann.Options{Version: version}), stats: t.TempDir(), env: switches}
}

// with is the same machine with other switches of the fake.
func (m *machine) with(switches ...string) *machine {
	n := *m
	n.env = append(append([]string(nil), m.env...), switches...)
	return &n
}

// endless is program without a limit of its own.
func endless(t *testing.T, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), "GOTRAIN_TEST_MAIN=1")
	return cmd
}

// program is gotrain on that machine, as a process.
func (m *machine) program(args ...string) *exec.Cmd {
	m.t.Helper()
	cmd := program(m.t, args...)
	if m.patient {
		cmd = endless(m.t, args...)
	}
	cmd.Env = append(cmd.Env, fakecann.Env(m.home, "FAKE_CANN_STATS="+filepath.Join(m.stats, "%p.json"))...)
	cmd.Env = append(cmd.Env, m.env...)
	return cmd
}

// run must succeed, with a number of processes that use CANN, each on one device with one thread; nothing forbidden is done and nothing left. It returns
// the output and what each process did.
func (m *machine) run(ranks int, args ...string) (string, []*fakecann.Stats) {
	m.t.Helper()
	out, err := m.program(args...).CombinedOutput()
	if err != nil {
		m.t.Fatalf("gotrain %s: %v\n%s", strings.Join(args, " "), err, tail(string(out)))
	}
	stats := m.sound()
	if len(stats) != ranks {
		m.t.Errorf("%d processes used CANN, must be %d", len(stats), ranks)
	}
	for _, s := range stats {
		if left := s.Leaks(); left != "" {
			m.t.Errorf("left behind: %s", left)
		}
	}
	return string(out), stats
}

// sound reads what the processes since the last call did, which must not be forbidden.
func (m *machine) sound() []*fakecann.Stats {
	m.t.Helper()
	files, err := filepath.Glob(filepath.Join(m.stats, "*.json"))
	if err != nil {
		m.t.Fatal(err)
	}
	var all []*fakecann.Stats
	for _, f := range files {
		s, err := fakecann.ReadStats(f)
		if err != nil {
			m.t.Fatal(err)
		}
		if err := os.Remove(f); err != nil {
			m.t.Fatal(err)
		}
		all = append(all, s)
		if s.Violations > 0 && !slices.ContainsFunc(m.allow, func(text string) bool { return strings.Contains(s.FirstViolation, text) }) {
			m.t.Errorf("%d times something was done that CANN forbids, first: %s", s.Violations, s.FirstViolation)
		}
		used := 0
		for _, n := range s.DeviceThreads {
			if n > 0 {
				used++
			}
			if n > 1 {
				m.t.Errorf("%d threads used one device", n)
			}
		}
		if used > 1 {
			m.t.Errorf("a process used %d devices", used)
		}
		if s.OutOfRange > 0 {
			m.t.Errorf("%d indices were out of range", s.OutOfRange)
		}
	}
	return all
}

// sum adds up the calls of a function in processes.
func sum(stats []*fakecann.Stats, function string) (n int64) {
	for _, s := range stats {
		n += s.Calls[function]
	}
	return n
}

// lossesOf reads the loss of each step from a run's folder, by step, so that steps done twice count once.
func lossesOf(t *testing.T, dir string) map[int]float64 {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	losses := map[int]float64{}
	for _, line := range strings.Split(strings.TrimSpace(string(raw)), "\n") {
		var e struct {
			Event string   `json:"event"`
			Step  int      `json:"step"`
			Loss  *float64 `json:"loss"`
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if e.Event == "step" && e.Loss != nil {
			losses[e.Step] = *e.Loss
		}
	}
	return losses
}

// near compares losses step by step; the distance is relative.
func near(t *testing.T, what string, got, want map[int]float64, steps int, bound float64) {
	t.Helper()
	if len(got) != steps || len(want) != steps {
		t.Fatalf("%s: %d losses, and %d to compare with; must be %d", what, len(got), len(want), steps)
	}
	worst, at := 0.0, 0
	for s, w := range want {
		g, ok := got[s]
		if d := math.Abs(g/w - 1); !ok || !(d <= worst) {
			worst, at = d, s
		}
	}
	t.Logf("%s: losses differ by at most %.1e, in step %d", what, worst, at)
	if !(worst <= bound) {
		t.Errorf("%s: the loss of step %d is %g, must be %g within %g of it", what, at, got[at], want[at], bound)
	}
}

// saved is what a checkpoint says about the bits of the run: the hashes of weights, optimizer and each rank's state.
func saved(t *testing.T, dir string, step int) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "checkpoints", fmt.Sprintf("step-%08d", step), "MANIFEST.json"))
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		Files []struct {
			Name string `json:"name"`
			Hash string `json:"sha256"`
		} `json:"files"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, f := range m.Files {
		if strings.HasSuffix(f.Name, ".safetensors") {
			text += f.Name + " " + f.Hash + "\n"
		}
	}
	if !strings.Contains(text, "model.safetensors") || !strings.Contains(text, "optimizer.safetensors") {
		t.Fatalf("the checkpoint has the files %q", text)
	}
	return text
}

// set are arguments --set KEY=VALUE.
func set(pairs ...string) (args []string) {
	for _, p := range pairs {
		args = append(args, "--set", p)
	}
	return args
}
