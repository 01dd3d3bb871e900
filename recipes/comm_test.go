package recipes

import (
	"strings"
	"testing"
)

func TestPorts(t *testing.T) {
	for text, want := range map[string][2]int{"": {}, "29500-29600": {29500, 29600}, " 29500 - 29600 ": {29500, 29600}, "29500": {29500, 29500}} {
		if got, err := (&Comm{PortRange: text}).Ports(); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"-", "1-", "0-5", "5-4", "1-65536", "a-b", "1-2-3"} {
		if got, err := (&Comm{PortRange: text}).Ports(); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// Words of other systems are answered with what to do.
func TestTransportsOfOthers(t *testing.T) {
	for value, want := range map[string]string{
		"mpi":  `not built in: start with mpirun and leave comm.transport = "auto"`,
		"nccl": "not built in",
		"tpc":  `did you mean "tcp"?`,
	} {
		r := Default()
		r.Comm.Transport = value
		if err := r.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", value, err)
		}
	}
	r := Default()
	r.Comm.PortRange = "9-1"
	if err := r.Check(); err == nil || !strings.Contains(err.Error(), "comm.port_range") {
		t.Error(err)
	}
}

// Heartbeats that a busy host cannot keep are refused, with the least value.
func TestShortHeartbeats(t *testing.T) {
	for value, fine := range map[float64]bool{0: true, 0.1: true, 0.5: true, 0.05: false, 0.001: false} {
		r := Default()
		r.Comm.Heartbeat = value
		if err := r.Check(); strings.Contains(err.Error(), "comm.heartbeat_seconds") == fine || strings.Contains(err.Error(), "the least is 0.1") == fine {
			t.Errorf("%g: %v", value, err) // the default recipe has other problems, too
		}
	}
}
