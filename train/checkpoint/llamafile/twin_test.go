package llamafile

import (
	"math"
	"testing"

	"github.com/gotrain/gotrain/graph/models/llama"
)

// twin is a Llama in plain Go and float64: no cache, no blocks, no optimisation. weights looks up Hugging Face's names.
type twin struct {
	cfg         llama.Config
	interleaved bool // rotate neighbours, for weights in Meta's order
	weight      func(name string) []float64
}

// logits are those of every position, [len(ids)][vocab].
func (t twin) logits(ids []int) [][]float64 {
	c := t.cfg
	x := make([][]float64, len(ids))
	embed := t.weight(embedName)
	for s, id := range ids {
		x[s] = append([]float64{}, embed[id*c.Dim:(id+1)*c.Dim]...)
	}
	for l := range c.Layers {
		w := func(name string) []float64 { return t.weight("model.layers." + string(rune('0'+l)) + "." + name) }
		n := t.norm(x, w("input_layernorm.weight"))
		q, k, v := linear(n, w("self_attn.q_proj.weight")), linear(n, w("self_attn.k_proj.weight")), linear(n, w("self_attn.v_proj.weight"))
		for s := range ids {
			t.rotate(q[s], s)
			t.rotate(k[s], s)
		}
		add(x, linear(t.attend(q, k, v), w("self_attn.o_proj.weight")))
		n = t.norm(x, w("post_attention_layernorm.weight"))
		g, u := linear(n, w("mlp.gate_proj.weight")), linear(n, w("mlp.up_proj.weight"))
		for s := range g {
			for i, a := range g[s] {
				g[s][i] = a / (1 + math.Exp(-a)) * u[s][i]
			}
		}
		add(x, linear(g, w("mlp.down_proj.weight")))
	}
	head := embed
	if !c.Tied {
		head = t.weight(headName)
	}
	return linear(t.norm(x, t.weight("model.norm.weight")), head)
}

func (t twin) norm(x [][]float64, w []float64) [][]float64 {
	out := make([][]float64, len(x))
	for s, row := range x {
		sum := 0.0
		for _, v := range row {
			sum += v * v
		}
		r := 1 / math.Sqrt(sum/float64(len(row))+t.cfg.NormEps)
		out[s] = make([]float64, len(row))
		for i, v := range row {
			out[s][i] = v * r * w[i]
		}
	}
	return out
}

func (t twin) rotate(x []float64, pos int) {
	d := t.cfg.Head()
	for h := 0; h < len(x); h += d {
		for i := range d / 2 {
			a, b := h+i, h+i+d/2
			if t.interleaved {
				a, b = h+2*i, h+2*i+1
			}
			sin, cos := math.Sincos(float64(pos) * math.Pow(t.cfg.Theta, -2*float64(i)/float64(d)))
			x[a], x[b] = x[a]*cos-x[b]*sin, x[a]*sin+x[b]*cos
		}
	}
}

func (t twin) attend(q, k, v [][]float64) [][]float64 {
	c, d := t.cfg, t.cfg.Head()
	out := make([][]float64, len(q))
	for s := range q {
		out[s] = make([]float64, c.Heads*d)
		for h := range c.Heads {
			kv := h / (c.Heads / c.KVHeads) * d
			p, sum := make([]float64, s+1), 0.0
			for j := range p {
				dot := 0.0
				for i := range d {
					dot += q[s][h*d+i] * k[j][kv+i]
				}
				p[j] = math.Exp(dot / math.Sqrt(float64(d)))
				sum += p[j]
			}
			for j := range p {
				for i := range d {
					out[s][h*d+i] += p[j] / sum * v[j][kv+i]
				}
			}
		}
	}
	return out
}

func linear(x [][]float64, w []float64) [][]float64 {
	out := make([][]float64, len(x))
	for s, row := range x {
		n := len(row)
		out[s] = make([]float64, len(w)/n)
		for o := range out[s] {
			for i, v := range row {
				out[s][o] += v * w[o*n+i]
			}
		}
	}
	return out
}

func add(x, y [][]float64) {
	for s := range x {
		for i := range x[s] {
			x[s][i] += y[s][i]
		}
	}
}

// of makes the twin of an open model.
func of(t testing.TB, m Model) twin {
	t.Helper()
	cache := map[string][]float64{}
	return twin{cfg: m.Config(), weight: func(name string) []float64 {
		if w, ok := cache[name]; ok {
			return w
		}
		for _, v := range read(t, m, name) {
			cache[name] = append(cache[name], float64(v))
		}
		return cache[name]
	}}
}

// read reads a whole parameter.
func read(t testing.TB, m Model, name string) []float32 {
	t.Helper()
	s, ok := m.Shape(name)
	if !ok {
		t.Fatalf("no parameter %s", name)
	}
	dst := make([]float32, count(s))
	must(t, m.Read(name, dst))
	return dst
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// worst is the largest difference between two tables.
func worst(a, b [][]float64) float64 {
	w := 0.0
	for s := range a {
		for i := range a[s] {
			w = max(w, math.Abs(a[s][i]-b[s][i]))
		}
	}
	return w
}
