package plan

import (
	"fmt"
	"math"

	"github.com/gotrain/gotrain/npu"
)

// Fold is a batch normalisation with fixed statistics that became part of the convolution before it (Options.Fold). The kernels then read weights and a bias
// that whoever fills the parameters has computed by Apply.
type Fold struct {
	Weight, Beta     string // parameters whose memory holds what Apply makes of them: the convolution's weights, and its bias in the place of beta
	Gamma, Mean, Var string // parameter and states that no kernel reads any more
	Bias             string // a parameter of the convolution that no kernel reads any more; "": it had none
	Eps              float64
}

// Apply turns weights [O …] and beta [O] into those of the convolution that also normalises: w·s and beta + (bias - mean)·s with s = gamma/√(var + eps).
// bias may be nil. All is computed in float64 and rounded once, so a device rounds less often than it did before.
func (f Fold) Apply(weight, bias, gamma, beta, mean, variance []float32) error {
	n := len(beta)
	if n == 0 || len(weight)%n != 0 || len(gamma) != n || len(mean) != n || len(variance) != n || bias != nil && len(bias) != n {
		return fmt.Errorf("plan: %s of %d elements cannot take in %d channels of %s", f.Weight, len(weight), n, f.Beta)
	}
	for o, row := 0, len(weight)/n; o < n; o++ {
		s := float64(gamma[o]) / math.Sqrt(float64(variance[o])+f.Eps)
		was := 0.0
		if bias != nil {
			was = float64(bias[o])
		}
		for i, v := range weight[o*row:][:row] {
			weight[o*row+i] = float32(float64(v) * s)
		}
		beta[o] = float32(float64(beta[o]) + float64((was-float64(mean[o]))*s))
	}
	return nil
}

// fold makes folds of the graph's calls, where the target has convolutions with a bias.
func fold(g *Graph, has func(kind string, attrs npu.Attrs) bool) (list []Fold) {
	r := newRewriter(g)
	for i := range g.Calls {
		if f, ok := foldNorm(r, i, has); ok {
			list = append(list, f)
			r.index()
		}
	}
	r.finish()
	return list
}

// foldNorm takes call i, where it is a normalisation of what a convolution computed for it alone, into the convolution.
func foldNorm(r *rewriter, i int, has func(string, npu.Attrs) bool) (f Fold, ok bool) {
	norm := &r.g.Calls[i]
	if norm.Kind != npu.BatchNormInfer || norm.Host != nil || norm.Attrs.Bool("relu") || norm.Attrs.Bool("add") || !r.onlyReader(norm.In[0], i) {
		return f, false
	}
	c, conv := r.madeBy(norm.In[0], npu.Conv2D)
	if conv == nil || conv.Attrs.Bool("relu") || !has(npu.Conv2D, with(conv.Attrs, "bias")) {
		return f, false
	}
	name := func(id ID, role Role) string {
		if v := r.g.Values[id]; v.Role == role {
			return v.Name
		}
		return ""
	}
	weight, beta := conv.In[1], norm.In[2]
	f = Fold{Weight: name(weight, Param), Gamma: name(norm.In[1], Param), Beta: name(beta, Param), Mean: name(norm.In[3], State), Var: name(norm.In[4], State),
		Eps: norm.Attrs.Float("eps", 1e-5)}
	alone := r.onlyReader(weight, c) && r.onlyReader(beta, i)
	if f.Weight == "" || f.Gamma == "" || f.Beta == "" || f.Mean == "" || f.Var == "" || !alone {
		return f, false
	}
	if conv.Attrs.Bool("bias") {
		if f.Bias = name(conv.In[2], Param); f.Bias == "" || conv.In[2] == beta {
			return f, false
		}
	}
	conv.Attrs = with(conv.Attrs, "bias")
	conv.In = append(conv.In[:2:2], beta)
	conv.Out[0] = norm.Out[0]
	r.dead[i] = true
	return f, true
}
