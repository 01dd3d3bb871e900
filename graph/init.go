package graph

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"

	"github.com/gotrain/gotrain/npu"
)

// Init says how a parameter starts. It is data: it can be printed and compared. Fill is a pure function of it, the seed and the
// parameter's name, so every rank, in any order of layers, starts with the same numbers.
type Init struct {
	Dist Dist
	A, B float64 // Constant: value A. Normal: mean A, deviation B. Uniform: A … B. TruncNormal: cut A (0: two deviations), deviation B. The scaled ones: gain A.
	Fan  Fan     // of the scaled ones
}

// Dist is a family of distributions.
type Dist string

// The families.
const (
	Constant      Dist = "constant"
	Normal        Dist = "normal"
	Uniform       Dist = "uniform"
	TruncNormal   Dist = "trunc_normal"   // normal, drawn again outside the cut; B is its deviation before that
	ScaledNormal  Dist = "scaled_normal"  // deviation gain/√fan
	ScaledUniform Dist = "scaled_uniform" // limit gain·√(3/fan)
	// ScaledTruncNormal is a normal cut off at two deviations, and widened so that gain/√fan is the deviation of what is left.
	ScaledTruncNormal Dist = "scaled_trunc_normal"
)

// truncDev is the deviation of a standard normal that is cut off at two deviations.
const truncDev = 0.87962566103423978

// Fan says which number of connections scales.
type Fan string

// Fan-in counts what one output sees, fan-out what sees one input; FanAvg is their mean.
const (
	FanIn  Fan = "in"
	FanOut Fan = "out"
	FanAvg Fan = "avg"
)

// Zeros starts with 0.
func Zeros() Init { return Fixed(0) }

// Ones starts with 1.
func Ones() Init { return Fixed(1) }

// Fixed starts with one value.
func Fixed(v float64) Init { return Init{Dist: Constant, A: v} }

// Gaussian is normal around 0.
func Gaussian(std float64) Init { return Init{Dist: Normal, B: std} }

// Truncated is normal around 0, cut off at two deviations.
func Truncated(std float64) Init { return Init{Dist: TruncNormal, B: std} }

// TruncatedAt is normal around 0 with deviation std, cut off at ±cut: an absolute number, as PyTorch's and timm's trunc_normal_ have it, whose default cut of 2
// cuts nothing off where std is 0.02. Truncated has the cut that the papers of transformers mean.
func TruncatedAt(std, cut float64) Init { return Init{Dist: TruncNormal, A: cut, B: std} }

// VarianceScaling is a truncated normal of variance scale/fan, as timm's variance_scaling_ and JAX have it: cut off at two of the deviations before the cut.
func VarianceScaling(scale float64, f Fan) Init {
	return Init{Dist: ScaledTruncNormal, A: math.Sqrt(scale), Fan: f}
}

// LeCunNormal is a truncated normal of variance 1/fan_in: timm's lecun_normal_.
func LeCunNormal() Init { return VarianceScaling(1, FanIn) }

// Between is uniform between lo and hi.
func Between(lo, hi float64) Init { return Init{Dist: Uniform, A: lo, B: hi} }

// KaimingNormal is for layers that a ReLU follows (arXiv 1502.01852): deviation √(2/fan).
func KaimingNormal(f Fan) Init { return Init{Dist: ScaledNormal, A: math.Sqrt2, Fan: f} }

// KaimingUniform has the same deviation as KaimingNormal.
func KaimingUniform(f Fan) Init { return Init{Dist: ScaledUniform, A: math.Sqrt2, Fan: f} }

// LeCunUniform is uniform in ±1/√fan_in: what PyTorch starts linear layers and their biases with.
func LeCunUniform() Init { return Init{Dist: ScaledUniform, A: 1 / math.Sqrt(3), Fan: FanIn} }

// XavierNormal is Glorot's (AISTATS 2010): deviation √(2/(fan_in+fan_out)).
func XavierNormal() Init { return Init{Dist: ScaledNormal, A: 1, Fan: FanAvg} }

