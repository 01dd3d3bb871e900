package models_test

import (
	"fmt"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/models"
	_ "github.com/gotrain/gotrain/graph/models/resnet"
	"github.com/gotrain/gotrain/npu"
)

// A network from its name and its configuration.
func Example() {
	net, err := models.Open("resnet", []byte(`{"depth": 18, "classes": 10, "width": 8, "small_stem": true}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	b := graph.New(graph.ForEval())
	logits := net(b, map[string]*graph.Node{"image": b.Input("image", npu.F32, 4, 3, 32, 32)})
	fmt.Println(b.Desc(logits).Shape, b.Err())
	// Output: [4 10] <nil>
}
