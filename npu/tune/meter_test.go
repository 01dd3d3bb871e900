package tune

import (
	"context"
	"testing"

	"github.com/gotrain/gotrain/npu"
)

// The real thing on a real stream: every contestant runs, in small, and is paid for the conversions around it.
func TestMeasure(t *testing.T) {
	dev, s := open(t, "a")
	for _, op := range conv(4, 3, 5) {
		r, err := prepare(dev, op.WithAlgorithm(npu.Winograd4))
		if err != nil {
			t.Fatal(err)
		}
		first, last := r.kernels[0].Op().Kind, r.kernels[len(r.kernels)-1].Op().Kind
		if len(r.kernels) != 2 || first != npu.Convert || last != op.Kind {
			t.Errorf("%s runs %d kernels, first %s, last %s", op.Kind, len(r.kernels), first, last)
		}
	}
	tu := Tuner{Places: places(t)}
	c, rep, err := tu.Choose(context.Background(), dev, s, conv(4, 3, 5))
	if err != nil || rep.Measured != 3 || rep.Took <= 0 || len(c.Algorithms) != 3 {
		t.Errorf("%v %+v %v", c, rep, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := tu.Choose(ctx, dev, s, conv(4, 3, 6)); err == nil {
		t.Error("measured after the end of its context")
	}
}
