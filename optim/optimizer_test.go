package optim

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/npu"
	_ "github.com/gotrain/gotrain/npu/ref"
)

// bench is a device with one stream and vectors on it.
type bench struct {
	t   testing.TB
	dev npu.Device
	s   npu.Stream
}

func newBench(t testing.TB) *bench { t.Helper(); return benchOn(t, "ref") }

func benchOn(t testing.TB, family string) *bench {
	t.Helper()
	dev, err := npu.Open(family, npu.Options{Threads: 1})
	if err != nil && family == "cpu" {
		t.Skip(err) // a build without cgo
	}
	must(t, err)
	s, err := dev.NewStream("test")
	must(t, err)
	t.Cleanup(func() { s.Close(); dev.Close() })
	return &bench{t, dev, s}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (b *bench) alloc(n int) npu.Ptr {
	buf, err := b.dev.Alloc(int64(4 * n))
	must(b.t, err)
	return npu.Ptr{Buf: buf}
}

func (b *bench) put(p npu.Ptr, x []float64) {
	raw := make([]byte, 4*len(x))
	for i, v := range x {
		binary.NativeEndian.PutUint32(raw[4*i:], math.Float32bits(float32(v)))
	}
	must(b.t, b.s.CopyIn(p, raw))
	b.sync()
}

func (b *bench) get(p npu.Ptr, n int) []float64 {
	raw := make([]byte, 4*n)
	must(b.t, b.s.CopyOut(raw, p))
	b.sync()
	out := make([]float64, n)
	for i := range out {
		out[i] = float64(math.Float32frombits(binary.NativeEndian.Uint32(raw[4*i:])))
	}
	return out
}

func (b *bench) sync() {
	b.t.Helper()
	must(b.t, b.s.Sync(context.Background()))
}

// param is one tensor of the twin: the rules as PyTorch's documentation writes them, one number at a time.
type param struct {
	group   Group
	w, m, v []float64
}

func (p *param) step(c Config, t int, lr float64, g []float64) {
	lr *= p.group.LRMult
	wd := p.group.WeightDecay
	local := 1.0
	if c.Rule == LARS {
		var nw, ng float64
		for i := range g {
			nw += p.w[i] * p.w[i]
			ng += g[i] * g[i]
		}
		nw, ng = math.Sqrt(nw), math.Sqrt(ng)
		if p.group.NoAdapt {
			wd = 0
		} else if nw > 0 && ng > 0 {
			local = c.Trust * nw / (ng + wd*nw + c.Eps)
		}
	}
	for i := range g {
		w, d := &p.w[i], g[i]
		switch c.Rule {
		case SGD:
			if c.Decoupled {
				*w -= lr * wd * *w
			} else {
				d += wd * *w
			}
			if c.Momentum != 0 {
				if t == 1 {
					p.m[i] = d
				} else {
					p.m[i] = c.Momentum*p.m[i] + (1-c.Dampening)*d
				}
				if c.Nesterov {
					d += c.Momentum * p.m[i]
				} else {
					d = p.m[i]
				}
			}
			*w -= lr * d
		case AdamW, Adam:
			if c.Rule == Adam {
				d += wd * *w
			} else {
				*w -= lr * wd * *w
			}
			p.m[i] = c.Beta1*p.m[i] + (1-c.Beta1)*d
			p.v[i] = c.Beta2*p.v[i] + (1-c.Beta2)*d*d
			mh := p.m[i] / (1 - math.Pow(c.Beta1, float64(t)))
			vh := p.v[i] / (1 - math.Pow(c.Beta2, float64(t)))
			*w -= lr * mh / (math.Sqrt(vh) + c.Eps)
		case LAMB: // the step of each element is scaled below
			p.m[i] = c.Beta1*p.m[i] + (1-c.Beta1)*d
			p.v[i] = c.Beta2*p.v[i] + (1-c.Beta2)*d*d
		case LARS:
			d = local * lr * (d + wd**w)
			p.m[i] = c.Momentum*p.m[i] + d
			if c.Nesterov {
				*w -= d + c.Momentum*p.m[i]
			} else {
				*w -= p.m[i]
			}
		}
	}
}

// lamb takes the step, once the moments are updated.
func (p *param) lamb(c Config, t int, lr float64) {
	lr *= p.group.LRMult
	u, nw, nu := make([]float64, len(p.w)), 0.0, 0.0
	for i := range u {
		mh := p.m[i] / (1 - math.Pow(c.Beta1, float64(t)))
		vh := p.v[i] / (1 - math.Pow(c.Beta2, float64(t)))
		u[i] = mh/(math.Sqrt(vh)+c.Eps) + p.group.WeightDecay*p.w[i]
		nw, nu = nw+p.w[i]*p.w[i], nu+u[i]*u[i]
	}
	trust := 1.0
	if (p.group.WeightDecay != 0 && !p.group.NoAdapt || c.AlwaysAdapt) && nw > 0 && nu > 0 {
		trust = math.Sqrt(nw / nu)
	}
	if c.TrustClip {
		trust = min(trust, 1)
	}
	for i := range u {
		p.w[i] -= lr * trust * u[i]
	}
}

func variants() map[string]Config {
	out := map[string]Config{}
	add := func(name, rule string, change func(*Config)) {
		c := Default(rule, 0.01)
		c.Groups = append(c.Groups, Group{Name: "slow", LRMult: 0.1, WeightDecay: 0.02})
		change(&c)
		out[name] = c
	}
	add("sgd plain", SGD, func(c *Config) { c.Momentum = 0 })
	add("sgd", SGD, func(c *Config) {})
	add("sgd nesterov", SGD, func(c *Config) { c.Nesterov = true })
	add("sgd dampening", SGD, func(c *Config) { c.Dampening = 0.3 })
	add("sgd decoupled", SGD, func(c *Config) { c.Decoupled = true })
	add("adamw", AdamW, func(c *Config) {})
	add("adam", Adam, func(c *Config) { c.Beta1 = 0.8 })
	add("lars", LARS, func(c *Config) {})
	add("lamb", LAMB, func(c *Config) {})
	add("lamb clip", LAMB, func(c *Config) { c.TrustClip, c.AlwaysAdapt = true, true })
	add("lars nesterov", LARS, func(c *Config) { c.Nesterov = true })
	return out
}

// layout: two segments, groups mixed, with padding between tensors.
func layout(b *bench) ([]Segment, [][]Tensor) {
	lists := [][]Tensor{
		{{"a.w", 0, 37, Decay}, {"a.g", 48, 5, NoDecay}, {"a.b", 53, 5, NoDecay}, {"b.w", 64, 20, Decay}, {"c.w", 84, 9, Decay}},
		{{"d.w", 0, 16, 2}},
	}
	var segs []Segment
	for i, l := range lists {
		last := l[len(l)-1]
		n := int(last.Off+last.Elems) + 3
		segs = append(segs, Segment{Name: fmt.Sprintf("bucket %d", i), Weight: b.alloc(n), Grad: b.alloc(n), Elems: int64(n), Tensors: l})
	}
	return segs, lists
}

func TestRulesEqualTwin(t *testing.T) {
	const gradScale = 0.125
	for name, cfg := range variants() {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			rng := rand.New(rand.NewPCG(7, 11))
			segs, lists := layout(b)
			twins := map[string]*param{}
			for i, l := range lists {
				for _, ten := range l {
					p := &param{cfg.Groups[ten.Group], make([]float64, ten.Elems), make([]float64, ten.Elems), make([]float64, ten.Elems)}
					for j := range p.w {
						p.w[j] = float64(float32(rng.NormFloat64()))
					}
					twins[ten.Name] = p
					b.put(segs[i].Weight.At(4*ten.Off), p.w)
				}
			}
			opt, err := New(b.dev, cfg, segs)
			must(t, err)
			defer opt.Close()
			for step := 1; step <= 12; step++ {
				lr := 0.05 / float64(step)
				grads := map[string][]float64{}
				for i, l := range lists {
					for _, ten := range l {
						g := make([]float64, ten.Elems)
						for j := range g {
							g[j] = float64(float32(rng.NormFloat64()))
						}
						b.put(segs[i].Grad.At(4*ten.Off), g)
						for j := range g {
							g[j] *= gradScale
						}
						grads[ten.Name] = g
					}
				}
				must(t, opt.Begin(b.s, lr, gradScale))
				must(t, opt.Step(b.s))
				b.sync()
				for n, g := range grads {
					twins[n].step(cfg, step, lr, g)
					if cfg.Rule == LAMB {
						twins[n].lamb(cfg, step, lr)
					}
				}
			}
			// f32 storage rounds weights and state to 2^-24 of themselves in each of 12 steps; Adam's division by a small root
			// magnifies that by up to 10: 12 · 2^-24 · 10 ≈ 7e-6.
			const bound = 1e-5
			for i, l := range lists {
				all := b.get(segs[i].Weight, int(segs[i].Elems))
				for _, ten := range l {
					got := all[ten.Off : ten.Off+ten.Elems]
					for j, want := range twins[ten.Name].w {
						if math.Abs(got[j]-want) > bound*(1+math.Abs(want)) {
							t.Fatalf("%s[%d] is %g, twin %g", ten.Name, j, got[j], want)
						}
					}
					clear(got)
				}
				for j, v := range all {
					if v != 0 {
						t.Fatalf("padding of %s moved: element %d is %g", segs[i].Name, j, v)
					}
				}
			}
		})
	}
}

