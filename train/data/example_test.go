package data_test

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/train/data"
)

// squares is a custom source: sample i is the number i and its square.
type squares struct{ n int }

func (s squares) Name() string                 { return "squares" }
func (s squares) Len() int                     { return s.n }
func (s squares) Classes() []string            { return nil }
func (s squares) Fingerprint() (string, error) { return fmt.Sprint("squares ", s.n), nil }

func (s squares) Fields() []data.Field {
	return []data.Field{{Name: "x", DType: npu.F32}, {Name: "y", DType: npu.F32}}
}

func (s squares) Load(_ context.Context, r *data.Rand, i int, dst [][]byte) error {
	data.F32(dst[0])[0] = float32(i)
	data.F32(dst[1])[0] = float32(i * i)
	return nil
}

// Rank 1 of 2 evaluates 7 samples exactly: the ranks get 4 and 3, in the same number of batches.
func ExampleLoader() {
	l, err := data.NewLoader(squares{7}, data.Options{Batch: 2, Rank: 1, World: 2, Tail: data.Short, Epochs: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Close()
	for {
		b, err := l.Next(context.Background())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(b.Valid, "rows:", b.F32(0)[:b.Valid], b.F32(1)[:b.Valid], "then", b.Next)
		b.Release()
	}
	// Output:
	// 2 rows: [1 3] [1 9] then epoch 0, sample 4
	// 1 rows: [5] [25] then epoch 1, sample 0
}

// A run with two ranks stops after two batches and resumes with three ranks, in the same order.
func ExampleSampler() {
	two := data.Sampler{Len: 12, Seed: 1, Shuffle: true, World: 2, Batch: 2}
	at := two.Skip(data.State{}, 2)
	fmt.Println("stopped at", at)

	idx := make([]int, 1)
	for rank := range 3 {
		three := data.Sampler{Len: 12, Seed: 1, Shuffle: true, Rank: rank, World: 3, Batch: 1}
		three.Rows(at, three.Order(at.Epoch), idx)
		fmt.Println("rank", rank, "takes the order's next sample:", idx[0] == three.Order(0).At(8+rank))
	}
	// Output:
	// stopped at epoch 0, sample 8
	// rank 0 takes the order's next sample: true
	// rank 1 takes the order's next sample: true
	// rank 2 takes the order's next sample: true
}
