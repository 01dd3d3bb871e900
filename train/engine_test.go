package train

import (
	"context"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/ddp/comm/shm"
	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/npu"
)

// other is the plain-Go device under another name.
type other struct{ npu.Device }

func (o other) Info() npu.Info {
	i := o.Device.Info()
	i.Name, i.Family = "other", "other"
	return i
}

func init() {
	npu.Register("other", -1, func(o npu.Options) (npu.Device, error) {
		d, err := npu.Open("ref", o)
		return other{d}, err
	})
}

// With device = auto, ranks of a machine that has fewer devices than ranks would compute on different ones, and their transports would not fit.
func TestRanksOnDifferentDevices(t *testing.T) {
	comms, err := shm.NewLocal(2)
	if err != nil {
		t.Fatal(err)
	}
	errs := make(chan error, 2)
	for r, family := range []string{"ref", "other"} {
		go func() {
			tr, err := New(append(division(t, images(t, 96), 2, 1, 25), WithDevice(family, 1), WithComm(comms[r]))...)
			if err == nil {
				_, err = tr.Run(context.Background())
			}
			errs <- err
		}()
	}
	for range comms {
		err := <-errs
		if err == nil || launch.ExitCode(err) != launch.ExitUnavailable ||
			!strings.Contains(err.Error(), "device = ref on rank 0, but device = other on rank 1") {
			t.Errorf("code %d: %v", launch.ExitCode(err), err)
		}
	}
	for _, c := range comms {
		c.Close()
	}
}
