package npu

import (
	"fmt"
	"slices"
	"strings"
)

// AttrAlgorithm is the attribute of Conv2D, Conv2DBwdData and Conv2DBwdWeights that names how the result is computed. It changes the last bits of the result,
// never its meaning. Without it (or with Direct) the device uses its default. The three ops of a layer need not agree.
const AttrAlgorithm = "algorithm"

// Values of AttrAlgorithm.
const (
	// Direct is the device's default.
	Direct = ""
	// Winograd4 and Winograd2 compute 3x3 convolutions of stride 1 in tiles of 4x4 and 2x2 results, with a quarter and 4/9 of the multiplications (Lavin and
	// Gray, arXiv 1509.09308: F(4x4,3x3), F(2x2,3x3), and for the weight gradient F(3x3,4x4), F(3x3,2x2)). The large tiles interpolate at 0, the roots of 1/2
	// and of 2, and infinity. Of bf16 tensors, Winograd4 makes float32 products, and the result is rounded once; Winograd2 makes bf16 products, whose rounding
	// costs up to three times that error, and Winograd4BF16 makes them with large tiles, for five to eight times that error.
	Winograd4     = "winograd4-sqrt2"
	Winograd2     = "winograd2"
	Winograd4BF16 = "winograd4-sqrt2-bf16"
	// Pairs computes weight gradients of bf16 pictures directly, but adds the products of two pixels at a time, in the order of pixels.
	Pairs = "pairs-bf16"
)

// successors replace algorithms that earlier versions had, for checkpoints that name them. The large tiles interpolated at 0, 1, -1, 2, -2 and infinity, with
// twice the error.
var successors = map[string]string{"winograd4": Winograd4}

// Successor is the algorithm that has replaced one of an earlier version; false if there is none.
func Successor(name string) (string, bool) {
	s, ok := successors[name]
	return s, ok
}

// Algorithmic is a Device that has several algorithms for some ops. Its Choose and Compile execute an op with the algorithm that the attribute names, or fail:
// they never fall back to another one.
type Algorithmic interface {
	Device
	// Algorithms lists the values of AttrAlgorithm that the op may have on this device, Direct first. The op's own value and its layouts do not matter. The
	// list depends on the op, the library and the processor, but on no measurement.
	Algorithms(op Op) []string
}

// Algorithms lists the values of AttrAlgorithm that the op may have on the device, Direct first. A device that is not Algorithmic has no other.
func Algorithms(d Device, op Op) []string {
	if a, ok := d.(Algorithmic); ok {
		return a.Algorithms(op)
	}
	return []string{Direct}
}

// WithAlgorithm returns the op with that algorithm; Direct removes the attribute.
func (o Op) WithAlgorithm(name string) Op {
	o = o.Clone()
	o.Attrs = o.Attrs.Clone()
	if delete(o.Attrs, AttrAlgorithm); name != Direct {
		o.Attrs[AttrAlgorithm] = name
	}
	return o
}

// CheckAlgorithm fails if the op names an algorithm that is not in the list.
func CheckAlgorithm(op Op, has ...string) error {
	name := op.Attrs.Str(AttrAlgorithm)
	if name == Direct || slices.Contains(has, name) {
		return nil
	}
	var others []string
	for _, h := range has {
		if h != Direct {
			others = append(others, h)
		}
	}
	if len(others) == 0 {
		return fmt.Errorf("%s: the device does not have the algorithm %q for this op\nhint: leave the attribute %s out", op, name, AttrAlgorithm)
	}
	return fmt.Errorf("%s: the device does not have the algorithm %q for this op\nhint: use one of %s, or leave the attribute %s out", op, name,
		strings.Join(others, ", "), AttrAlgorithm)
}
