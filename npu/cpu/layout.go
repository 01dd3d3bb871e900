package cpu

import "github.com/gotrain/gotrain/npu"

// Layouts of activations besides npu.Plain. Shapes stay logical, [N C H W].
const (
	// NHWC has channels innermost.
	NHWC npu.Layout = "nhwc"
	// NChw16c is N, C/16, H, W, 16 channels; used only where 16 divides C, so that no padding is needed.
	NChw16c npu.Layout = "nChw16c"
	// NChw8c is the same with blocks of 8.
	NChw8c npu.Layout = "nChw8c"
)
