package plan

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/gotrain/gotrain/graph/op"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/ref"
)

// sketch builds graphs for tests: every call infers its outputs.
type sketch struct {
	t *testing.T
	g Graph
}

func (s *sketch) value(name string, role Role, d npu.Desc) ID {
	return s.g.Add(Value{Name: name, Role: role, Desc: d})
}

func (s *sketch) call(back bool, name, kind string, a npu.Attrs, in ...ID) []ID {
	s.t.Helper()
	k, err := op.Lookup(kind)
	if err != nil {
		s.t.Fatal(err)
	}
	var d []npu.Desc
	for _, i := range in {
		d = append(d, s.g.Values[i].Desc)
	}
	outs, err := k.Infer(a, d)
	if err != nil {
		s.t.Fatalf("%s %s: %v", kind, name, err)
	}
	c := Call{Kind: kind, Attrs: a, In: in, Name: name, Back: back}
	for j, o := range outs {
		if from, ok := k.StateOf(a, j); ok {
			c.Out = append(c.Out, in[from])
			continue
		}
		c.Out = append(c.Out, s.value(name, Temp, o))
	}
	s.g.Calls = append(s.g.Calls, c)
	return c.Out
}

// residual is one residual block with a projection, as a model would build it and Gorgonia differentiate it: conv-bn-relu-conv-bn, plus conv-bn, add,
// relu, pool, linear, cross-entropy; twice, so that the first block's output has two gradients to add.
func residual(t *testing.T, blocks int) *Graph {
	s := &sketch{t: t}
	n, c, hw := 2, 4, 6
	x := s.value("x", Input, npu.D(npu.F32, n, c, hw, hw))
	labels := s.value("labels", Input, npu.D(npu.I32, n))
	one := s.value("one", Input, npu.D(npu.F32))
	conv := func(k int) npu.Attrs {
		p := k / 2
		return npu.Attrs{"stride": []int{1, 1}, "pad": []int{p, p, p, p}, "dilation": []int{1, 1}, "groups": 1}
	}
	type layer struct {
		x, w, z, gamma, beta, mean, rstd ID
		k                                int
	}
	params := map[string]ID{}
	var order []string
	param := func(name string, shape ...int) ID {
		params[name] = s.value(name, Param, npu.D(npu.F32, shape...))
		order = append(order, name)
		return params[name]
	}
	bnAttrs := npu.Attrs{"eps": 1e-5, "momentum": 0.1}
	convbn := func(name string, x ID, k int) (layer, ID) {
		l := layer{x: x, k: k}
		l.w = param(name+".w", c, c, k, k)
		l.z = s.call(false, name, npu.Conv2D, conv(k), x, l.w)[0]
		l.gamma, l.beta = param(name+".gamma", c), param(name+".beta", c)
		rm, rv := s.value(name+".mean", State, npu.D(npu.F32, c)), s.value(name+".var", State, npu.D(npu.F32, c))
		o := s.call(false, name, npu.BatchNorm, bnAttrs, l.z, l.gamma, l.beta, rm, rv)
		l.mean, l.rstd = o[1], o[2]
		return l, o[0]
	}
	type block struct {
		a, b, d  layer
		ra, rOut ID
	}
	var bs []block
	h := x
	for i := range blocks {
		var b block
		var y, z, d ID
		b.a, y = convbn(fmt.Sprintf("b%d.conv1", i), h, 3)
		b.ra = s.call(false, "relu1", npu.Relu, nil, y)[0]
		b.b, z = convbn(fmt.Sprintf("b%d.conv2", i), b.ra, 3)
		skip := h
		if i == 0 {
			b.d, d = convbn("b0.down", h, 1)
			skip = d
		}
		sum := s.call(false, "add", npu.Binary, npu.Attrs{"fn": "add"}, z, skip)[0]
		b.rOut = s.call(false, "relu2", npu.Relu, nil, sum)[0]
		h = b.rOut
		bs = append(bs, b)
	}
	pool := s.call(false, "pool", npu.GlobalAvgPool, nil, h)[0]
	fc := param("fc.w", 3, c)
	logits := s.call(false, "fc", npu.MatMul, npu.Attrs{"tb": true}, pool, fc)[0]
	ce := s.call(false, "loss", npu.CrossEntropy, nil, logits, labels)
	loss := s.call(false, "scale", npu.Binary, npu.Attrs{"fn": "mul"}, ce[0], one)[0]
	s.g.Outputs = []Output{{"loss", loss}, {"count", ce[1]}}

	grads := map[string]ID{}
	dlogits := s.call(true, "loss", npu.CrossEntropyBwd, nil, logits, labels, ce[2], one)[0]
	grads["fc.w"] = s.call(true, "fc", npu.MatMul, npu.Attrs{"ta": true, "out": "f32"}, dlogits, pool)[0]
	dpool := s.call(true, "fc", npu.MatMul, nil, dlogits, fc)[0]
	g := s.call(true, "pool", npu.GlobalAvgPoolBwd, npu.Attrs{"x_shape": []int{n, c, hw, hw}}, dpool)[0]
	back := func(name string, l layer, dy ID) ID {
		o := s.call(true, name, npu.BatchNormBwd, bnAttrs, dy, l.z, l.gamma, l.beta, l.mean, l.rstd)
		grads[name+".gamma"], grads[name+".beta"] = o[1], o[2]
		a := conv(l.k)
		a["w_shape"] = []int{c, c, l.k, l.k}
		grads[name+".w"] = s.call(true, name, npu.Conv2DBwdWeights, a, l.x, o[0])[0]
		a = conv(l.k)
		a["x_shape"] = []int{n, c, hw, hw}
		return s.call(true, name, npu.Conv2DBwdData, a, o[0], l.w)[0]
	}
	for i := blocks - 1; i >= 0; i-- {
		b := bs[i]
		m := s.call(true, "relu2", npu.ReluBwd, nil, g, b.rOut)[0]
		d2 := back(fmt.Sprintf("b%d.conv2", i), b.b, m)
		d1 := s.call(true, "relu1", npu.ReluBwd, nil, d2, b.ra)[0]
		dx := back(fmt.Sprintf("b%d.conv1", i), b.a, d1)
		skip := m
		if i == 0 {
			skip = back("b0.down", b.d, m)
		}
		g = s.call(true, "sum", npu.Binary, npu.Attrs{"fn": "add"}, dx, skip)[0]
	}
	for _, name := range order {
		s.g.Trained = append(s.g.Trained, Trained{params[name], grads[name]})
	}
	return &s.g
}