// XavierUniform has the same deviation as XavierNormal.
func XavierUniform() Init { return Init{Dist: ScaledUniform, A: 1, Fan: FanAvg} }

// String prints what Init is, for logs and plans.
func (i Init) String() string {
	switch i.Dist {
	case Constant:
		return fmt.Sprintf("constant(%g)", i.A)
	case ScaledNormal, ScaledUniform, ScaledTruncNormal:
		return fmt.Sprintf("%s(gain=%.4g, fan_%s)", i.Dist, i.A, i.Fan)
	case TruncNormal:
		if i.A != 0 {
			return fmt.Sprintf("trunc_normal(std=%g, cut=%g)", i.B, i.A)
		}
		return fmt.Sprintf("trunc_normal(std=%g)", i.B)
	}
	return fmt.Sprintf("%s(%g, %g)", i.Dist, i.A, i.B)
}

func (i Init) check(s npu.Shape) error {
	switch i.Dist {
	case Constant:
	case Normal, TruncNormal:
		if !(i.B >= 0) {
			return fmt.Errorf("initialiser %s: the standard deviation is negative", i)
		}
		if i.Dist == TruncNormal && !(i.A >= 0) {
			return fmt.Errorf("initialiser %s: the cut is negative", i)
		}
	case Uniform:
		if !(i.A <= i.B) {
			return fmt.Errorf("initialiser %s: empty range", i)
		}
	case ScaledNormal, ScaledUniform, ScaledTruncNormal:
		if !(i.A >= 0) || math.IsInf(i.A, 0) {
			return fmt.Errorf("initialiser %s: the gain must not be negative", i)
		}
		if len(s) < 2 {
			return fmt.Errorf("initialiser %s requires a shape [out in …], got %v", i, s)
		}
	default:
		return errors.New("has no initialiser\nhint: use graph.Zeros(), graph.KaimingNormal(graph.FanOut), …")
	}
	return nil
}

// fan counts connections of a weight [out in …]: what follows the second axis is the window.
func (i Init) fan(s npu.Shape) float64 {
	window := float64(s[2:].Elems())
	in, out := float64(s[1])*window, float64(s[0])*window
	switch i.Fan {
	case FanIn:
		return in
	case FanOut:
		return out
	}
	return (in + out) / 2
}

// Fill writes the start values of the parameter called name. dst is in the plain order of shape.
func (i Init) Fill(dst []float32, shape npu.Shape, seed uint64, name string) error {
	if err := i.check(shape); err != nil {
		return fmt.Errorf("graph: parameter %q: %w", name, err)
	}
	if int64(len(dst)) != shape.Elems() {
		return fmt.Errorf("graph: parameter %q: %d values for the shape %v", name, len(dst), shape)
	}
	h := fnv.New64a()
	h.Write([]byte(name))
	r := draw{rand.NewPCG(seed, h.Sum64())}
	mean, std, lo, hi, cut := 0.0, i.B, i.A, i.B, 2.0
	switch i.Dist {
	case Constant:
		for k := range dst {
			dst[k] = float32(i.A)
		}
		return nil
	case Normal:
		mean = i.A
	case TruncNormal:
		if i.A != 0 && i.B != 0 {
			cut = i.A / i.B
		}
	case ScaledTruncNormal:
		std = i.A / math.Sqrt(i.fan(shape)) / truncDev
	case ScaledNormal:
		std = i.A / math.Sqrt(i.fan(shape))
	case ScaledUniform:
		hi = i.A * math.Sqrt(3/i.fan(shape))
		lo = -hi
	}
	for k := range dst {
		switch i.Dist {
		case Uniform, ScaledUniform:
			dst[k] = float32(lo + (hi-lo)*r.unit())
		case TruncNormal, ScaledTruncNormal:
			dst[k] = float32(std * r.truncated(cut))
		default:
			dst[k] = float32(mean + std*r.normal())
		}
	}
	return nil
}
