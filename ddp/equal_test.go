package ddp_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gotrain/gotrain/ddp"
	"github.com/gotrain/gotrain/ddp/comm"
)

// TestEqualToBigBatch trains a small network on the same data with any number of ranks, micro-batches and buckets.
//
//   - repeated: equal bit by bit;
//   - other bucket sizes: equal bit by bit, since a sum over ranks does not depend on what lies beside it;
//   - other ranks or micro-batches: the same up to the order of float32 sums. One step's gradient has a relative error of at most about n·2^-24
//     for n = 32 items, 2e-6; over 100 contracting steps the weights may drift by a few times that: bound 2e-5 of the largest weight.
func TestEqualToBigBatch(t *testing.T) {
	const bound = 2e-5
	base := trainNet(t, 1, 1, 25)
	var scale float64
	for _, w := range base {
		scale = max(scale, math.Abs(float64(w)))
	}
	if loss := lossOf(base); loss > 0.3*lossOf(make([]float32, len(base))) {
		t.Fatalf("training does not train: loss %v", loss)
	}
	for _, n := range []int{1, 2, 4} {
		for _, micro := range []int{1, 2, 4} {
			got := trainNet(t, n, micro, 25)
			for i := range got {
				if d := math.Abs(float64(got[i])-float64(base[i])) / scale; !(d <= bound) {
					t.Errorf("%d ranks, %d micro-batches: weight %d is %v, one big batch gives %v", n, micro, i, got[i], base[i])
				}
			}
			if again := trainNet(t, n, micro, 25); !slices.Equal(got, again) {
				t.Errorf("%d ranks, %d micro-batches: repeated run differs", n, micro)
			}
			if small := trainNet(t, n, micro, 1e-4); !slices.Equal(got, small) {
				t.Errorf("%d ranks, %d micro-batches: other bucket sizes differ", n, micro)
			}
		}
	}
}

// The network: y = v·tanh(W x + b) on 32 fixed items; layers of 8 inputs and 16 units.
const (
	inputs, units, items = 8, 16, 32
	weights              = units*inputs + units + units
)

var dataX, dataY = func() (x [items][inputs]float32, y [items]float32) {
	rng := rand.New(rand.NewPCG(5, 6))
	for i := range x {
		for j := range x[i] {
			x[i][j] = float32(rng.NormFloat64())
		}
		y[i] = x[i][0]*x[i][1] + 0.5*x[i][2]
	}
	return x, y
}()

// forward gives prediction error, and gradients of the squared error added to gv, gb, gW.
func forward(w []float32, i int, gv, gb, gW []float32) float32 {
	W, b, v := w[:units*inputs], w[units*inputs:][:units], w[units*inputs+units:]
	var h [units]float32
	var y float32
	for u := range h {
		s := b[u]
		for j, x := range dataX[i] {
			s += W[u*inputs+j] * x
		}
		h[u] = float32(math.Tanh(float64(s)))
		y += v[u] * h[u]
	}
	d := y - dataY[i]
	if gv != nil {
		for u := range h {
			gv[u] += 2 * d * h[u]
			dh := 2 * d * v[u] * (1 - h[u]*h[u])
			gb[u] += dh
			for j, x := range dataX[i] {
				gW[u*inputs+j] += dh * x
			}
		}
	}
	return d
}

func lossOf(w []float32) (sum float64) {
	for i := range items {
		d := float64(forward(w, i, nil, nil, nil))
		sum += d * d
	}
	return sum / items
}

// trainNet gives the weights after 100 steps, which must be the same on all ranks.
func trainNet(t *testing.T, n, micro int, bucketMB float64) []float32 {
	t.Helper()
	out := make([][]float32, n)
	succeed(t, ranks(t, group(t, n), func(c comm.Communicator) (err error) {
		out[c.Rank()], err = trainRank(c, micro, bucketMB)
		return err
	}))
	for r := range out {
		if !slices.Equal(out[r], out[0]) {
			t.Fatalf("ranks 0 and %d end with different weights", r)
		}
	}
	return out[0]
}

func trainRank(c comm.Communicator, micro int, bucketMB float64) ([]float32, error) {
	ctx := context.Background()
	first := min(bucketMB, 1)
	e, err := ddp.New(ctx, ddp.Config{Comm: c, BucketMB: bucketMB, FirstBucketMB: first, Params: []ddp.Param{
		{Name: "v", Elems: units}, {Name: "b", Elems: units}, {Name: "W", Elems: units * inputs}}})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	w := make([]float32, weights)
	if c.Rank() == 0 {
		rng := rand.New(rand.NewPCG(7, 8))
		for i := range w {
			w[i] = float32(rng.NormFloat64()) / 4
		}
	}
	if err := e.Broadcast(ctx, ddp.Named{Name: "weights", Mem: comm.HostOf(w)}); err != nil {
		return nil, err
	}
	mine := items / c.Size()
	for step := range int64(100) {
		if err := e.Zero(ctx); err != nil {
			return nil, err
		}
		for m := range micro {
			if err := e.Begin(step, m == micro-1); err != nil {
				return nil, err
			}
			for i := range mine / micro {
				forward(w, c.Rank()*mine+m*(mine/micro)+i, e.GradF32(0), e.GradF32(1), e.GradF32(2))
			}
			for i := range 3 {
				if err := e.Ready(i); err != nil {
					return nil, err
				}
			}
		}
		_, werr := e.Wait(ctx)
		v, aerr := e.Agree(ctx, ddp.Vote{Count: float64(mine)})
		if err := errors.Join(werr, aerr); err != nil {
			return nil, err
		}
		at := 0
		for i := range 3 {
			for j, g := range e.GradF32(2 - i) { // W, b, v
				w[at+j] -= 0.1 / float32(v.Count) * g
			}
			at += len(e.GradF32(2 - i))
		}
	}
	if err := e.CheckState(ctx, ddp.Named{Name: "weights", Mem: comm.HostOf(w)}); err != nil {
		return nil, fmt.Errorf("at the end: %w", err)
	}
	return w, nil
}
