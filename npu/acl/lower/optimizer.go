package lower

import "github.com/gotrain/gotrain/npu"

// The optimizers are composed, with hyperparameters as 1-element views of device memory, so that a launch is prepared once; but for AdamW with decoupled decay,
// for which there is an operator. That takes hyperparameters from the host, so it is prepared anew in every step, which costs less than the passes over memory
// that it saves: 7 instead of 24, and 2 for a gradient that must be scaled.
var optimizerRules = map[string]rule{
	npu.SGD:   {lower: lowerSGD, needs: []string{"InplaceAddcmul"}},
	npu.AdamW: {lower: lowerAdamW, needs: []string{"InplaceAddcmul"}},
	npu.LARS:  {lower: lowerLARS, needs: []string{"InplaceAddcmul"}},

	npu.LAMBMoments: {lower: lowerLAMBMoments, needs: []string{"InplaceAddcmul", "LinalgVectorNorm"}},
	npu.LAMB:        {lower: lowerLAMB, needs: []string{"InplaceAddcmul"}},
}

// scalars computes on 1-element tensors.
type scalars struct{ *builder }

func (s scalars) apply(op string, args ...any) Tensor {
	t := s.temp(Float32, args[0].(Tensor).Dims...)
	s.call(op, append(args, t)...)
	return t
}

func (s scalars) mul(x, y Tensor) Tensor { return s.apply("Mul", x, y) }
func (s scalars) div(x, y Tensor) Tensor { return s.apply("Div", x, y) }
func (s scalars) add(x, y Tensor) Tensor { return s.apply("Add", x, y, number(1)) }

// rest is 1 - x.
func (s scalars) rest(x Tensor) Tensor {
	t := s.temp(Float32, x.Dims...)
	s.call("Sub", s.value(1), x, number(1), t)
	return t
}

// lowerSGD: hyper is lr, scale, momentum, decay, dampening, first. With first, momentum and dampening count as 0.
func lowerSGD(b *builder) {
	a, s := b.op.Attrs, scalars{b}
	h := b.in(0).at
	w, g := b.inherit(b.out(0), b.in(1)), b.in(2)
	d := b.temp(Float32, g.Dims...)
	b.call("Mul", g, h(1), d)
	if a.Bool("decoupled") {
		b.call("InplaceAddcmul", w, w, s.mul(h(0), h(3)), number(-1))
	} else {
		b.call("InplaceAddcmul", d, w, h(3), number(1))
	}
	if a.Bool("has_momentum") {
		m := b.inherit(b.outOr(1, Float32, w.Dims...), b.in(3))
		later := s.rest(h(5))
		b.call("InplaceMul", m, s.mul(h(2), later))
		b.call("InplaceAddcmul", m, d, s.rest(s.mul(h(4), later)), number(1))
		if a.Bool("nesterov") {
			b.call("InplaceAddcmul", d, m, h(2), number(1))
		} else {
			d = m
		}
	}
	b.call("InplaceAddcmul", w, d, h(0), number(-1))
}

// lowerAdamW: hyper is lr, scale, beta1, beta2, eps, decay, bc1 = 1-beta1^t, bc2 = 1-beta2^t. With r = √bc2 the step lr/bc1·m/(√(v/bc2) + eps) is
// (lr·r/bc1)·m/(√v + eps·r), which saves a pass. The scale of the gradient is a factor of what is added to m and v, unless decay is added to it.
func lowerAdamW(b *builder) {
	if !b.op.Attrs.Bool("coupled") && b.caps.Has("ApplyAdamWV2") {
		fusedAdamW(b)
		return
	}
	s := scalars{b}
	h := b.in(0).at
	w, g := b.inherit(b.out(0), b.in(1)), b.in(2)
	m, v := b.inherit(b.outOr(1, Float32, w.Dims...), b.in(3)), b.inherit(b.outOr(2, Float32, w.Dims...), b.in(4))
	new_ := s.rest(b.in(0).slice(0, 2, 4)) // 1-beta1, 1-beta2
	c1, c2 := new_.at(0), new_.at(1)
	t := b.temp(Float32, g.Dims...)
	if b.op.Attrs.Bool("coupled") {
		d := b.temp(Float32, g.Dims...)
		b.call("Mul", g, h(1), d)
		b.call("InplaceAddcmul", d, w, h(5), number(1))
		g = d
	} else {
		b.call("InplaceAddcmul", w, w, s.mul(h(0), h(5)), number(-1))
		c1, c2 = s.mul(c1, h(1)), s.mul(s.mul(c2, h(1)), h(1))
	}
	b.call("InplaceMul", m, h(2))
	b.call("InplaceAddcmul", m, g, c1, number(1))
	b.call("InplaceMul", v, h(3))
	b.call("Mul", g, g, t)
	b.call("InplaceAddcmul", v, t, c2, number(1))
	r := s.apply("Sqrt", h(7))
	b.call("Sqrt", v, t)
	b.call("InplaceAdd", t, s.mul(h(4), r), number(1))
	b.call("Div", m, t, t)
	b.call("InplaceAddcmul", w, t, s.div(s.mul(h(0), r), h(6)), number(-1))
}

