package npu_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/gotrain/gotrain/npu"
	_ "github.com/gotrain/gotrain/npu/ref"
)

// Adds two vectors on the reference device: the whole way from an op to its result.
func Example() {
	dev, err := npu.Open("ref", npu.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()
	v := npu.D(npu.F32, 3)
	op, err := dev.Choose(npu.Op{Kind: npu.Binary, Attrs: npu.Attrs{"fn": "add"}, In: []npu.Desc{v, v}, Out: []npu.Desc{v}})
	if err != nil {
		fmt.Println(err)
		return
	}
	k, err := dev.Compile(op)
	if err != nil {
		fmt.Println(err)
		return
	}
	var args []npu.Ptr
	for range 3 {
		buf, err := dev.Alloc(v.PlainBytes())
		if err != nil {
			fmt.Println(err)
			return
		}
		args = append(args, npu.Ptr{Buf: buf})
	}
	for i := range 3 {
		binary.LittleEndian.PutUint32(args[0].Buf.Host()[4*i:], math.Float32bits(float32(i)))
		binary.LittleEndian.PutUint32(args[1].Buf.Host()[4*i:], math.Float32bits(10))
	}
	launch, err := k.Bind(args, npu.Ptr{})
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := dev.NewStream("compute")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	if err := s.Run([]npu.Launch{launch}); err == nil {
		err = s.Sync(context.Background())
	}
	for i := range 3 {
		fmt.Println(math.Float32frombits(binary.LittleEndian.Uint32(args[2].Buf.Host()[4*i:])), err)
	}
	fmt.Println(op)
	// Output:
	// 10 <nil>
	// 11 <nil>
	// 12 <nil>
	// binary{fn=add}(f32[3], f32[3]) -> f32[3]
}
