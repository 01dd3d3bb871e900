package kind

import "github.com/gotrain/gotrain/npu"

// wideOut is the attribute out of an op with sums in float32 of operands in 16 bits.
func wideOut(op npu.Op) npu.Attrs {
	if len(op.In) > 0 && op.Out[0].DType == npu.F32 && op.In[0].DType != npu.F32 {
		return npu.Attrs{"out": "f32"}
	}
	return nil
}

// outShape, outType and outDesc are what devices read from the output.
func outShape(op npu.Op) npu.Attrs { return npu.Attrs{"shape": []int(op.Out[0].Shape)} }
func outType(op npu.Op) npu.Attrs  { return npu.Attrs{"dtype": op.Out[0].DType.String()} }

func outDesc(op npu.Op) npu.Attrs {
	return npu.Attrs{"shape": []int(op.Out[0].Shape), "dtype": op.Out[0].DType.String()}
}

func always(npu.Attrs) bool { return true }
