package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/ddp/launch"
)

// onNetwork are the arguments of a plan for 4 ranks; the device's peak is given, so nothing is measured.
func onNetwork(more ...string) []string {
	return append([]string{"plan", "quickstart", "--ranks", "4", "--set", "train.device=ref", "--set", "log.peak_tflops=0.01"}, more...)
}

func TestPlanForANetwork(t *testing.T) {
	out, errs, code := cli(t, onNetwork("--nodes", "2", "--link", "1mbit,1ms")...)
	if code != 0 {
		t.Fatal(code, errs)
	}
	for _, want := range []string{"4 on 2 hosts", "2 ranks a host reduce in shared memory",
		"between 2 hosts exchange below", "exposed communication",
		"estimated from the peak of the device",
		"comm.compress = \"", "int8 ", "bucket_mb = "} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in:\n%s", want, out)
		}
	}
	out, errs, code = cli(t, onNetwork("--link", "100gbit")...) // a rank a machine
	if code != 0 || !strings.Contains(out, "4 on 4 hosts") {
		t.Error(code, errs, out)
	}
	out, errs, code = cli(t, onNetwork()...)
	if code != 0 || strings.Contains(out, "\nnetwork\n") {
		t.Error("a plan without a network has one:", code, errs)
	}
}

func TestPlanForANetworkAsJSON(t *testing.T) {
	predict := func(more ...string) (p struct {
		Network struct {
			Ranks, Hosts int
			Link         string
			Efficiency   float64
			Kernels      string
			Result       struct {
				Step, Exposed float64
			}
			Codecs []struct{ Codec string }
		}
	}) {
		t.Helper()
		out, errs, code := cli(t, onNetwork(append(more, "--json")...)...)
		if code != 0 {
			t.Fatal(code, errs)
		}
		if err := json.Unmarshal([]byte(out), &p); err != nil {
			t.Fatal(err, out)
		}
		return p
	}
	slow, fast := predict("--link", "1mbit,1ms").Network, predict("--link", "100gbit,1us").Network
	if slow.Ranks != 4 || slow.Hosts != 4 || !(slow.Efficiency < fast.Efficiency) || len(slow.Codecs) != 3 || !strings.HasPrefix(slow.Link, "117500B/s,1ms,") {
		t.Errorf("%+v and %+v", slow, fast)
	}
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	if err := os.WriteFile(path, []byte(`{"event":"step","compute_time":3,"step_time":4,"wait_time":0}`+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if m := predict("--link", "1mbit,1ms", "--measured", path).Network; !strings.HasPrefix(m.Kernels, "measured") {
		t.Errorf("%+v", m)
	}
}

func TestPlanForANetworkRefuses(t *testing.T) {
	for want, more := range map[string][]string{
		"--nodes 2 needs the network between them": {"--nodes", "2"},
		"--nodes -1":                                   {"--nodes", "-1"},
		"4 ranks cannot be spread evenly over 3":       {"--nodes", "3", "--link", "1gbit"},
		`--link: link: "fast": "fast" is no bandwidth`: {"--link", "fast"},
		`--local-link: link: "1gb/s": "1gb/s" may be`:  {"--local-link", "1gb/s"},
		"no such file":                                 {"--measured", filepath.Join(t.TempDir(), "none")},
	} {
		_, errs, code := cli(t, onNetwork(more...)...)
		wantCode := launch.ExitUsage
		if want == "no such file" {
			wantCode = launch.ExitNoInput
		}
		if code != wantCode || !strings.Contains(errs, want) {
			t.Errorf("%v: code %d, want %d: %s", more, code, wantCode, errs)
		}
	}
}
