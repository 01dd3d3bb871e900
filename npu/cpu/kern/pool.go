//go:build cgo && linux && (amd64 || arm64)

package kern

import "github.com/gotrain/gotrain/npu"

func init() {
	register(npu.GlobalAvgPool, func(op npu.Op) *Call { return gap("gap", op.In[0], op.Out[0]) })
	register(npu.GlobalAvgPoolBwd, func(op npu.Op) *Call { return gap("gap_bwd", op.Out[0], op.In[0]) })
}

// gap is the Call for the large tensor [N C H W] and the small one [N C].
func gap(kernel string, big, small npu.Desc) *Call {
	dt, ok := act(big.DType)
	layout, hw, known := order(big)
	if !ok || !known || hw == 0 || small.DType != big.DType || small.Layout != npu.Plain {
		return nil
	}
	return &Call{kernel: kernel, dt: dt, n: []int64{int64(big.Shape[0]), int64(big.Shape[1]), hw, int64(layout)}}
}
