package lower

// lowerLAMBMoments: hyper is as for lowerAdamW. The scale of the gradient is a factor of what is added to m and v.
func lowerLAMBMoments(b *builder) {
	s := scalars{b}
	h := b.in(0).at
	w, g, sums := b.in(1), b.in(2), b.out(0)
	m, v := b.inherit(b.outOr(1, Float32, w.Dims...), b.in(3)), b.inherit(b.outOr(2, Float32, w.Dims...), b.in(4))
	new_ := s.rest(b.in(0).slice(0, 2, 4)) // 1-beta1, 1-beta2
	b.call("InplaceMul", m, h(2))
	b.call("InplaceAddcmul", m, g, s.mul(new_.at(0), h(1)), number(1))
	b.call("InplaceMul", v, h(3))
	t := b.temp(Float32, w.Dims...)
	b.call("Mul", g, g, t)
	b.call("InplaceAddcmul", v, t, s.mul(s.mul(new_.at(1), h(1)), h(1)), number(1))
	u := b.lambStep(w, m, v)
	sq := b.temp(Float32, 2)
	for i, x := range []Tensor{w, u} {
		norm := b.temp(Float32, 1)
		b.call("LinalgVectorNorm", x, number(2), []int64{0}, true, Float32, norm)
		b.call("Mul", norm, norm, sq.slice(0, int64(i), int64(i)+1))
	}
	b.cast(sq, sums)
}

// lambStep is m/bc1/(√(v/bc2) + eps) + decay·w; with r = √bc2 that is r/bc1·m/(√v + eps·r) + decay·w.
func (b *builder) lambStep(w, m, v Tensor) Tensor {
	s := scalars{b}
	h := b.in(0).at
	r, u := s.apply("Sqrt", h(7)), b.temp(Float32, w.Dims...)
	b.call("Sqrt", v, u)
	b.call("InplaceAdd", u, s.mul(h(4), r), number(1))
	b.call("Div", m, u, u)
	b.call("InplaceMul", u, s.div(r, h(6)))
	b.call("InplaceAddcmul", u, w, h(5), number(1))
	return u
}

func lowerLAMB(b *builder) {
	s := scalars{b}
	w := b.inherit(b.out(0), b.in(1))
	norm := func(i int64) Tensor { return s.apply("Sqrt", b.full(b.in(4).at(i))) }
	nw, nu, some := norm(0), norm(1), b.temp(Bool, 1)
	b.call("GtScalar", s.apply("Minimum", nw, nu), number(0), some)
	trust := s.apply2("SWhere", some, s.div(nw, nu), b.value(1))
	if b.op.Attrs.Bool("clip") {
		trust = s.apply("Minimum", trust, b.value(1))
	}
	u := b.lambStep(w, b.in(2), b.in(3))
	b.call("InplaceAddcmul", w, u, s.mul(b.in(0).at(0), trust), number(-1))
}
