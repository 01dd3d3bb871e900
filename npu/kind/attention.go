package kind

import "github.com/gotrain/gotrain/npu"

func init() {
	Register(&Kind{
		Name: npu.Rope, Attrs: "theta:f pairs:s inverse:b pos:b factor:f low:f high:f original:i",
		In: "x pos:keep?pos", Out: "y",
		InPlace: "y=x", Shape: inferRope, Plain: true, Cheap: true,
	})
	Register(&Kind{
		Name: npu.Attention, Attrs: "scale:f causal:b seg:b keys:b mask:b",
		In: "q k v seg:keep?seg keys:keep?keys mask:keep?mask", Out: "o lse:full,nil,saved",
		Shape: inferAttention, Plain: true,
	})
	Register(&Kind{
		Name: npu.AttentionBwd, Attrs: "scale:f causal:b seg:b keys:b mask:b",
		In: "do q k v o lse:full seg:keep?seg keys:keep?keys mask:keep?mask", Out: "dq dk dv",
		Shape: inferAttentionBwd, Plain: true,
	})
	Register(&Kind{
		Name: npu.AttentionCached, Attrs: "scale:f",
		In: "q k:keep v:keep pos:keep", Out: "o",
		Shape: inferAttentionCached, Plain: true,
	})
	Register(&Kind{
		Name: npu.CacheWrite,
		In:   "cache:full x:keep pos:keep", Out: "cache:full",
		State: "cache=cache", Shape: inferCacheWrite, Plain: true,
	})
}

func inferRope(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := &checker{a: a, in: in}
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

// attended checks the attributes of attention, and the masks from input next on.
func (c *checker) attended(q, k, next int) {
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
		c.typed(next, "seg", npu.I32, qs[0], qs[1])
		next++
	}
	if c.a.Bool("keys") {
		c.typed(next, "keys", npu.I32, qs[0], ks[1])
		next++
	}
	if c.a.Bool("mask") && c.ok() {
		m := c.in[next]
		if s := m.Shape; m.DType != npu.I32 || len(s) != 4 || s[0] != 1 && s[0] != qs[0] || s[1] != 1 && s[1] != qs[2] || s[2] != qs[1] || s[3] != ks[1] {
			c.failf("mask is %s, want i32[%d or 1, %d or 1, %d, %d]: batch, heads, queries, keys", m, qs[0], qs[2], qs[1], ks[1])
		}
	}
}

func inferAttention(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := &checker{a: a, in: in}
	c.heads(0, 1, 2)
	c.attended(0, 1, 3)
	if !c.ok() {
		return nil, c.err
	}
	q := in[0].Shape
	return c.done(in[0], npu.D(fullType(in[0].DType), q[0], q[2], q[1]))
}

func inferAttentionBwd(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := &checker{a: a, in: in}
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

func inferAttentionCached(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := &checker{a: a, in: in}
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
	c := &checker{a: a, in: in}
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
