package safetensors_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
)

func Example() {
	tensors := []safetensors.Tensor{
		{Name: "fc.weight", DType: safetensors.F32, Shape: []int64{2, 2}},
		{Name: "fc.bias", DType: safetensors.F32, Shape: []int64{2}},
	}
	values := map[string][]float32{"fc.weight": {1, 2, 3, 4}, "fc.bias": {0.5, -0.5}}
	var file bytes.Buffer
	err := safetensors.Write(&file, tensors, map[string]string{"format": "pt"}, func(t safetensors.Tensor, w io.Writer) error {
		return binary.Write(w, binary.LittleEndian, values[t.Name])
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	f, err := safetensors.New("in memory", bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range f.Tensors() {
		x, _ := f.Float32s(t.Name)
		fmt.Println(t.Name, t.DType, t.Shape, x)
	}
	// Output:
	// fc.bias F32 [2] [0.5 -0.5]
	// fc.weight F32 [2 2] [1 2 3 4]
}
