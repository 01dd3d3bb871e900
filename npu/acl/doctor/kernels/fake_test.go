//go:build cgo && linux

package kernels

import (
	"testing"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/acl"
	"github.com/gotrain/gotrain/npu/acl/acltest"
)

func TestMain(m *testing.M) { acltest.Main(m) }

// The three modes of an NPU do what they say: executors are reused, or made for each launch, and without determinism the fake, which then adds in
// another order each time, still passes, although bits differ from run to run.
func TestModes(t *testing.T) {
	acltest.Use(t)
	var devices []*acl.Device
	o := Options{Modes: Modes("npu"), Kinds: []string{npu.Relu, npu.MatMul, npu.RMSNormBwd, npu.SumSq}, Open: func(extra map[string]string) (npu.Device, error) {
		d, err := acl.Open(npu.Options{Extra: extra})
		devices = append(devices, d)
		return d, err
	}}
	r, err := Run(t.Context(), o)
	if err != nil || !r.OK() || len(devices) != 3 || len(r.Rows) != 3*(3*3+1) {
		t.Fatalf("%v\n%s", err, r.Text())
	}
	var first, second [3]uint64
	for i, d := range devices {
		first[i], second[i] = d.Launches()
	}
	if first[1] != second[1] || first[0] >= second[0] || second[0] != second[1] {
		t.Errorf("first phases of each mode %v, second phases %v: fresh executors have a first phase for each launch, reused ones do not", first, second)
	}
	o.Modes = []Mode{{Name: "strict", Extra: map[string]string{"deterministic": "false"}}}
	o.Kinds = []string{npu.RMSNormBwd}
	if r, err = Run(t.Context(), o); err != nil || r.OK() {
		t.Errorf("a device that is not deterministic passes as one: %v\n%s", err, r.Text())
	}
}
