package graphtest_test

import (
	"testing"

	"github.com/gotrain/gotrain/graph/graphtest"
	"github.com/gotrain/gotrain/npu"
	_ "github.com/gotrain/gotrain/npu/cpu"
)

// The models of all kinds, differentiated, planned and compiled, on the host's kernels, and on a device whose memory the host cannot reach.
func TestGradientsOnDevices(t *testing.T) {
	for name, extra := range map[string]map[string]string{"cpu": nil, "ref": {"memory": "strict", "f16": "true"}} {
		dev, err := npu.Open(name, npu.Options{Threads: 1, Extra: extra})
		if err != nil {
			t.Logf("no device %s: %v", name, err)
			continue
		}
		defer dev.Close()
		for _, act := range dev.Info().Compute {
			t.Run(name+"/"+act.String(), func(t *testing.T) { graphtest.Gradients(t, dev, act, nil) })
		}
	}
}
