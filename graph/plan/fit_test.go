package plan

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/gotrain/gotrain/npu"
)

// gated is a network of layers x + swiglu(norm(x)·g, norm(x)·u)·d, with its backward pass, as a Llama's feed-forward part is.
func gated(t *testing.T, layers int) *Graph {
	s := &sketch{t: t}
	rows, dim, hidden := 6, 8, 32
	x := s.value("x", Input, npu.D(npu.F32, rows, dim))
	type layer struct{ x, w, h, rstd, g, u, d, gate, up, y ID }
	var ls []layer
	tb, ta := npu.Attrs{"tb": true}, npu.Attrs{"ta": true, "out": "f32"}
	param := func(i int, name string, shape ...int) ID {
		return s.value(fmt.Sprintf("%d.%s", i, name), Param, npu.D(npu.F32, shape...))
	}
	for i := range layers {
		l := layer{x: x, w: param(i, "norm", dim), g: param(i, "gate", hidden, dim), u: param(i, "up", hidden, dim), d: param(i, "down", dim, hidden)}
		n := s.call(false, "norm", npu.RMSNorm, npu.Attrs{"eps": 1e-5}, x, l.w)
		l.h, l.rstd = n[0], n[1]
		l.gate, l.up = s.call(false, "gate", npu.MatMul, tb, l.h, l.g)[0], s.call(false, "up", npu.MatMul, tb, l.h, l.u)[0]
		l.y = s.call(false, "swiglu", npu.SwiGLU, nil, l.gate, l.up)[0]
		x = s.call(false, "sum", npu.Binary, npu.Attrs{"fn": "add"}, s.call(false, "down", npu.MatMul, tb, l.y, l.d)[0], x)[0]
		ls = append(ls, l)
	}
	s.g.Outputs = []Output{{"out", s.call(false, "loss", npu.Reduce, npu.Attrs{"fn": "sum", "axes": []int{0, 1}}, x)[0]}}
	grad := s.value("start", Input, npu.D(npu.F32, rows, dim)) // of the loss with respect to x
	for i := layers - 1; i >= 0; i-- {
		l := ls[i]
		dy := s.call(true, "down", npu.MatMul, nil, grad, l.d)[0]
		dd := s.call(true, "down", npu.MatMul, ta, grad, l.y)[0]
		o := s.call(true, "swiglu", npu.SwiGLUBwd, nil, dy, l.gate, l.up)
		dh := s.call(true, "sum", npu.Binary, npu.Attrs{"fn": "add"}, s.call(true, "gate", npu.MatMul, nil, o[0], l.g)[0],
			s.call(true, "up", npu.MatMul, nil, o[1], l.u)[0])[0]
		dg, du := s.call(true, "gate", npu.MatMul, ta, o[0], l.h)[0], s.call(true, "up", npu.MatMul, ta, o[1], l.h)[0]
		n := s.call(true, "norm", npu.RMSNormBwd, npu.Attrs{"eps": 1e-5}, dh, l.x, l.w, l.rstd)
		grad = s.call(true, "sum", npu.Binary, npu.Attrs{"fn": "add"}, n[0], grad)[0]
		s.g.Trained = append(s.g.Trained, Trained{l.w, n[1]}, Trained{l.g, dg}, Trained{l.u, du}, Trained{l.d, dd})
	}
	return &s.g
}

func noWork(npu.Op) (int64, error) { return 0, nil }

// made lists what is recomputed as layer and kind.
func made(f *Fitted) (out []string) {
	for _, m := range f.Made {
		out = append(out, m.Kind)
	}
	return out
}

// Every limit between what is kept without it and the least is met, with the fewest results made again, and with the same numbers bit by bit: in memory that
// is used as planned, fused or not, staged gradients or not.
func TestFitMeetsEveryLimit(t *testing.T) {
	g, dev := gated(t, 4), target(t)
	for _, o := range []Options{{}, {NoFuse: true}, {Accumulate: true}, {Compute: npu.BF16}} {
		p, err := Build(g, dev, o)
		if err != nil {
			t.Fatal(err)
		}
		want := execute(t, p)
		_, all, err := p.Fit(dev, p.Arena/2, noWork, nil)
		var small *TooSmall
		if err != nil && !errors.As(err, &small) {
			t.Fatal(err)
		}
		if all.Least >= p.Arena {
			t.Fatalf("%+v: nothing is cheap", o)
		}
		before := 0
		for limit := p.Arena; limit >= all.Least; limit -= (p.Arena - all.Least) / 7 {
			q, f, err := p.Fit(dev, limit, noWork, nil)
			if err != nil {
				t.Fatalf("%+v, limit %d of %d…%d: %v", o, limit, all.Least, p.Arena, err)
			}
			if q.Arena > limit || q.Arena != f.After || f.Before != p.Arena || len(f.Made) < before || (limit == p.Arena) != (len(f.Made) == 0) {
				t.Errorf("%+v, limit %d: %d bytes, %+v", o, limit, q.Arena, f)
			}
			before = len(f.Made)
			if len(q.Steps) != len(p.Steps)+len(f.Made) {
				t.Errorf("%d steps, without the limit %d, %v made again", len(q.Steps), len(p.Steps), made(f))
			}
			for name, w := range want {
				if got := execute(t, q)[name]; !slices.Equal(w, got) {
					t.Errorf("%+v, limit %d, %v made again: %s changes", o, limit, made(f), name)
				}
			}
			for i, w := range q.Weights {
				if v := p.Weights[i]; v.Name != w.Name || w.Ready < v.Ready {
					t.Errorf("the gradient of %s is ready after step %d, before it was %d", w.Name, w.Ready, v.Ready)
				}
			}
		}
		if n := len(made(all)); n != 0 { // of a limit that cannot be met
			t.Errorf("%d made again in spite of an error", n)
		}
	}
}

