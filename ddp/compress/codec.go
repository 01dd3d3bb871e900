package compress

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/gotrain/gotrain/ddp"
	"github.com/gotrain/gotrain/npu"
)

// Options of a codec. The zero value is useful.
type Options struct {
	// Block is how many values share a scale (int8): a power of two from 32 to 65536; 0 = 256.
	Block int
	// NoFeedback switches error feedback off (int8).
	NoFeedback bool
	// Raw selects parameters that travel as float32 (int8): those of one dimension, norms and biases. nil: none.
	Raw func(param string) bool
	// Factor multiplies gradients before they are rounded to f16, so that their sum over all ranks stays below 65504: a power of two, see Factor; 0: 1 / the
	// number of ranks, rounded down to a power of two.
	Factor float64
	// Device casts gradients itself (f16, bf16), for a transport that is ordered by its events (comm.Ordered). nil: the host does. int8 needs memory that
	// the host can access.
	Device npu.Device
}

const defaultBlock = 256

// kinds makes codecs by name. A codec is a file of this package with an entry here.
var kinds = map[string]func(Options) (ddp.Codec, error){}

// Names lists the codecs.
func Names() []string { return slices.Sorted(maps.Keys(kinds)) }

// New makes a codec: f16, bf16 or int8; nil for none and "".
func New(name string, o Options) (ddp.Codec, error) {
	if name == "" || name == "none" {
		return nil, nil
	}
	if o.Block == 0 {
		o.Block = defaultBlock
	}
	make, ok := kinds[name]
	switch {
	case !ok:
		return nil, fmt.Errorf("compress: no codec %q\nhint: use one of none, %s", name, strings.Join(Names(), ", "))
	case o.Block < 32 || o.Block > 1<<16 || o.Block&(o.Block-1) != 0:
		return nil, fmt.Errorf("compress: blocks of %d values\nhint: a block is a power of two from 32 to 65536", o.Block)
	case o.Device != nil && name == "int8":
		return nil, fmt.Errorf("compress: int8 encodes in the memory of the host, and gradients are in that of device %s\n"+
			"hint: use f16 or bf16, to which the device casts itself, or none", o.Device.Info().Name)
	case o.Factor < 0 || o.Factor > 0 && !powerOfTwo(o.Factor):
		return nil, fmt.Errorf("compress: the factor %g is no power of two\nhint: use compress.Factor", o.Factor)
	}
	return make(o)
}

func powerOfTwo(f float64) bool {
	fraction, _ := math.Frexp(f)
	return fraction == 0.5
}

// headroom is the largest mean gradient that f16 holds, within a factor of two: 65504 / 256.
const headroom = 256

// Factor is a factor for f16 (Options.Factor) of gradients that are sums over n items: means up to about 255 fit, and means down to 2e-10 do not vanish.
func Factor(n float64) float64 { return math.Exp2(math.Floor(math.Log2(headroom / n))) }

// State is a Codec with state that a checkpoint must keep: the residuals of error feedback.
type State interface {
	ddp.Codec
	// Residual copies the residual of parameter i of the plan to dst, in the layout of its gradient and in unscaled units. What the next step adds to the sum
	// of all ranks is the sum of their residuals. It reports whether the parameter has one: raw parameters have none. With dst nil it does no more than that.
	Residual(i int, dst []float32) bool
	// Restore sets it. After Restore of what Residual gave, the following steps are bit-equal. The error says that a value is not finite.
	Restore(i int, src []float32) error
}
