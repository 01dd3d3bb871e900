package resnet

import (
	"fmt"
	"testing"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/npu"
)

func TestRecognise(t *testing.T) {
	for depth := range depths {
		b := graph.New()
		Build(b, b.Input("image", npu.F32, 4, 3, 32, 32), Config{Depth: depth, Width: 4, Classes: 3})
		var names []string
		for _, p := range b.Params() {
			names = append(names, p.Name)
		}
		if got, want := Recognise(names), fmt.Sprintf("ResNet%d", depth); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if got := Recognise(names[:len(names)/2]); got != "" {
			t.Errorf("half of depth %d: %q", depth, got)
		}
	}
	if got := Recognise([]string{"layer9.1.conv1.weight", "model.layers.0.mlp"}); got != "" {
		t.Errorf("another network: %q", got)
	}
}
