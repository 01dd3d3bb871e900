package ref

import (
	"math"

	"github.com/gotrain/gotrain/npu"
)

var attentionKinds = map[string]body{
	npu.Attention:       runAttention,
	npu.AttentionBwd:    runAttentionBwd,
	npu.AttentionCached: runAttentionCached,
}

// heads are q, k, v of one attention, and the rule for which query sees which key.
type heads struct {
	b, s, t, h, g, d int
	q, k, v          []float64
	scale            float64
	sees             func(b, h, s, t int) bool
}

// heads reads them from inputs q, q+1, q+2.
func (c *call) heads(q int) heads {
	x, k := c.op.In[q].Shape, c.op.In[q+1].Shape
	return heads{b: x[0], s: x[1], t: k[1], h: x[2], g: k[2], d: x[3],
		q: c.in(q), k: c.in(q + 1), v: c.in(q + 2), scale: c.op.Attrs.Float("scale", 0)}
}

// seen is the rule of causal, seg, keys and mask, which are the inputs from next on.
func (c *call) seen(a heads, next int) func(b, h, s, t int) bool {
	take := func(attr string) (at int, there bool) {
		if at = next; c.op.Attrs.Bool(attr) {
			next++
		}
		return at, c.op.Attrs.Bool(attr)
	}
	value := func(in, i int) int64 { return loadInt(c.rawIn(in), i, npu.I32) }
	causal := c.op.Attrs.Bool("causal")
	seg, packed := take("seg")
	keys, padded := take("keys")
	mask, masked := take("mask")
	var perBatch, perHead int // steps of the mask
	if masked {
		m := c.op.In[mask].Shape
		if m[1] > 1 {
			perHead = a.s * a.t
		}
		if m[0] > 1 {
			perBatch = m[1] * a.s * a.t
		}
	}
	return func(b, h, s, t int) bool {
		return (!causal || t <= s+a.t-a.s) && (!packed || value(seg, b*a.s+s) == value(seg, b*a.s+t)) &&
			(!padded || value(keys, b*a.t+t) != 0) && (!masked || value(mask, b*perBatch+h*perHead+s*a.t+t) != 0)
	}
}

// query and key return where head h of a query, and the key head that it reads, begin.
func (a heads) query(b, s, h int) int { return ((b*a.s+s)*a.h + h) * a.d }

func (a heads) key(b, t, h int) int { return ((b*a.t+t)*a.g + h/(a.h/a.g)) * a.d }

// scores fills row with the scores of a query, -Inf where it does not see the key.
func (a heads) scores(row []float64, b, s, h int) {
	q := a.q[a.query(b, s, h):][:a.d]
	for t := range row {
		row[t] = math.Inf(-1)
		if a.sees(b, h, s, t) {
			row[t] = a.scale * dot(q, a.k[a.key(b, t, h):][:a.d])
		}
	}
}

func dot(x, y []float64) float64 {
	sum := 0.0
	for i, v := range x {
		sum += v * y[i]
	}
	return sum
}

// attend is the forward pass. A query that sees nothing keeps the initial zeros of o.
func (c *call) attend(a heads, o, lse []float64) {
	c.parallel(a.b*a.h, func(i int) {
		b, h, row := i/a.h, i%a.h, make([]float64, a.t)
		for s := range a.s {
			a.scores(row, b, s, h)
			l := logSumExp(row)
			if lse[i*a.s+s] = l; math.IsInf(l, -1) {
				continue
			}
			out := o[a.query(b, s, h):][:a.d]
			for t, score := range row {
				if math.IsInf(score, -1) {
					continue
				}
				p := math.Exp(score - l)
				for j, v := range a.v[a.key(b, t, h):][:a.d] {
					out[j] += p * v
				}
			}
		}
	})
}

func runAttention(c *call) error {
	a := c.heads(0)
	a.sees = c.seen(a, 3)
	c.attend(a, c.out(0), c.optOut(1, a.b*a.h*a.s))
	return nil
}

func runAttentionCached(c *call) error {
	a := c.heads(0)
	pos := c.rawIn(3)
	a.sees = func(b, _, s, t int) bool { return int64(t) <= loadInt(pos, b*a.s+s, npu.I32) }
	c.attend(a, c.out(0), c.scratch(a.b*a.h*a.s))
	return nil
}

// runAttentionBwd iterates over key heads, whose gradients are sums over all the query heads that read them. With p the probabilities:
// dv = Σ p·do, ds = p·(do·v - do·o)·scale, dq = Σ ds·k, dk = Σ ds·q.
func runAttentionBwd(c *call) error {
	a := c.heads(1)
	a.sees = c.seen(a, 6)
	do, o, lse := c.in(0), c.in(4), c.in(5)
	dq, dk, dv := c.out(0), c.optOut(1, len(a.k)), c.optOut(2, len(a.v))
	c.parallel(a.b*a.g, func(i int) {
		b, g, per, row := i/a.g, i%a.g, a.h/a.g, make([]float64, a.t)
		for h := g * per; h < (g+1)*per; h++ {
			for s := range a.s {
				a.scores(row, b, s, h)
				qi, l := a.query(b, s, h), lse[(b*a.h+h)*a.s+s]
				gr := do[qi:][:a.d]
				delta := dot(gr, o[qi:][:a.d])
				for t, score := range row {
					if math.IsInf(score, -1) {
						continue
					}
					ki, p := a.key(b, t, h), math.Exp(score-l)
					ds := p * (dot(gr, a.v[ki:][:a.d]) - delta) * a.scale
					for j := range a.d {
						dv[ki+j] += p * gr[j]
						dq[qi+j] += ds * a.k[ki+j]
						dk[ki+j] += ds * a.q[qi+j]
					}
				}
			}
		}
	})
	return nil
}
