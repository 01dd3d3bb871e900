package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

// Each fault is found, and a whole machine has none. The golden files show the reports.
func TestMachines(t *testing.T) {
	for name := range broken {
		t.Run(name, func(t *testing.T) {
			r, _ := examine(t, name)
			s := Style{Brief: name != "a2" && name != "a3" && name != "host"}
			golden(t, name+".golden", r.Text(s))
		})
	}
}

// What each fault must say at least, whatever else a golden file has.
func TestFaults(t *testing.T) {
	for name, want := range map[string]struct {
		code int
		text []string
	}{
		"a2": {0, []string{"8 NPUs, Ascend910B3, CANN 8.1.RC1", "0 errors, 0 warnings"}},
		"a3": {0, []string{"16 NPUs, Ascend910_9391", "8 cards with 2 dies each",
			"0 errors, 0 warnings", "process 4711 (python) uses NPU 0, chip 1"}},
		"container": {69, []string{"4 NPUs", "there is no npu-smi",
			"mount /usr/local/Ascend/driver from the host", "hccn_tool cannot be used"}},
		"firmware": {69, []string{"firmware 7.8.0.1.100 does not fit the driver 25.2.1, which wants [7.0.0,7.7.99]"}},
		"tls":      {69, []string{"TLS differs: off on device 0, device 1, device 2, device 4", "on on device 3"}},
		"link-down": {0, []string{"link is down: device 5", "net health is Detect fault", "optical module not present",
			"198.51.100.99", "mac_rx_pfc_pkt_num 812"}},
		"devlib":  {69, []string{"devlib is on the path", "100039"}},
		"visible": {69, []string{"must ascend"}},
		"two-toolkits": {69, []string{"several toolkits are on the path; the first is used: /opt/cann",
			"ASCEND_HOME_PATH is"}},
		"mixed": {69, []string{"packages of several versions: 8.0.0: hccl; 8.1.RC1:",
			"hccl wants package opp >=7.5, <=7.6"}},
		"no-kernels": {69, []string{"there are no compiled operators", "561003"}},
		"no-env": {69, []string{"source its set_env.sh", "HCCL_TOPOLOGY=star", "libascend_hal.so", "driver's folders", "RANK_TABLE_FILE=/x",
			"HCCL_CONNECT_TIMEOUT=30"}},
		"sick": {69, []string{"health Alarm", "device 0 has 97 °C", "may be locked", "/dev/hisi_hdc missing", "no permission for /dev/davinci1",
			"usermod -aG HwHiAiUser",
			"job-7", "kill 77", "507033", "in use are 50005", "has health 2"}},
		"host":        {0, []string{"This machine has no NPU", "8 cores, arm64, pages of 64.0 KiB"}},
		"driver-gone": {69, []string{"there is no device file", "load the driver"}},
	} {
		r, _ := examine(t, name)
		text := r.Text(Style{})
		if name == "two-toolkits" {
			want.code = 0 // odd, but it may work
		}
		if r.ExitCode() != want.code {
			t.Errorf("%s: exit code %d, want %d\n%s", name, r.ExitCode(), want.code, text)
		}
		for _, w := range want.text {
			if !strings.Contains(text, w) {
				t.Errorf("%s: no %q in\n%s", name, w, text)
			}
		}
		for _, f := range r.Findings {
			if f.Severity >= Warning && f.Remedy == "" {
				t.Errorf("%s: no remedy for %s", name, f.What)
			}
		}
	}
}

// A machine without NPUs gets one sentence about them and nothing else.
func TestNoNPU(t *testing.T) {
	r, _ := examine(t, "host")
	for _, f := range r.Findings {
		if f.Group != "host" && f.Group != "leftovers" {
			t.Errorf("a machine without NPUs has the finding %+v", f)
		}
	}
}

func TestJSON(t *testing.T) {
	r, _ := examine(t, "firmware")
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "firmware.json", string(b)+"\n")
	var back Report
	if err := json.Unmarshal(b, &back); err != nil || len(back.Findings) != len(r.Findings) || back.ExitCode() != 69 {
		t.Errorf("%v %+v", err, back)
	}
	if err := json.Unmarshal([]byte(`{"findings":[{"severity":"bad"}]}`), &back); err == nil {
		t.Error("an unknown severity is accepted")
	}
}

// crashing is a machine whose probes die.
type crashing struct{ Recorded }

func (crashing) Probe(context.Context, Request) (*Probe, error) {
	return nil, errors.New("signal: segmentation fault")
}

func TestProbesThatCrash(t *testing.T) {
	r := Check(t.Context(), crashing{Recorded{machine(t, "a2")}}, Options{})
	if text := r.Text(Style{Colour: true}); r.ExitCode() != 69 || strings.Count(text, "segmentation fault") != 4 || !strings.Contains(text, "\x1b[31merror") {
		t.Errorf("code %d\n%s", r.ExitCode(), text)
	}
}

// Nothing that files say reaches the terminal as a control character.
func TestHostileTexts(t *testing.T) {
	m := machine(t, "a2")
	edit(t, m, "cmd/npu-smi_info.txt", "910B3", "9\x1b[2J\u009b")
	set(m, "dev/shm/gotrain-1000/\x1b[31mjob", "")
	r := Check(t.Context(), Recorded{m}, Options{UID: 1000})
	if text := r.Text(Style{}); strings.ContainsAny(text, "\x1b\u009b") {
		t.Errorf("%q", text)
	}
}

func TestRecorded(t *testing.T) {
	r := Recorded{fstest.MapFS{"cmd/probe_host.txt": {Data: []byte("{")}}}
	if _, err := r.Probe(t.Context(), Request{Stage: StageHost}); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if _, err := r.Command(t.Context(), "/sbin/nothing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if len(r.Env()) != 0 || !errors.Is(r.Access("/dev/davinci0"), fs.ErrNotExist) {
		t.Error("an empty record has something")
	}
}
