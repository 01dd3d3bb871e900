package plan

import (
	"math"
	"slices"
	"testing"

	"github.com/gotrain/gotrain/npu"
)

// normed is conv, normalisation and relu of a picture; change makes it a harder case.
func normed(t *testing.T, bias bool, change func(s *sketch, x, w, y ID)) *Graph {
	s := &sketch{t: t}
	x := s.value("x", Input, npu.D(npu.F32, 2, 3, 5, 5))
	w := s.value("w", Param, npu.D(npu.F32, 4, 3, 3, 3))
	vec := func(name string, r Role) ID { return s.value(name, r, npu.D(npu.F32, 4)) }
	a := npu.Attrs{"stride": []int{1, 1}, "pad": []int{1, 1, 1, 1}, "dilation": []int{1, 1}, "groups": 1, "bias": bias}
	in := []ID{x, w}
	if bias {
		in = append(in, vec("b", Param))
	}
	y := s.call(false, "conv", npu.Conv2D, a, in...)[0]
	z := s.call(false, "bn", npu.BatchNormInfer, npu.Attrs{"eps": 1e-3}, y, vec("gamma", Param), vec("beta", Param), vec("mean", State), vec("var", State))[0]
	z = s.call(false, "relu", npu.Relu, npu.Attrs{}, z)[0]
	s.g.Outputs = []Output{{"z", z}}
	if change != nil {
		change(s, x, w, y)
	}
	return &s.g
}

func TestFold(t *testing.T) {
	for _, bias := range []bool{false, true} {
		p, err := Build(normed(t, bias, nil), fake{}, Options{Fold: true})
		if err != nil {
			t.Fatal(err)
		}
		want := Fold{Weight: "w", Beta: "beta", Gamma: "gamma", Mean: "mean", Var: "var", Eps: 1e-3}
		if bias {
			want.Bias = "b"
		}
		var conv *npu.Op
		for i := range p.Steps {
			switch op := &p.Steps[i].Op; op.Kind {
			case npu.Conv2D:
				conv = op
				if name := p.Tensors[p.Steps[i].In[2]].Name; name != "beta" {
					t.Errorf("the bias is %s", name)
				}
			case npu.BatchNormInfer, npu.Relu:
				t.Errorf("%s is left", op)
			}
		}
		if !slices.Equal(p.Folds, []Fold{want}) || conv == nil || !conv.Attrs.Bool("bias") || !conv.Attrs.Bool("relu") {
			t.Errorf("bias %v: %+v, %v", bias, p.Folds, conv)
		}
	}
}

// What something else reads stays as it is, and so does what the target cannot compute.
func TestFoldLeavesAlone(t *testing.T) {
	conv := npu.Attrs{"stride": []int{1, 1}, "pad": []int{1, 1, 1, 1}, "dilation": []int{1, 1}, "groups": 1}
	read := func(s *sketch, v ID) {
		s.g.Outputs = append(s.g.Outputs, Output{"more", s.call(false, "more", npu.Relu, npu.Attrs{}, v)[0]})
	}
	for name, change := range map[string]func(s *sketch, x, w, y ID){
		"the result of the convolution": func(s *sketch, _, _, y ID) { read(s, y) },
		"an output":                     func(s *sketch, _, _, y ID) { s.g.Outputs = append(s.g.Outputs, Output{"more", y}) },
		"the weights":                   func(s *sketch, x, w, _ ID) { read(s, s.call(false, "twin", npu.Conv2D, conv, x, w)[0]) },
	} {
		p, err := Build(normed(t, false, change), fake{}, Options{Fold: true})
		if err != nil || len(p.Folds) != 0 {
			t.Errorf("%s: %+v, %v", name, p.Folds, err)
		}
	}
	if p, err := Build(normed(t, false, nil), fake{lacks: []string{npu.Conv2D + "+bias"}}, Options{Fold: true}); err != nil || len(p.Folds) != 0 {
		t.Errorf("no bias: %+v, %v", p.Folds, err)
	}
	if p, err := Build(normed(t, false, nil), fake{}, Options{}); err != nil || len(p.Folds) != 0 {
		t.Errorf("not asked for: %+v, %v", p.Folds, err)
	}
}

// Apply is the normalisation of the convolution's result, to the rounding of its own results.
func TestFoldApply(t *testing.T) {
	f := Fold{Weight: "w", Beta: "beta", Eps: 1e-3}
	w, bias := []float32{1, -2, 3, 0.5, 0.25, 7}, []float32{0.1, -0.7}
	gamma, beta, mean, variance := []float32{0.9, -1.1}, []float32{0.3, 0.2}, []float32{5, -6}, []float32{0.01, 40}
	x := []float64{0.7, -1.3, 0.2}
	for _, b := range [][]float32{nil, bias} {
		w2, beta2 := slices.Clone(w), slices.Clone(beta)
		if err := f.Apply(w2, b, gamma, beta2, mean, variance); err != nil {
			t.Fatal(err)
		}
		for o := range 2 {
			was, got, size := 0.0, float64(beta2[o]), math.Abs(float64(beta2[o]))
			if b != nil {
				was = float64(b[o])
			}
			for i, v := range x {
				was += v * float64(w[3*o+i])
				got += v * float64(w2[3*o+i])
				size += math.Abs(v * float64(w2[3*o+i]))
			}
			want := float64(gamma[o])*(was-float64(mean[o]))/math.Sqrt(float64(variance[o])+1e-3) + float64(beta[o])
			if math.Abs(got-want) > size*0x1p-24 { // one rounding of each of the numbers
				t.Errorf("channel %d: %v, want %v", o, got, want)
			}
		}
	}
	if err := f.Apply(w, nil, gamma, beta[:1], mean, variance); err == nil {
		t.Error("channels of different numbers")
	}
}
