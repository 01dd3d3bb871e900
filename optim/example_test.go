package optim_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/gotrain/gotrain/npu"
	_ "github.com/gotrain/gotrain/npu/ref"
	"github.com/gotrain/gotrain/optim"
)

// One step of SGD on three weights, with the norm of the gradient limited to 1. The gradient is a sum over 4 samples.
func Example() {
	dev, err := npu.Open("ref", npu.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()
	stream, _ := dev.NewStream("compute")
	defer stream.Close()
	vector := func(v ...float32) npu.Ptr {
		buf, _ := dev.Alloc(int64(4 * len(v)))
		raw, _ := binary.Append(nil, binary.NativeEndian, v)
		stream.CopyIn(npu.Ptr{Buf: buf}, raw)
		return npu.Ptr{Buf: buf}
	}
	weight, grad := vector(1, 2, 3), vector(0, 12, 16)

	opt, err := optim.New(dev, optim.Default(optim.SGD, 0), []optim.Segment{
		{Name: "fc", Weight: weight, Grad: grad, Elems: 3, Tensors: []optim.Tensor{{Name: "fc.weight", Elems: 3, Group: optim.GroupOf(2)}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer opt.Close()

	const scale = 1.0 / 4 // the mean over the samples
	opt.Measure(stream)
	stream.Sync(context.Background())
	norm := opt.Norm().L2(scale)
	opt.Begin(stream, 0.1, scale*optim.ClipCoef(norm, 1))
	opt.Step(stream)

	out := make([]byte, 12)
	stream.CopyOut(out, weight)
	if err := stream.Sync(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("norm %.1f, weights", norm)
	for i := range 3 {
		fmt.Printf(" %.3f", math.Float32frombits(binary.NativeEndian.Uint32(out[4*i:])))
	}
	fmt.Println()
	// Output: norm 5.0, weights 1.000 1.940 2.920
}
