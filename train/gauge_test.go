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
		tr := &Trainer{dev: gauged{ok: ok}, window: &telemetry.Window{}}
		tr.gauge(&e)
		util, memory := telemetry.Known(0.5), telemetry.Value{} // the memory of the process is not that of the device
		if ok {
			util, memory = telemetry.Known(0.37), telemetry.Known(1<<30)
		}
		if e.Util != util || e.Memory != memory {
			t.Errorf("device tells %v: %v, %v", ok, e.Util, e.Memory)
		}
		var end ended
		tr.bus = telemetry.NewBus(&end)
		tr.emitEnd(nil)
		if err := tr.bus.Close(); err != nil {
			t.Fatal(err)
		}
		if ok && end.peak != memory {
			t.Errorf("at the end the most that was in use is %v, want %v", end.peak, memory)
		}
	}
}

// ended keeps the peak of a run's last event.
type ended struct{ peak telemetry.Value }

func (e *ended) Emit(ev telemetry.Event) error {
	if end, ok := ev.(telemetry.RunEnd); ok {
		e.peak = end.PeakMemory
	}
	return nil
}

func (e *ended) Close() error { return nil }