func TestMeasure(t *testing.T) {
	b := newBench(t)
	segs, _ := layout(b)
	opt, err := New(b.dev, Default(AdamW, 0), segs[:1])
	must(t, err)
	g := make([]float64, segs[0].Elems)
	g[0], g[50], g[90] = 3e20, 4e20, 0 // squares beyond float32
	b.put(segs[0].Grad, g)
	for range 2 { // the second pass must not add to the first
		must(t, opt.Measure(b.s))
		b.sync()
		if got := opt.Norm().L2(1e-10); math.Abs(got-5e10) > 5e10*1e-7 {
			t.Fatalf("norm %g, want 5e10", got)
		}
	}
	g[7], g[8] = math.Inf(1), math.NaN()
	b.put(segs[0].Grad, g)
	must(t, opt.Measure(b.s))
	b.sync()
	if n := opt.Norm(); n.NonFinite != 2 || !math.IsNaN(n.L2(1)) {
		t.Fatalf("got %+v, want 2 non-finite elements and a norm of NaN", n)
	}
}

func TestClipCoef(t *testing.T) {
	for _, c := range []struct{ norm, limit, want float64 }{
		{10, 0, 1}, {0.5, 1, 1}, {0, 1, 1}, {4, 1, 1 / 4.000001},
	} {
		if got := ClipCoef(c.norm, c.limit); math.Abs(got-c.want) > 1e-15 {
			t.Errorf("ClipCoef(%g, %g) = %g, want %g", c.norm, c.limit, got, c.want)
		}
	}
}

