package ref_test

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/ref"
)

func Example() {
	relu := npu.Op{Kind: npu.Relu, In: []npu.Desc{npu.D(npu.F32, 3)}, Out: []npu.Desc{npu.D(npu.F32, 3)}}
	x, y := make([]byte, 12), make([]byte, 12)
	for i, v := range []float32{-1, 0.5, 2} {
		binary.LittleEndian.PutUint32(x[4*i:], math.Float32bits(v))
	}
	if err := ref.Run(relu, [][]byte{x, y}); err != nil {
		fmt.Println(err)
	}
	for i := range 3 {
		fmt.Println(math.Float32frombits(binary.LittleEndian.Uint32(y[4*i:])))
	}

	relu.Out[0].Shape = npu.Shape{4}
	fmt.Println(ref.Check(relu))
	// Output:
	// 0
	// 0.5
	// 2
	// ref: relu{}(f32[3]) -> f32[4]: output 0 is f32[4], must be f32[3]
}
