package op

import "github.com/gotrain/gotrain/npu"

func init() {
	Register(&Kind{
		Name: npu.Rope, Infer: inferRope, Grad: gradRope, FLOPs: perElem(3),
		DiffWRT: func(_ npu.Attrs, n int) []bool { return append([]bool{true}, make([]bool, n-1)...) },
		In:      []Class{Act, Keep}, Out: []Class{Act}, InPlace: [][2]int{{0, 0}},
	})
	Register(&Kind{
		Name: npu.Attention, Infer: inferAttention, Grad: gradAttention, FLOPs: attentionFLOPs(2),
		DiffWRT: func(_ npu.Attrs, n int) []bool { return append([]bool{true, true, true}, make([]bool, n-3)...) },
		In:      []Class{Act, Act, Act, Keep}, Out: []Class{Act, Full},
	})
	Register(&Kind{
		Name: npu.AttentionBwd, Infer: inferAttentionBwd, FLOPs: attentionFLOPs(5),
		In: []Class{Act, Act, Act, Act, Act, Full, Keep}, Out: []Class{Act},
	})
	Register(&Kind{
		Name: npu.AttentionCached, Infer: inferAttentionCached, FLOPs: func(o npu.Op) int64 {
			q, k := o.In[0].Shape, o.In[1].Shape
			return 4 * q.Elems() * int64(k[1])
		},
		In: []Class{Act, Keep}, Out: []Class{Act},
	})
	Register(&Kind{
		Name: npu.CacheWrite, Infer: inferCacheWrite, FLOPs: noFLOPs,
		In: []Class{Full, Keep, Keep}, Out: []Class{Full}, State: map[int]int{0: 0},
	})
}

func inferRope(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	names := "x"
	if a.Bool("pos") {
		names += " pos"
	}
	c := check(a, in, names, "theta:f pairs:s inverse:b pos:b factor:f low:f high:f original:i")
	c.rank(0, "x", 4)
	c.float(0, "x")
	if !c.ok() {
		return nil, c.err
	}
	x := in[0].Shape
	if x[3]%2 != 0 {
		c.failf("x %v has heads of odd width; pairs are turned", x)
	}
	if p := a.Str("pairs"); p != "half" && p != "adjacent" {
		c.failf("attribute pairs is %q, want half or adjacent", p)
	}
	if th := a.Float("theta", 0); !(th > 0) {
		c.failf("attribute theta is %g, must be above 0", th)
	}
	if a.Float("factor", 0) > 1 && !(a.Float("low", 0) > 0 && a.Float("high", 0) > a.Float("low", 0) && a.Int("original", 0) > 0) {
		c.failf(
			"scaling wants 0 < low < high and the original context, got low %g, high %g, original %d",
			a.Float("low", 0),
			a.Float("high", 0),
			a.Int("original", 0),
		)
	}
	if a.Bool("pos") {
		c.typed(1, "pos", npu.I32, x[0], x[1])
	}
	return c.done(in[0])
}

func gradRope(t Tape, c Call) ([]Ref, error) {
	r := &rule{t: t}
	a := c.Attrs.Clone()
	a["inverse"] = !a.Bool("inverse")
	g := make([]Ref, len(c.In))
	g[0] = r.do(npu.Rope, a, append([]Ref{c.DOut}, c.In[1:]...)...)
	return r.done(g...)
}

// heads checks q [B S H D] against k and v [B T G D].
func (c *checker) heads(q, k, v int) {
	for i, name := range map[int]string{q: "q", k: "k", v: "v"} {
		c.rank(i, name, 4)
		c.float(i, name)
	}
	if !c.ok() {
		return
	}
	qs, ks := c.in[q].Shape, c.in[k].Shape
	c.like(v, k, "v", "k")
	if c.ok() && (qs[0] != ks[0] || qs[3] != ks[3] || qs[2]%ks[2] != 0) {
		c.failf("q %v and k %v want [B S H D] and [B T G D] with G a divisor of H", qs, ks)
	}
}

// attended checks the attributes of attention, and the segments at input i.
func (c *checker) attended(q, k, seg int) {
	if !c.ok() {
		return
	}
	qs, ks := c.in[q].Shape, c.in[k].Shape
	if c.in[q].DType != c.in[k].DType {
		c.failf("q is %s, k is %s; both must be of one type", c.in[q].DType, c.in[k].DType)
	}
	if c.a.Bool("causal") && ks[1] < qs[1] {
		c.failf("causal: %d keys for %d queries", ks[1], qs[1])
	}
	if s := c.a.Float("scale", 0); !(s > 0) {
		c.failf("attribute scale is %g, must be above 0", s)
	}
	if c.a.Bool("seg") {
		if qs[1] != ks[1] {
			c.failf("segments want as many keys as queries, got %d and %d", ks[1], qs[1])
		}
		c.typed(seg, "seg", npu.I32, qs[0], qs[1])
	}
}

func inferAttention(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	names := "q k v"
	if a.Bool("seg") {
		names += " seg"
	}
	c := check(a, in, names, "scale:f causal:b seg:b")
	c.heads(0, 1, 2)
	c.attended(0, 1, 3)
	if !c.ok() {
		return nil, c.err
	}
	q := in[0].Shape
	return c.done(in[0], npu.D(fullType(in[0].DType), q[0], q[2], q[1]))
}

func gradAttention(t Tape, c Call) ([]Ref, error) {
	r := &rule{t: t}
	in := append([]Ref{c.DOut, c.In[0], c.In[1], c.In[2], c.Out[0], c.Out[1]}, c.In[3:]...)
	d := r.many(npu.AttentionBwd, c.Attrs, in...)
	return r.done(append(d[:3:3], make([]Ref, len(c.In)-3)...)...)
}

func inferAttentionBwd(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	names := "do q k v o lse"
	if a.Bool("seg") {
		names += " seg"
	}
	c := check(a, in, names, "scale:f causal:b seg:b")
	c.heads(1, 2, 3)
	c.attended(1, 2, 6)
	c.like(0, 1, "do", "q")
	c.like(4, 1, "o", "q")
	if !c.ok() {
		return nil, c.err
	}
	q := in[1].Shape
	c.full(5, "lse", q[0], q[2], q[1])
	return c.done(in[1], in[2], in[3])
}

// attentionFLOPs counts products of S×T×D, of which a causal one does half.
func attentionFLOPs(products int64) func(npu.Op) int64 {
	return func(o npu.Op) int64 {
		q := o.In[0].Shape
		n := products * 2 * q.Elems() * int64(o.In[2].Shape[1])
		if o.Attrs.Bool("causal") {
			n /= 2
		}
		return n
	}
}

func inferAttentionCached(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := check(a, in, "q k v pos", "scale:f")
	c.heads(0, 1, 2)
	if !c.ok() {
		return nil, c.err
	}
	if s := a.Float("scale", 0); !(s > 0) {
		c.failf("attribute scale is %g, must be above 0", s)
	}
	c.typed(3, "pos", npu.I32, in[0].Shape[0], in[0].Shape[1])
	return c.done(in[0])
}

func inferCacheWrite(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := check(a, in, "cache x pos", "")
	c.rank(0, "cache", 4)
	c.rank(1, "x", 4)
	c.float(1, "x")
	if !c.ok() {
		return nil, c.err
	}
	t, x := in[0].Shape, in[1].Shape
	c.full(0, "cache", t...)
	if t[0] != x[0] || t[2] != x[2] || t[3] != x[3] {
		c.failf("cache %v and x %v want [B T G D] and [B S G D]", t, x)
	}
	c.typed(2, "pos", npu.I32, x[0], x[1])
	return c.done(in[0])
}