// A run that is cut in the middle and continued from state must equal one that is not, bit for bit.
func TestResumeIsExact(t *testing.T) {
	for name, cfg := range variants() {
		run := func(b *bench, segs []Segment, opt *Optimizer, from, to int) *Optimizer {
			for step := from; step < to; step++ {
				for _, s := range segs {
					g := make([]float64, s.Elems)
					for _, ten := range s.Tensors {
						for j := range ten.Elems {
							g[ten.Off+j] = math.Sin(float64(step) + float64(j))
						}
					}
					b.put(s.Grad, g)
				}
				must(t, opt.Begin(b.s, 0.01, 1))
				must(t, opt.Step(b.s))
			}
			b.sync()
			return opt
		}
		b := newBench(t)
		straight, _ := layout(b)
		one, err := New(b.dev, cfg, straight)
		must(t, err)
		run(b, straight, one, 0, 8)

		cut, _ := layout(b)
		first, err := New(b.dev, cfg, cut)
		must(t, err)
		run(b, cut, first, 0, 3)
		saved := map[string][]float64{}
		for _, st := range first.State() {
			saved[st.Name()] = b.get(st.Ptr, int(st.Elems))
		}
		second, err := New(b.dev, cfg, cut)
		must(t, err)
		for _, st := range second.State() {
			b.put(st.Ptr, saved[st.Name()])
		}
		second.SetCount(first.Count())
		must(t, first.Close())
		run(b, cut, second, 3, 8)
		for i := range straight {
			x, y := b.get(straight[i].Weight, int(straight[i].Elems)), b.get(cut[i].Weight, int(cut[i].Elems))
			for j := range x {
				if x[j] != y[j] {
					t.Fatalf("%s: %s[%d]: %g without interruption, %g with", name, straight[i].Name, j, x[j], y[j])
				}
			}
		}
	}
}

