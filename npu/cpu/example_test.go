//go:build cgo && linux && (amd64 || arm64)

package cpu_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/gotrain/gotrain/npu"
	_ "github.com/gotrain/gotrain/npu/cpu"
)

// A product of two matrices: choose, compile, bind, run.
func Example() {
	dev, err := npu.Open("cpu", npu.Options{Threads: 1, Extra: map[string]string{"onednn": "off"}}) // so that the example needs no library
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()
	m := npu.D(npu.F32, 2, 2)
	op, _ := dev.Choose(npu.Op{Kind: npu.MatMul, In: []npu.Desc{m, m}, Out: []npu.Desc{m}})
	kernel, _ := dev.Compile(op)
	mem, _ := dev.Alloc(3 * 64)
	a := npu.Ptr{Buf: mem}
	b, y := a.At(64), a.At(128)
	launch, _ := kernel.Bind([]npu.Ptr{a, b, y}, npu.Ptr{})

	stream, _ := dev.NewStream("compute")
	host := make([]byte, 16)
	for i, v := range []float32{1, 2, 3, 4} {
		binary.LittleEndian.PutUint32(host[4*i:], math.Float32bits(v))
	}
	stream.CopyIn(a, host)
	stream.CopyIn(b, host)
	stream.Run([]npu.Launch{launch})
	out := make([]byte, 16)
	stream.CopyOut(out, y)
	if err := stream.Sync(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	for i := range 4 {
		fmt.Print(math.Float32frombits(binary.LittleEndian.Uint32(out[4*i:])), " ")
	}
	fmt.Println("by", kernel.Impl())
	// Output: 7 10 15 22 by go:matmul
}
