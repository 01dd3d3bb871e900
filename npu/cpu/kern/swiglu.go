//go:build cgo && linux && (amd64 || arm64)

package kern

import "github.com/gotrain/gotrain/npu"

func init() {
	register(npu.SwiGLU, func(op npu.Op) *Call { return plainAct("swiglu", op) })
	register(npu.SwiGLUBwd, func(op npu.Op) *Call {
		if len(op.Out) != 2 {
			return nil
		}
		return plainAct("swiglu_bwd", op)
	})
}

// plainAct is flatAct for plain layouts only.
func plainAct(kernel string, op npu.Op) *Call {
	if !allPlain(op) {
		return nil
	}
	return flatAct(kernel, op)
}
