package ref

import (
	"math"

	"github.com/gotrain/gotrain/npu"
)

// The ops on flat memory: optimizers and the norms they need.
var flatKinds = map[string]body{
	npu.SGD:   runSGD,
	npu.AdamW: runAdamW,
	npu.SumSq: runSumSq,
	npu.LARS:  runLARS,
	npu.Scale: runScale,
	npu.EMA:   runEMA,

	npu.LAMBMoments: runLAMBMoments,
	npu.LAMB:        runLAMB,
}

func runSGD(c *call) error {
	hy, w, g, a := c.in(0), c.in(1), c.in(2), c.op.Attrs
	lr, gs, mom, wd, damp, first := hy[0], hy[1], hy[2], hy[3], hy[4], hy[5] != 0
	nesterov, decoupled, has := a.Bool("nesterov"), a.Bool("decoupled"), a.Bool("has_momentum")
	w2 := c.out(0)
	var m, m2 []float64
	if has {
		m, m2 = c.in(3), c.optOut(1, len(w))
	}
	for i := range w {
		v, d := w[i], g[i]*gs
		if decoupled {
			v -= lr * wd * v
		} else {
			d += wd * v
		}
		if has {
			m2[i] = mom*m[i] + (1-damp)*d
			if first {
				m2[i] = d
			}
			if nesterov {
				d += mom * m2[i]
			} else {
				d = m2[i]
			}
		}
		w2[i] = v - lr*d
	}
	return nil
}

func runAdamW(c *call) error {
	hy, w, g, m, v := c.in(0), c.in(1), c.in(2), c.in(3), c.in(4)
	lr, gs, b1, b2, eps, wd, bc1, bc2 := hy[0], hy[1], hy[2], hy[3], hy[4], hy[5], hy[6], hy[7]
	coupled := c.op.Attrs.Bool("coupled")
	w2, m2, v2 := c.out(0), c.optOut(1, len(w)), c.optOut(2, len(w))
	for i := range w {
		p, d := w[i], g[i]*gs
		if coupled {
			d += wd * p
		} else {
			p -= lr * wd * p
		}
		m2[i] = b1*m[i] + (1-b1)*d
		v2[i] = b2*v[i] + (1-b2)*d*d
		w2[i] = p - lr/bc1*m2[i]/(math.Sqrt(v2[i]/bc2)+eps)
	}
	return nil
}

func runSumSq(c *call) error {
	g, s, raw := c.in(0), c.out(0), c.rawOut(0)
	if raw == nil {
		return nil
	}
	if len(c.op.In) == 2 {
		raw = c.rawIn(1)
	}
	load(s, raw, 0, npu.F64)
	sum := 0.0
	for _, v := range g {
		sum += v * v
		if math.IsNaN(v) || math.IsInf(v, 0) {
			s[1]++
		}
	}
	s[0] += sum
	return nil
}

func runLARS(c *call) error {
	hy, w, g, m := c.in(0), c.in(1), c.in(2), c.in(3)
	lr, gs, mom, wd, trust, eps, first, nesterov := hy[0], hy[1], hy[2], hy[3], hy[4], hy[5], hy[6] != 0, hy[7] != 0
	nw, ng := math.Sqrt(c.in(4)[0]), math.Sqrt(c.in(5)[0])*math.Abs(gs)
	local := 1.0
	if c.op.Attrs.Bool("skip") {
		wd = 0
	} else if nw > 0 && ng > 0 {
		local = trust * nw / (ng + wd*nw + eps)
	}
	w2, m2 := c.out(0), c.optOut(1, len(w))
	for i := range w {
		d := local * lr * (g[i]*gs + wd*w[i])
		m2[i] = mom*m[i] + d
		if first {
			m2[i] = d
		}
		if nesterov {
			w2[i] = w[i] - (d + mom*m2[i])
		} else {
			w2[i] = w[i] - m2[i]
		}
	}
	return nil
}

func runScale(c *call) error {
	k, x, y := c.in(0)[0], c.in(1), c.out(0)
	for i, v := range x {
		y[i] = v * k
	}
	return nil
}

func runEMA(c *call) error {
	hy, avg, x, y := c.in(0), c.in(1), c.in(2), c.out(0)
	for i, v := range x {
		y[i] = hy[0]*avg[i] + hy[1]*v
	}
	return nil
}

// lambStep is what LAMB moves a weight by, before the rates; hy is AdamW's.
func lambStep(hy []float64, w, m, v float64) float64 {
	eps, wd, bc1, bc2 := hy[4], hy[5], hy[6], hy[7]
	return m/bc1/(math.Sqrt(v/bc2)+eps) + wd*w
}

func runLAMBMoments(c *call) error {
	hy, w, g, m, v := c.in(0), c.in(1), c.in(2), c.in(3), c.in(4)
	gs, b1, b2 := hy[1], hy[2], hy[3]
	s, m2, v2 := c.out(0), c.optOut(1, len(w)), c.optOut(2, len(w))
	for i := range w {
		d := g[i] * gs
		m2[i] = b1*m[i] + (1-b1)*d
		v2[i] = b2*v[i] + (1-b2)*d*d
		u := lambStep(hy, w[i], m2[i], v2[i])
		s[0] += w[i] * w[i]
		s[1] += u * u
	}
	return nil
}

func runLAMB(c *call) error {
	hy, w, m, v, s, w2 := c.in(0), c.in(1), c.in(2), c.in(3), c.in(4), c.out(0)
	trust := 1.0
	if s[0] > 0 && s[1] > 0 {
		trust = math.Sqrt(s[0]) / math.Sqrt(s[1])
	}
	if c.op.Attrs.Bool("clip") {
		trust = min(trust, 1)
	}
	for i := range w {
		w2[i] = w[i] - hy[0]*trust*lambStep(hy, w[i], m[i], v[i])
	}
	return nil
}
