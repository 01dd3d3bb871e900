package lower

import "github.com/gotrain/gotrain/npu"

var softmaxRules = map[string]rule{
	npu.Softmax:       {lower: func(b *builder) { b.call("Softmax", b.in(0), -1, b.out(0)) }, needs: []string{"Softmax"}},
	npu.SoftmaxBwd:    {lower: func(b *builder) { b.call("SoftmaxBackward", b.in(0), b.in(1), -1, b.out(0)) }, needs: []string{"SoftmaxBackward"}},
	npu.LogSoftmax:    {lower: func(b *builder) { b.call("LogSoftmax", b.in(0), -1, b.out(0)) }, needs: []string{"LogSoftmax"}},
	npu.LogSoftmaxBwd: {lower: func(b *builder) { b.call("LogSoftmaxBackward", b.in(0), b.in(1), -1, b.out(0)) }, needs: []string{"LogSoftmaxBackward"}},
}
