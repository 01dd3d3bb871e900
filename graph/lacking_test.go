package graph_test

import (
	"strings"
	"testing"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/npu"
	_ "github.com/gotrain/gotrain/npu/ref"
)

// without is a device that lacks a kind.
type without struct {
	npu.Device
	kind string
}

func (d without) Has(kind string, a npu.Attrs) bool { return kind != d.kind && d.Device.Has(kind, a) }

func (d without) Info() npu.Info { return npu.Info{Name: "mine:3"} }

// The device and the op are named when the model is compiled, before any memory is taken.
func TestDeviceLacksKind(t *testing.T) {
	dev, err := npu.Open("ref", npu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	b := graph.New()
	b.In("head", func() {
		w := b.Param("w", npu.Shape{3}, graph.Zeros())
		b.Loss(b.Sum(b.Mul(b.Sigmoid(w), w)))
	})
	_, err = graph.Compile(b, without{dev, npu.Unary}, graph.Options{})
	const want = `device mine:3 has no kernel for unary{alpha=-1 beta=1 fn=affine} of "head", unary{fn=sigmoid} of "head"` + "\nhint: "
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v", err)
	}
}
