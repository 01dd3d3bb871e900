package assemble_test

import (
	"context"
	"fmt"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/recipes/assemble"
)

func ExampleConfig() {
	r, err := recipes.Load("resnet50", "train.batch_per_rank=8")
	if err != nil {
		fmt.Println(err)
		return
	}
	cfg, err := assemble.Config(context.Background(), r, assemble.Rank{Identity: launch.Identity{World: 4, LocalWorld: 4}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(cfg.Data.Len(), "training samples,", cfg.Eval.Len(), "held out, batch", cfg.Batch, "a rank, checkpoint every", -cfg.SaveEvery, "epochs")
	// Output: 300 training samples, 100 held out, batch 8 a rank, checkpoint every 5 epochs
}