func TestStateNames(t *testing.T) {
	b := newBench(t)
	segs, _ := layout(b)
	cfg := variants()["adamw"]
	opt, err := New(b.dev, cfg, segs)
	must(t, err)
	var names []string
	for _, st := range opt.State() {
		names = append(names, st.Name())
	}
	want := "exp_avg/a.w exp_avg/a.g exp_avg/a.b exp_avg/b.w exp_avg/c.w exp_avg_sq/a.w exp_avg_sq/a.g exp_avg_sq/a.b exp_avg_sq/b.w exp_avg_sq/c.w " +
		"exp_avg/d.w exp_avg_sq/d.w"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("state is\n%s, want\n%s", got, want)
	}
	if got, want := opt.Bytes(), 2*4*(segs[0].Elems+segs[1].Elems); got != want {
		t.Errorf("state takes %d bytes, want %d", got, want)
	}
}

func TestRunsJoinNeighbours(t *testing.T) {
	b := newBench(t)
	segs, _ := layout(b)
	groups := variants()["lars"].Groups
	if got, want := fmt.Sprint(segs[0].runs(func(int) bool { return false })), "[{0 37 0} {48 10 1} {64 29 0}]"; got != want {
		t.Errorf("runs are %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(segs[0].runs(func(g int) bool { return !groups[g].NoAdapt })), "[{0 37 0} {48 10 1} {64 20 0} {84 9 0}]"; got != want {
		t.Errorf("adaptive runs are %s, want %s", got, want)
	}
}

func TestStepAllocatesNothing(t *testing.T) {
	b := newBench(t)
	segs, _ := layout(b)
	opt, err := New(b.dev, variants()["lars"], segs)
	must(t, err)
	// A stream that only takes: what ref does behind its queue is not the optimizer's.
	s := &sink{}
	n := testing.AllocsPerRun(100, func() {
		must(t, opt.Begin(s, 0.1, 1))
		must(t, opt.Measure(s))
		must(t, opt.Step(s))
	})
	if n != 0 {
		t.Errorf("a step makes %g allocations, want none", n)
	}
	if s.runs != 101*(2+2) {
		t.Errorf("%d batches went to the stream, want %d", s.runs, 101*4)
	}
}

type sink struct {
	npu.Stream
	runs int
}

func (s *sink) Run([]npu.Launch) error         { s.runs++; return nil }
func (s *sink) CopyIn(npu.Ptr, []byte) error   { return nil }
func (s *sink) CopyOut([]byte, npu.Ptr) error  { return nil }
func (s *sink) Record(npu.Event) error         { return nil }
func (s *sink) Sync(ctx context.Context) error { return nil }
func (s *sink) Name() string                   { return "sink" }

func TestFaultsAreNamedAllAtOnce(t *testing.T) {
	b := newBench(t)
	w := b.alloc(8)
	cfg := Config{Rule: SGD, Momentum: 1.5, Nesterov: true, Dampening: 0.1, Groups: []Group{{Name: "x", LRMult: 1, WeightDecay: -1}}}
	_, err := New(b.dev, cfg, []Segment{
		{Name: "s", Weight: w, Elems: 9, Tensors: []Tensor{{"a", 0, 5, 0}, {"a", 4, 9, 3}}},
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"momentum must lie in 0…1", "nesterov requires momentum and no dampening", "weight decay must not be negative",
		"no gradient memory", "reaches beyond its buffer", "overlaps its predecessor", "names group 3 of 1", "duplicate tensor a",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not say %q:\n%v", want, err)
		}
	}
	if err := (Config{Rule: "sdg", Groups: DefaultGroups(0)}).Validate(); err == nil || !strings.Contains(err.Error(), `unknown rule "sdg"`) {
		t.Errorf("unknown rule gives %v", err)
	}
	opt, err := New(b.dev, Default(SGD, 0), []Segment{{Name: "s", Weight: w, Grad: b.alloc(8), Elems: 8}})
	must(t, err)
	if err := opt.Begin(b.s, math.NaN(), 1); err == nil || opt.Count() != 0 {
		t.Errorf("a learning rate of NaN gives %v and count %d", err, opt.Count())
	}
	must(t, opt.Close())
	must(t, opt.Close())
}