// execute interprets a plan with the reference kernels, in real arena memory, so that a fault of the memory planner shows as a wrong number.
// Bound tensors are filled from their names; it returns everything bound, by name.
func execute(t *testing.T, p *Plan) map[string][]float32 {
	t.Helper()
	arena := make([]uint64, p.Arena/8+1)
	base := unsafe.Slice((*byte)(unsafe.Pointer(&arena[0])), len(arena)*8)
	for i := range base { // stale memory must not matter
		base[i] = 0xff
	}
	bound := map[ID][]byte{}
	mem := func(id ID) []byte {
		if id == None {
			return nil
		}
		id = p.Memory(id)
		x := p.Tensors[id]
		if x.Place == Arena {
			return base[x.Offset : x.Offset+x.Bytes]
		}
		if bound[id] == nil {
			words := make([]float32, x.Bytes/4)
			fill(x, words)
			bound[id] = unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), x.Bytes)
		}
		return bound[id]
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		var args [][]byte
		for _, id := range s.In {
			args = append(args, mem(id))
		}
		for _, id := range s.Out {
			args = append(args, mem(id))
		}
		if err := ref.Run(s.Op, args); err != nil {
			t.Fatalf("step %d %s %q: %v", i, s.Op.Kind, s.Name, err)
		}
	}
	out := map[string][]float32{}
	for id, b := range bound {
		name := p.Tensors[id].Name
		for _, o := range p.Outputs {
			if o.Value == id {
				name = "out:" + o.Name
			}
		}
		out[name] = unsafe.Slice((*float32)(unsafe.Pointer(&b[0])), len(b)/4)
	}
	return out
}

func fill(x Tensor, v []float32) {
	if x.Desc.DType == npu.I32 {
		for i := range v {
			v[i] = math.Float32frombits(uint32(i % 3))
		}
		return
	}
	var seed uint64
	for _, c := range x.Name {
		seed = seed*31 + uint64(c)
	}
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range v {
		v[i] = float32(r.NormFloat64()) * 0.5
	}
	if x.Name == "one" {
		v[0] = 1
	}
}

