package npu_test

import (
	"testing"

	"github.com/gotrain/gotrain/npu"
)

// The better of each pair counts, and what lacks a type has no peak for it.
func TestBestOfLimits(t *testing.T) {
	a := npu.Limits{Threads: 2, Region: 3, Peaks: []npu.Peak{{Type: "f32", FLOP: 10}}, Rates: []npu.Rates{{Bytes: 64, Read: 5, Copy: 1, Add: 9}}}
	b := npu.Limits{Threads: 2, Region: 2, Peaks: []npu.Peak{{Type: "f32", FLOP: 20}}, Rates: []npu.Rates{{Bytes: 64, Read: 4, Copy: 7, Add: 3}}}
	c := a.Best(b)
	if c.Peak(npu.F32) != 20 || c.Peak(npu.BF16) != 0 || c.Region != 2 || c.Rates[0] != (npu.Rates{Bytes: 64, Read: 5, Copy: 7, Add: 9}) {
		t.Errorf("%+v", c)
	}
	if a.Peaks[0].FLOP != 10 {
		t.Error("Best changed what it was given")
	}
	if d := (npu.Limits{}).Best(a); d.Peak(npu.F32) != 10 || d.Threads != 2 {
		t.Errorf("%+v", d)
	}
}