// A limit below the least is refused with all numbers; the plan is as it was.
func TestFitRefusesWhatCannotBe(t *testing.T) {
	dev := target(t)
	p, err := Build(gated(t, 3), dev, Options{})
	if err != nil {
		t.Fatal(err)
	}
	print, arena := p.Fingerprint(), p.Arena
	_, f, err := p.Fit(dev, 100, noWork, nil)
	var small *TooSmall
	if !errors.As(err, &small) || small.Most != 100 || small.Before != arena || small.Least != f.Least || f.Least >= arena {
		t.Fatalf("got %+v, %v", f, err)
	}
	if p.Fingerprint() != print || p.Arena != arena {
		t.Error("the plan was changed")
	}
	q, _, err := p.Fit(dev, f.Least, noWork, nil)
	if err != nil || q.Arena != f.Least {
		t.Errorf("the least cannot be had: %v", err)
	}
	if q.Fingerprint() == print {
		t.Error("equal fingerprints of different plans")
	}
	again, _, _ := p.Fit(dev, f.Least, noWork, nil)
	if again.Fingerprint() != q.Fingerprint() {
		t.Error("the choice is not a function of plan and limit")
	}
	fail := errors.New("no such kernel")
	if _, _, err := p.Fit(dev, f.Least, func(npu.Op) (int64, error) { return 0, fail }, nil); !errors.Is(err, fail) {
		t.Errorf("got %v", err)
	}
}

// Ranks agree on how much is made again: more than it takes here, also where it takes nothing, but never less.
func TestFitAgrees(t *testing.T) {
	dev := target(t)
	p, err := Build(gated(t, 4), dev, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var asked []int
	most := func(m int) func(int) (int, error) {
		return func(n int) (int, error) { asked = append(asked, n); return max(n, m), nil }
	}
	_, few, err := p.Fit(dev, p.Arena-1, noWork, nil)
	if err != nil {
		t.Fatal(err)
	}
	n := len(few.Made)
	q, f, err := p.Fit(dev, p.Arena-1, noWork, most(n+1))
	if err != nil || len(f.Made) != n+1 || f.After != q.Arena || len(q.Steps) != len(p.Steps)+n+1 {
		t.Errorf("%d made again, others need %d: %v", len(f.Made), n+1, err)
	}
	_, f, err = p.Fit(dev, p.Arena, noWork, most(2))
	if err != nil || len(f.Made) != 2 {
		t.Errorf("%d made again where nothing has to be, others need 2: %v", len(f.Made), err)
	}
	if _, f, err = p.Fit(dev, p.Arena-1, noWork, most(0)); err != nil || len(f.Made) != n {
		t.Errorf("%d made again, others need none: %v", len(f.Made), err)
	}
	if want := []int{n, 0, n}; !slices.Equal(asked, want) {
		t.Errorf("told the others %v, want %v", asked, want)
	}
	fail := errors.New("a rank is gone")
	if _, _, err := p.Fit(dev, p.Arena, noWork, func(int) (int, error) { return 0, fail }); !errors.Is(err, fail) {
		t.Errorf("got %v", err)
	}
}

// The workspace of a kernel shares the arena: one that runs while little else is alive costs nothing, and Live is the bound.
func TestWorkspacesLieInTheArena(t *testing.T) {
	p, err := Build(gated(t, 4), target(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	before := p.Arena
	p.Steps[0].Work = before / 2 // nothing else is alive but the first result
	p.Place()
	if p.Arena > before || p.Live > p.Arena || p.Steps[0].WorkAt+before/2 > p.Arena {
		t.Errorf("the arena grows from %d to %d, of which %d live", before, p.Arena, p.Live)
	}
	for _, id := range p.Steps[0].Out {
		if x := p.Tensors[id]; id != None && x.Place == Arena && x.Offset < p.Steps[0].WorkAt+before/2 && p.Steps[0].WorkAt < x.Offset+x.Bytes {
			t.Error("a workspace overlaps a result of its kernel")
		}
	}
	p.Steps[0].Work = 0
	p.Place()
	if p.Arena != before {
		t.Errorf("placed again: %d bytes, were %d", p.Arena, before)
	}
	if float64(p.Arena) > 1.05*float64(p.Live) {
		t.Errorf("%d bytes for %d", p.Arena, p.Live)
	}
}

// What is made again when its reader comes reads values that are still there by then: states and lost inputs do not qualify.
func TestAgainLeavesOutWhatItCannot(t *testing.T) {
	dev := target(t)
	p, err := Build(residual(t, 2), dev, Options{}) // batch norms update a state; their fused ReLU has lost its input
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range p.again(dev) {
		if c.Kind == npu.BatchNorm || c.Kind == npu.Conv2D || c.Kind == npu.Relu {
			t.Errorf("%s of %q cannot be made again", c.Kind, c.Name)
		}
	}
}