func target(t *testing.T) npu.Device {
	d, err := ref.Open(npu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func compare(t *testing.T, want, got map[string][]float32, tol float64) {
	t.Helper()
	for name, w := range want {
		g, ok := got[name]
		if !ok || len(g) != len(w) {
			t.Errorf("%s: missing or of another size", name)
			continue
		}
		var scale, worst float64
		for i := range w {
			scale = math.Max(scale, math.Abs(float64(w[i])))
			worst = math.Max(worst, math.Abs(float64(w[i]-g[i])))
			if math.IsNaN(float64(g[i])) {
				worst = math.Inf(1)
			}
		}
		if worst > tol*math.Max(scale, 1e-3) {
			t.Errorf("%s: differs by %.3g of %.3g", name, worst, scale)
		}
	}
}

func TestFusedReusedPlanComputesTheSame(t *testing.T) {
	for _, blocks := range []int{1, 2, 3} {
		g := residual(t, blocks)
		dev := target(t)
		plain, err := Build(g, dev, Options{NoFuse: true, NoReuse: true})
		if err != nil {
			t.Fatal(err)
		}
		fused, err := Build(g, dev, Options{})
		if err != nil {
			t.Fatal(err)
		}
		// Fusion reorders sums within a norm only: float32 rounding, grown by the depth.
		compare(t, execute(t, plain), execute(t, fused), 2e-5)
		if len(fused.Steps) >= len(plain.Steps) || fused.Arena >= plain.Arena {
			t.Errorf("fusion saved nothing: %d steps of %d, arena %d of %d", len(fused.Steps), len(plain.Steps), fused.Arena, plain.Arena)
		}
		for _, s := range fused.Steps {
			if s.Op.Kind == npu.Relu || s.Op.Kind == npu.ReluBwd || (s.Op.Kind == npu.Binary && s.Op.Attrs.Str("fn") == "add" && s.Name != "sum") {
				t.Errorf("%s %q was left unfused", s.Op.Kind, s.Name)
			}
		}
		staged, err := Build(g, dev, Options{Accumulate: true})
		if err != nil {
			t.Fatal(err)
		}
		compare(t, execute(t, plain), execute(t, staged), 2e-5)
	}
}

func TestMixedPrecisionStaysClose(t *testing.T) {
	g := residual(t, 2)
	dev := target(t)
	full, err := Build(g, dev, Options{})
	if err != nil {
		t.Fatal(err)
	}
	half, err := Build(g, dev, Options{Compute: npu.BF16})
	if err != nil {
		t.Fatal(err)
	}
	// bfloat16 has 8 bits of mantissa; gradients of norms are small differences of large sums, so a fifth of the largest element is what it may cost here.
	compare(t, execute(t, full), execute(t, half), 0.25)
	for _, w := range half.Weights {
		if d := half.Tensors[w.Grad].Desc.DType; d != npu.F32 {
			t.Errorf("gradient of %s is %v", w.Name, d)
		}
	}
	n := 0
	for _, s := range half.Steps {
		if s.Op.Kind == npu.Conv2D && s.Op.In[0].DType == npu.BF16 && s.Op.In[1].DType == npu.BF16 {
			n++
		}
		if s.Op.Kind == npu.Binary && s.Name == "scale" && s.Op.In[0].DType != npu.F32 {
			t.Errorf("the loss is scaled in %v", s.Op.In[0].DType)
		}
	}
	if n != 5 {
		t.Errorf("%d convolutions in bf16, want 5", n)
	}
	if half.Arena > full.Arena*2/3 {
		t.Errorf("bf16 arena %d against %d", half.Arena, full.Arena)
	}
}

func TestPlanIsDeterministic(t *testing.T) {
	dev := target(t)
	a, err := Build(residual(t, 3), dev, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		b, err := Build(residual(t, 3), dev, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if a.Fingerprint() != b.Fingerprint() || a.Arena != b.Arena {
			t.Fatal("two builds of one model differ")
		}
	}
}

func TestLayoutsMeetInTheGradient(t *testing.T) {
	p, err := Build(residual(t, 2), fake{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range p.Weights {
		if v, g := p.Tensors[w.Value].Desc, p.Tensors[w.Grad].Desc; !v.Equal(g) || v.Layout == npu.Any {
			t.Errorf("%s: weight %v, gradient %v", w.Name, v, g)
		}
		if len(p.Tensors[w.Value].Desc.Shape) == 4 && p.Tensors[w.Value].Desc.Layout != "w:g" {
			t.Errorf("%s lives in %q, not as its gradient is written", w.Name, p.Tensors[w.Value].Desc.Layout)
		}
	}
	converts := map[string]int{}
	for _, s := range p.Steps {
		for i, in := range s.In {
			if s.Op.In[i].Layout != p.Tensors[in].Desc.Layout {
				t.Errorf("%s %q: input %d is %v, kernel wants %v", s.Op.Kind, s.Name, i, p.Tensors[in].Desc, s.Op.In[i])
			}
		}
		if s.Op.Kind == npu.Convert {
			converts[string(s.Op.In[0].Layout)+">"+string(s.Op.Out[0].Layout)]++
		}
	}
	// 5 convolutions: weights for forward and for backward (the first block's two read x: no data gradient is wanted there, so 3);
	// the image once; around the pool, whose two-dimensional result this fake keeps blocked, two more.
	if converts["w:g>w:f"] != 5 || converts["w:g>w:b"] != 3 || converts[">blk"] > 3 {
		t.Errorf("conversions: %v", converts)
	}
}
