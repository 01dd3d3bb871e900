package checkpoint_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
)

func Example() {
	dir, err := os.MkdirTemp("", "run")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	store := checkpoint.New(checkpoint.OS{}, dir, 3)
	if _, _, err := store.Latest(ctx); errors.Is(err, checkpoint.ErrNone) {
		fmt.Println("a new run")
	}

	weights := []float32{1, 2, 3}
	saved, err := store.Save(ctx, checkpoint.Content{
		State: checkpoint.State{Step: 1000, Version: "1.0"},
		Files: []checkpoint.TensorFile{{
			Name:    checkpoint.ModelFile,
			Tensors: []safetensors.Tensor{{Name: "fc.weight", DType: safetensors.F32, Shape: []int64{3}}},
			Data:    func(t safetensors.Tensor, w io.Writer) error { return binary.Write(w, binary.LittleEndian, weights) },
		}},
	})
	if err != nil {
		fmt.Println(err) // and the training continues
		return
	}
	fmt.Println("saved", saved.Name)

	ck, report, err := store.Latest(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ck.Close()
	fmt.Println(report)
	fmt.Println(ck.File(checkpoint.ModelFile).Float32s("fc.weight"))
	// Output:
	// a new run
	// saved step-00001000
	// resuming from checkpoint step-00001000
	// [1 2 3] <nil>
}
