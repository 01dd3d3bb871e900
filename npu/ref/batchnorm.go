package ref

import (
	"math"

	"github.com/gotrain/gotrain/npu"
)

var batchNormKinds = map[string]body{
	npu.BatchNorm:      runBatchNorm,
	npu.BatchNormInfer: runBatchNormInfer,
	npu.BatchNormBwd:   runBatchNormBwd,
}

// planes calls its argument with the range of each plane of a channel, in a fixed order.
type planes func(f func(lo, hi int))

// eachChannel runs fn for every channel in parallel.
func (c *call) eachChannel(s npu.Shape, fn func(ch int, walk planes)) {
	plane := int(s[2:].Elems())
	c.parallel(s[1], func(ch int) {
		fn(ch, func(f func(lo, hi int)) {
			for n := range s[0] {
				lo := (n*s[1] + ch) * plane
				f(lo, lo+plane)
			}
		})
	})
}

func reluOf(v float64) float64 {
	if v < 0 {
		return 0
	}
	return v // a NaN stays visible
}

func runBatchNorm(c *call) error {
	s, a := c.op.In[0].Shape, c.op.Attrs
	x, gamma, beta, rm, rv := c.in(0), c.in(1), c.in(2), c.in(3), c.in(4)
	var res []float64
	if a.Bool("add") {
		res = c.in(5)
	}
	y := c.out(0)
	mean, rstd := c.optOut(1, s[1]), c.optOut(2, s[1])
	rm2, rv2 := c.optOut(3, s[1]), c.optOut(4, s[1])
	m := float64(s.Elems() / int64(s[1]))
	eps, mom := a.Float("eps", 1e-5), a.Float("momentum", 0.1)
	c.eachChannel(s, func(ch int, walk planes) {
		sum, sq := 0.0, 0.0
		walk(func(lo, hi int) {
			for _, v := range x[lo:hi] {
				sum += v
			}
		})
		mu := sum / m
		walk(func(lo, hi int) {
			for _, v := range x[lo:hi] {
				sq += (v - mu) * (v - mu)
			}
		})
		mean[ch], rstd[ch] = mu, 1/math.Sqrt(sq/m+eps)
		rm2[ch] = (1-mom)*rm[ch] + mom*mu
		rv2[ch] = (1-mom)*rv[ch] + mom*sq/(m-1)
		normalise(y, x, res, walk, gamma[ch]*rstd[ch], mu, beta[ch], a.Bool("relu"))
	})
	return nil
}

// normalise: y = relu?((x-mean)*scale + shift + res?).
func normalise(y, x, res []float64, walk planes, scale, mean, shift float64, relu bool) {
	walk(func(lo, hi int) {
		for i := lo; i < hi; i++ {
			v := (x[i]-mean)*scale + shift
			if res != nil {
				v += res[i]
			}
			if relu {
				v = reluOf(v)
			}
			y[i] = v
		}
	})
}

func runBatchNormInfer(c *call) error {
	a := c.op.Attrs
	x, gamma, beta, mean, variance := c.in(0), c.in(1), c.in(2), c.in(3), c.in(4)
	var res []float64
	if a.Bool("add") {
		res = c.in(5)
	}
	y, eps := c.out(0), a.Float("eps", 1e-5)
	c.eachChannel(c.op.In[0].Shape, func(ch int, walk planes) {
		normalise(y, x, res, walk, gamma[ch]/math.Sqrt(variance[ch]+eps), mean[ch], beta[ch], a.Bool("relu"))
	})
	return nil
}

func runBatchNormBwd(c *call) error {
	s, a := c.op.In[0].Shape, c.op.Attrs
	g, x, gamma, mean, rstd := c.in(0), c.in(1), c.in(2), c.in(4), c.in(5)
	next := 6
	var y []float64
	if a.Bool("relu") {
		y, next = c.in(next), next+1
	}
	if a.Bool("sum") {
		for i, v := range c.in(next) {
			g[i] += v
		}
	}
	for i, v := range y {
		if v <= 0 {
			g[i] = 0
		}
	}
	dx := c.out(0)
	dgamma, dbeta := c.optOut(1, s[1]), c.optOut(2, s[1])
	m := float64(s.Elems() / int64(s[1]))
	c.eachChannel(s, func(ch int, walk planes) {
		sum, dot := 0.0, 0.0
		walk(func(lo, hi int) {
			for i := lo; i < hi; i++ {
				sum += g[i]
				dot += g[i] * (x[i] - mean[ch]) * rstd[ch]
			}
		})
		dgamma[ch], dbeta[ch] = dot, sum
		k := gamma[ch] * rstd[ch]
		walk(func(lo, hi int) {
			for i := lo; i < hi; i++ {
				dx[i] = k * (g[i] - sum/m - (x[i]-mean[ch])*rstd[ch]*dot/m)
			}
		})
	})
	if len(c.op.Out) > 3 {
		copy(c.out(3), g)
	}
	return nil
}
