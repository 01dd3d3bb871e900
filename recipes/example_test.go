package recipes_test

import (
	"fmt"

	"github.com/gotrain/gotrain/recipes"
)

func ExampleLoad() {
	r, err := recipes.Load("recipes/resnet50.toml", "train.dtype=bf16", "optim.lr_scaling=none")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Model.Name, r.Model.Depth, r.Train.DType, r.GlobalBatch(2), r.Optim.PeakLR(32), r.Run.OutputDir)
	// Output: resnet 50 bf16 32 0.1 runs/resnet50
}

func ExampleErrors() {
	_, err := recipes.Decode(`
[run]
epochs = 3
[data]
rot = "flowers"
[train]
dtype = "fp32"
batch_per_rank = "16"
`, "my.toml")
	fmt.Println(err)
	// Output:
	// my.toml:5: data.rot: unknown key (did you mean "root"?)
	// my.toml:7: train.dtype: unknown value "fp32" (did you mean "f32"? one of f32, bf16, f16)
	// my.toml:8: train.batch_per_rank: needs a whole number, got the text "16" (for example batch_per_rank = 16)
	// recipes: 3 problems
}
