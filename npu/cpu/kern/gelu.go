//go:build cgo && linux && (amd64 || arm64)

package kern

// #include "flags.h"
import "C"

import "github.com/gotrain/gotrain/npu"

func init() {
	register(npu.Gelu, func(op npu.Op) *Call { return gelu("gelu", op) })
	register(npu.GeluBwd, func(op npu.Op) *Call { return gelu("gelu_bwd", op) })
}

func gelu(kernel string, op npu.Op) *Call {
	c := flatAct(kernel, op)
	if c != nil {
		c.flags = bit(op.Attrs.Str("approximate") == "tanh", C.GELU_TANH)
	}
	return c
}