// fusedAdamW: hyper is as for lowerAdamW, followed by t. The operator computes 1-beta^(step+1) itself: its step is the number of updates before this one. It
// does not scale the gradient, and that cannot be left to its other numbers, because m and v outlive the scale.
func fusedAdamW(b *builder) {
	const lr, scale, beta1, beta2, eps, decay, count = 0, 1, 2, 3, 4, 5, 8
	hyper, h := b.in(0), func(i int64) Elem { return Elem{0, i} }
	w, g := b.inherit(b.out(0), b.in(1)), b.in(2)
	m, v := b.inherit(b.outOr(1, Float32, w.Dims...), b.in(3)), b.inherit(b.outOr(2, Float32, w.Dims...), b.in(4))
	step := b.temp(Float32, 1)
	b.call("Adds", hyper.at(count), number(-1), number(1), step)
	update := func(g Tensor) {
		b.call("ApplyAdamWV2", w, m, v, null{}, g, step, h(lr), h(beta1), h(beta2), h(decay), h(eps), false, false)
	}
	b.either(h(scale), 1, func() { update(g) }, func() {
		t := b.temp(Float32, g.Dims...)
		b.call("Mul", g, hyper.at(scale), t)
		update(t)
	})
}

// lowerLARS: hyper is lr, scale, momentum, decay, trust, eps, first, nesterov. nesterov is data, so both rules are one: w -= nesterov·d +
// (1 + nesterov·(momentum-1))·m.
func lowerLARS(b *builder) {
	skip, s := b.op.Attrs.Bool("skip"), scalars{b}
	h := b.in(0).at
	w, g := b.inherit(b.out(0), b.in(1)), b.in(2)
	m := b.inherit(b.outOr(1, Float32, w.Dims...), b.in(3))
	d := b.temp(Float32, g.Dims...)
	b.call("Mul", g, h(1), d)
	rate := h(0)
	if !skip {
		b.call("InplaceAddcmul", d, w, h(3), number(1))
		rate = s.mul(rate, b.trust())
	}
	b.call("InplaceMul", d, rate)
	b.call("InplaceMul", m, s.mul(h(2), s.rest(h(6))))
	b.call("InplaceAdd", m, d, number(1))
	b.call("InplaceAddcmul", w, m, s.rest(s.mul(h(7), s.rest(h(2)))), number(-1))
	b.call("InplaceAddcmul", w, d, h(7), number(-1))
}

// trust is the local rate trust·|w|/(|g| + decay·|w| + eps), 1 where a norm is 0.
func (b *builder) trust() Tensor {
	s := scalars{b}
	h := b.in(0).at
	norm := func(i int) Tensor { return s.apply("Sqrt", b.full(b.in(i).at(0))) }
	nw, ng := norm(4), s.mul(norm(5), s.apply("Abs", h(1)))
	below := s.add(s.add(ng, s.mul(h(3), nw)), h(5))
	local := s.div(s.mul(h(4), nw), below)
	both, some := s.apply("Minimum", nw, ng), b.temp(Bool, 1)
	b.call("GtScalar", both, number(0), some)
	return s.apply2("SWhere", some, local, b.value(1))
}

func (s scalars) apply2(op string, cond, x, y Tensor) Tensor {
	t := s.temp(Float32, 1)
	s.call(op, cond, x, y, t)
	return t
}
