package tune

import (
	"testing"

	"github.com/gotrain/gotrain/internal/usercache"
	"github.com/gotrain/gotrain/npu"
	_ "github.com/gotrain/gotrain/npu/ref"
)

// fake is the plain-Go device with a second algorithm for convolutions, which wants its first tensor in a layout of its own. All of them are
// plain in truth.
type fake struct {
	npu.Device
	machine string
	turn    int // from so many pictures on, the second algorithm works in another form; 0: never
}

const own npu.Layout = "own"

func (f fake) Identity() string { return f.machine }

func (f fake) Algorithms(op npu.Op) []string {
	if convolution(op) {
		return []string{npu.Direct, npu.Winograd4}
	}
	return []string{npu.Direct}
}

func (f fake) Form(op npu.Op) string {
	switch {
	case f.turn == 0 || op.Attrs.Str(npu.AttrAlgorithm) == npu.Direct:
		return ""
	case op.In[0].Shape[0] < f.turn:
		return "blocks"
	}
	return "strips"
}

func (f fake) Choose(op npu.Op) (npu.Op, error) {
	if op.Attrs.Str(npu.AttrAlgorithm) == npu.Winograd4 {
		op = op.Clone()
		op.In[0].Layout = own
		return op, nil
	}
	return f.Device.Choose(op.WithAlgorithm(npu.Direct))
}

func (f fake) Bytes(d npu.Desc) (int64, error) { return f.Device.Bytes(d.With(npu.Plain)) }

func (f fake) Compile(op npu.Op) (npu.Kernel, error) {
	op = op.WithAlgorithm(npu.Direct)
	for i := range op.In {
		op.In[i].Layout = npu.Plain
	}
	for i := range op.Out {
		op.Out[i].Layout = npu.Plain
	}
	return f.Device.Compile(op)
}

func open(t *testing.T, machine string) (fake, npu.Stream) {
	t.Helper()
	dev, err := npu.Open("ref", npu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := dev.NewStream("compute")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(); dev.Close() })
	return fake{dev, machine, 0}, s
}

func places(t *testing.T) []usercache.Place {
	return []usercache.Place{{Base: t.TempDir(), Own: []string{"gotrain", "tune"}}}
}

// conv is a 3x3 convolution with padding, and its gradients.
func conv(n, c, hw int) []npu.Op {
	x, w := npu.D(npu.F32, n, c, hw, hw), npu.D(npu.F32, c, c, 3, 3)
	a := npu.Attrs{"pad": []int{1, 1, 1, 1}}
	data, weights := a.Clone(), a.Clone()
	data["x_shape"], weights["w_shape"] = []int(x.Shape), []int(w.Shape)
	return []npu.Op{
		{Kind: npu.Conv2D, Attrs: a, In: []npu.Desc{x, w}, Out: []npu.Desc{x}},
		{Kind: npu.Conv2DBwdData, Attrs: data, In: []npu.Desc{x, w}, Out: []npu.Desc{x}},
		{Kind: npu.Conv2DBwdWeights, Attrs: weights, In: []npu.Desc{x, x}, Out: []npu.Desc{w}},
	}
}
