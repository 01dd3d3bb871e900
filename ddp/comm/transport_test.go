package comm_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/self"
	"github.com/gotrain/gotrain/npu"
)

// card is a device of some family.
type card struct {
	npu.Device
	family   string
	separate bool
}

func (d card) Info() npu.Info {
	return npu.Info{Name: d.family + ":0", Family: d.family, Separate: d.separate}
}

// pair pretends to be one of two ranks.
type pair struct{ comm.Communicator }

func (pair) Size() int { return 2 }

// carrier is a data communicator.
type carrier struct {
	comm.Communicator
	name string
	o    comm.Opening
}

var (
	carriers sync.Once // the test may run several times
	errLink  = errors.New("no link")
)

func TestForDevice(t *testing.T) {
	of := func(families ...string) func(npu.Device) bool {
		return func(d npu.Device) bool { return strings.Contains(strings.Join(families, " "), d.Info().Family) }
	}
	open := func(name string) func(context.Context, comm.Opening) (comm.Communicator, error) {
		return func(_ context.Context, o comm.Opening) (comm.Communicator, error) {
			return carrier{name: name, o: o}, nil
		}
	}
	carriers.Do(func() {
		comm.RegisterTransport("slow", 1, of("blue", "red"), open("slow"))
		comm.RegisterTransport("fast", 9, of("blue"), open("fast"))
		comm.RegisterTransport("bad", 20, of("green"), func(context.Context, comm.Opening) (comm.Communicator, error) { return nil, errLink })
		comm.RegisterTransport("slow green", 1, of("green"), open("slow green"))
	})
	ctx, alone := t.Context(), self.New()
	two := pair{alone}
	for family, want := range map[string]string{"blue": "fast", "red": "slow"} {
		c, err := comm.ForDevice(ctx, comm.Opening{Control: two, Device: card{family: family, separate: true}, Timeout: time.Second})
		got, ok := c.(carrier)
		if err != nil || !ok || got.name != want || got.o.Timeout != time.Second || got.o.LongWork != time.Hour || got.o.Control != two {
			t.Errorf("%s: %+v %v", family, got, err)
		}
		if c, err = comm.ForDevice(ctx, comm.Opening{Control: two, Device: card{family: family}}); err != nil || c != two {
			t.Errorf("%s with host memory: %T %v", family, c, err)
		}
	}
	// No silent fallback to a slower one.
	_, err := comm.ForDevice(ctx, comm.Opening{Control: two, Device: card{family: "green", separate: true}})
	if !errors.Is(err, errLink) || err.Error() != "comm: opening transport bad for device green:0: no link" {
		t.Error(err)
	}
	_, err = comm.ForDevice(ctx, comm.Opening{Control: two, Device: card{family: "violet", separate: true}})
	if err == nil || !strings.Contains(err.Error(), "violet:0") || !strings.Contains(err.Error(), "bad, fast, slow, slow green") {
		t.Error(err)
	}
	if _, err = comm.ForDevice(ctx, comm.Opening{Control: two}); err == nil {
		t.Error("a device is needed")
	}
	c, err := comm.ForDevice(ctx, comm.Opening{Control: alone, Device: card{family: "violet", separate: true}})
	if err != nil || c == comm.Communicator(alone) || c.Close() != nil {
		t.Error(c, err)
	}
	if err := comm.Wait(ctx)(alone.Barrier(ctx)); err != nil {
		t.Error("closing the data communicator of one rank closed the control communicator:", err)
	}
}
