package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/npu/acl/doctor"
	"github.com/gotrain/gotrain/npu/acl/fakecann"
)

// recordedMachine lays a machine of the doctor's tests out as a folder.
func recordedMachine(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "npu", "acl", "doctor", "testdata", name+".machine"))
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	var file string
	files := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if f, ok := strings.CutPrefix(line, "-- "); ok {
			file = strings.TrimSuffix(f, " --\n")
			files[file] = ""
			continue
		}
		files[file] += line
	}
	for f, text := range files {
		f = filepath.Join(root, f)
		if err := os.MkdirAll(filepath.Dir(f), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// A recorded machine is examined as the one it is a record of; a report of it has no addresses.
func TestDoctorOfARecord(t *testing.T) {
	root := recordedMachine(t, "a3")
	out, errs, code := cli(t, "doctor", "--root", root)
	if code != 0 || !strings.Contains(out, "16 NPUs, Ascend910_9391, CANN 8.1.RC1") || errs != "" {
		t.Fatalf("code %d\n%s%s", code, out, errs)
	}
	if err := os.WriteFile(filepath.Join(root, "cmd", "hccn_tool_-i_2_-ip_-g.txt"), []byte("ipaddr:203.0.113.77\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "report.txt")
	out, errs, code = cli(t, "doctor", "--root", root, "--json", "--report", file)
	var r doctor.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 || r.NPUs != 16 || !strings.Contains(out, "203.0.113.77") {
		t.Fatalf("code %d, %v\n%s%s", code, err, out, errs)
	}
	text, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(text), "203.0.113.77") || !strings.Contains(string(text), "has the address ADDRESS-1") {
		t.Errorf("%v\n%s", err, text)
	}
	edited := filepath.Join(root, "cmd", "hccn_tool_-i_3_-tls_-g.txt")
	if err := os.WriteFile(edited, []byte("dev_id:3, tls switch[1](0:disable, 1:enable)\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code = cli(t, "doctor", "--root", root, "--brief")
	if code != 69 || !strings.Contains(out, "TLS differs") || strings.Contains(out, "  ok ") || errs != "" {
		t.Errorf("code %d\n%s%s", code, out, errs)
	}
	if _, errs, code = cli(t, "doctor", "--root", filepath.Join(root, "none")); code != 66 {
		t.Errorf("a folder that is not there: code %d %s", code, errs)
	}
	if _, errs, code = cli(t, "doctor", "--device=gpu"); code != 64 || !strings.Contains(errs, "hint: use one of cpu, npu, ref") {
		t.Errorf("code %d %s", code, errs)
	}
	for _, args := range [][]string{{"--device=npu:x"}, {"--device=npu", "--kinds", "convolve"}, {"--kinds", "relu"},
		{"npu"}, {"--device", "gpu"}, {"--device=ref", "--root", root}} {
		if _, errs, code = cli(t, append([]string{"doctor"}, args...)...); code != 64 || !strings.Contains(errs, "hint: ") {
			t.Errorf("%v: code %d %s", args, code, errs)
		}
	}
}

// This machine, with processes that probe.
func TestDoctorHere(t *testing.T) {
	out, err := program(t, "doctor", "--device=ref", "--json").Output()
	var r struct {
		Summary  string
		Findings []doctor.Finding
		Kernels  struct {
			Rows []struct{ Passed, Failed int }
		}
	}
	if jerr := json.Unmarshal(out, &r); jerr != nil || len(r.Kernels.Rows) < 90 {
		t.Fatalf("%v %v\n%s", err, jerr, out)
	}
	for _, row := range r.Kernels.Rows {
		if row.Failed > 0 {
			t.Errorf("%+v", row)
		}
	}
	host := 0
	for _, f := range r.Findings {
		if f.Group == "host" {
			host++
		}
	}
	if host < 3 || r.Summary == "" {
		t.Errorf("%s", out)
	}
}

// Against the fake CANN the whole of it works: libraries, devices, kernels; a CANN without headers is said to have none.
func TestDoctorOfAFake(t *testing.T) {
	dir := t.TempDir()
	if err := fakecann.BuildWith(dir, fakecann.Options{Version: "9.0", Without: []string{"SwiGlu"}}); errors.Is(err, fakecann.ErrNoCompiler) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	cmd := program(t, "doctor", "--abi", "--json")
	cmd.Env = append(cmd.Env, "GOTRAIN_CANN_HOME="+dir, "FAKE_CANN_DEVICES=2")
	out, err := cmd.Output()
	for _, want := range []string{"CANN 9.0.0", "DCMI: 2 chips, all healthy", "HCCL: all 34 are there", "operators: lacks 1 of 170: SwiGlu",
		"npu:0, npu:1 can be opened: Ascend910B3 (A2)", "no headers of CANN are installed", `"soc": "Ascend910B3"`} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q, %v\n%s", want, err, out)
		}
	}
	cmd = program(t, "doctor", "--brief")
	cmd.Env = append(cmd.Env, "GOTRAIN_CANN_HOME="+dir, "FAKE_CANN_INJECT=aclrtSetDevice:*:507033")
	out, err = cmd.Output()
	if cmd.ProcessState.ExitCode() != 69 || !strings.Contains(string(out), "npu:0 cannot be opened") || !strings.Contains(string(out), "507033") {
		t.Errorf("%v\n%s", err, out)
	}
	// A kernel that is wrong is named, with its operators and an exit code of its own; the device goes on where it can.
	cmd = program(t, "doctor", "--device", "npu:1", "--kinds", "relu,fill", "--brief")
	cmd.Env = append(cmd.Env, "GOTRAIN_CANN_HOME="+dir, "FAKE_CANN_INJECT=aclnnReluGetWorkspaceSize:*:561103")
	out, err = cmd.Output()
	for _, want := range []string{"kernels of npu:1", "FAILED relu f32", "561103", "Relu(in0", "fill  f32   12 =", "4 more of relu bf16 (fresh) failed"} {
		if !strings.Contains(string(out), want) || cmd.ProcessState.ExitCode() != 70 {
			t.Errorf("no %q, or another code: %v\n%s", want, err, out)
		}
	}
}
