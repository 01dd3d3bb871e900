package acl

import (
	"errors"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/acl/lower"
)

func TestOptions(t *testing.T) {
	got, err := parseOptions(npu.Options{Index: 3})
	if err != nil || got != (options{index: 3, deterministic: true}) {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = parseOptions(npu.Options{Extra: map[string]string{"device": "5", "deterministic": "false", "allow_hf32": "true", "exact_dw": "true",
		"debug_sync": "true", "memory_mib": "100", "experimental": "true", "calibrate": "true"}})
	if err != nil || got != (options{index: 5, hf32: true, exact: true, debugSync: true, experimental: true, memory: 100 << 20}) {
		t.Errorf("%+v, %v", got, err)
	}
	for key, value := range map[string]string{"device": "-1", "deterministic": "yes", "memory_mib": "much", "layout": "nhwc", "debug_sync": ""} {
		_, err := parseOptions(npu.Options{Extra: map[string]string{key: value}})
		var wrong *npu.OptionError
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), key) || !strings.Contains(err.Error(), "hint: ") {
			t.Errorf("%s=%s: %v", key, value, err)
		}
	}
	if _, err := parseOptions(npu.Options{Index: -1}); err == nil {
		t.Error("device -1 exists")
	}
}

func TestGate(t *testing.T) {
	for _, c := range []struct {
		soc  string
		want lower.Family
		ok   bool
		try  bool // with experimental=true
	}{
		{"Ascend910B1", lower.A2, true, true}, {"Ascend910B4-1", lower.A2, true, true}, {"Ascend910_9391", lower.A3, true, true},
		{"Ascend950PR_9589", lower.A950, false, true}, {"Ascend910A", lower.A910, false, false}, {"Ascend910ProB", lower.A910, false, false},
		{"Ascend910B", lower.A910, false, false}, // without a digit it is of the first generation
		{"Ascend310P3", lower.Unknown, false, false}, {"", lower.Unknown, false, false},
	} {
		for _, try := range []bool{false, true} {
			f, err := gate(c.soc, try)
			if f != c.want || (err == nil) != (c.ok || try && c.try) {
				t.Errorf("%q, experimental %v: %v, %v", c.soc, try, f, err)
			}
			if err != nil && (!strings.Contains(err.Error(), "hint: ") || c.soc != "" && !strings.Contains(err.Error(), c.soc)) {
				t.Errorf("%q: %v", c.soc, err)
			}
		}
	}
}
