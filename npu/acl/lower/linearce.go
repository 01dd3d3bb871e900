package lower

import "github.com/gotrain/gotrain/npu"

var linearCERules = map[string]rule{
	npu.LinearCrossEntropy:     {lower: lowerLinearCE, needs: []string{"LogSumExp", "Gather"}},
	npu.LinearCrossEntropyBwd:  {lower: lowerLinearCEBwd, needs: []string{"InplaceScatter"}},
	npu.LinearCrossEntropyGrad: {lower: lowerLinearCEGrad, needs: []string{"LogSumExp", "Gather", "InplaceScatter"}},
}

// projection is a loss of the logits x·wᵀ, which are computed some rows at a time.
type projection struct {
	*builder
	x, w   Tensor
	n, v   int64
	labels labels
	logits Tensor // f32 [rows V]
	dw     Tensor // gradients: f32 [V D]
	part   Tensor // of dw, from some rows
}

// projection reads x, w and labels.
func (b *builder) projection() *projection {
	x := b.in(0)
	p := &projection{builder: b, x: x, w: b.as(b.in(1), x.DType), n: x.Dims[0], v: b.op.In[1].Shape.Elems() / x.Dims[1]}
	p.labels = b.labels(b.in(2), p.v)
	p.logits = b.temp(Float32, p.rows(), p.v)
	return p
}

// rows is how many rows are computed at a time: a multiple of 128 if it is not all.
func (p *projection) rows() int64 {
	most := p.caps.Logits
	if most == 0 {
		most = 256 << 20
	}
	r := most / (4 * p.v)
	if r >= 128 {
		r = r / 128 * 128
	}
	return min(p.n, max(1, r))
}

// tiles calls fn for every tile, with its rows lo…hi-1 of x and its logits.
func (p *projection) tiles(fn func(lo, hi int64, x, logits Tensor)) {
	step := p.rows()
	for lo := int64(0); lo < p.n; lo += step {
		hi := min(p.n, lo+step)
		x, logits := p.x.slice(0, lo, hi), p.logits.slice(0, 0, hi-lo)
		p.product(x, p.w.swap(), logits)
		fn(lo, hi, x, logits)
	}
}

// losses fills lse and each for the rows of a tile.
func (p *projection) losses(lo, hi int64, logits, lse, each Tensor) {
	p.call("LogSumExp", logits, []int64{1}, false, lse.slice(0, lo, hi))
	p.call("Sub", lse.slice(0, lo, hi), p.picked(logits, p.labels.safe.slice(0, lo, hi)).squeeze(1), number(1), each.slice(0, lo, hi))
}

// gradients turns the logits of a tile into their gradient, and adds what follows from them to dx and dw.
func (p *projection) gradients(lo, hi int64, x, logits, lse, dloss, dx Tensor) {
	l := labels{safe: p.labels.safe.slice(0, lo, hi), ok: p.labels.ok.slice(0, lo, hi)}
	p.probabilities(logits, logits, lse.slice(0, lo, hi), dloss, l, 0)
	g := p.as(logits, x.DType)
	p.product(g, p.w, dx.slice(0, lo, hi))
	switch {
	case lo == 0:
		p.product(g.swap(), x, p.dw)
	case x.DType == Float32:
		p.call("InplaceAddmm", p.dw, g.swap(), x, number(1), number(1), p.cube())
	default:
		p.addPart(g.swap(), x)
	}
}

// addPart adds g·x to dw. Where products of 16-bit operands are rounded to 16 bits, they are added as they are.
func (p *projection) addPart(g, x Tensor) {
	t := Float32
	if !p.caps.wide() && !p.caps.Exact {
		t = x.DType
	}
	if p.part.Dims == nil {
		p.part = p.temp(t, p.dw.Dims...)
	}
	p.product(g, x, p.part)
	p.call("InplaceAdd", p.dw, p.part, number(1))
}

func lowerLinearCE(b *builder) {
	p := b.projection()
	lse, each := b.outOr(2, Float32, p.n), b.temp(Float32, p.n)
	p.tiles(func(lo, hi int64, _, logits Tensor) { p.losses(lo, hi, logits, lse, each) })
	b.sums(p.labels, each, b.out(0), b.outOr(1, Float32))
}

func lowerLinearCEBwd(b *builder) {
	p := b.projection()
	p.dw = b.outOr(1, Float32, b.in(1).Dims...)
	p.tiles(func(lo, hi int64, x, logits Tensor) { p.gradients(lo, hi, x, logits, b.in(3), b.in(4), b.out(0)) })
}

func lowerLinearCEGrad(b *builder) {
	p := b.projection()
	lse, each := b.outOr(2, Float32, p.n), b.temp(Float32, p.n)
	dx := b.outOr(3, p.x.DType, p.x.Dims...)
	p.dw = b.outOr(4, Float32, b.in(1).Dims...)
	p.tiles(func(lo, hi int64, x, logits Tensor) {
		p.losses(lo, hi, logits, lse, each)
		p.gradients(lo, hi, x, logits, lse, b.in(3), dx)
	})
	b.sums(p.labels, each, b.out(0), b.outOr(1, Float32))
}
