package train

import (
	"testing"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/train/telemetry"
)

// gauged is a device that measures itself, or says that it cannot now.
type gauged struct {
	npu.Device
	ok bool
}

func (g gauged) Utilization() (float64, bool) { return 37, g.ok }
func (g gauged) MemoryUse() (int64, bool)     { return 1 << 30, g.ok }

func TestGaugesOfTheDevice(t *testing.T) {
	for _, ok := range []bool{true, false} {
		e := telemetry.Step{Util: telemetry.Known(0.5), Memory: telemetry.Known(7)}
		(&Trainer{dev: gauged{ok: ok}}).gauge(&e)
		util, memory := 0.5, 7.0
		if ok {
			util, memory = 0.37, 1<<30
		}
		if e.Util != telemetry.Known(util) || e.Memory != telemetry.Known(memory) {
			t.Errorf("device tells %v: %v, %v", ok, e.Util, e.Memory)
		}
	}
}
