//go:build cgo && linux && (amd64 || arm64)

package kern_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/gotrain/gotrain/npu"
)

// BenchmarkLanguage: activations of 2048 tokens of width 512 (4 MiB in float32: in the second cache, just), and of 16384 (32 MiB).
func BenchmarkLanguage(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, dt := range acts {
		for _, tokens := range []int{2048, 16384} {
			x := npu.D(dt, tokens, 512)
			n := x.PlainBytes()
			run := func(name string, op npu.Op, passes int64, inplace map[int]int) {
				b.Run(fmt.Sprintf("%s/%v%v", name, dt, x.Shape), func(b *testing.B) { benchOp(b, op, passes*n, inplace, map[int][]byte{3: positive(tokens)}) })
			}
			run("swiglu", npu.Op{Kind: npu.SwiGLU, In: []npu.Desc{x, x}, Out: []npu.Desc{x}}, 3, nil)
			run("swiglu_bwd", npu.Op{Kind: npu.SwiGLUBwd, In: []npu.Desc{x, x, x}, Out: []npu.Desc{x, x}}, 5, nil) // in place its numbers would shrink to denormals
			run("rmsnorm", rmsNorm(x, false), 2, nil)
			run("rmsnorm_add", rmsNorm(x, true), 4, nil)
			run("rmsnorm_bwd", rmsNormBwd(x, false), 3, nil)
			run("rmsnorm_bwd_add", rmsNormBwd(x, true), 4, nil)
			h := npu.D(dt, tokens/256, 256, 8, 64)
			for _, pairs := range []string{"half", "adjacent"} {
				a := npu.Attrs{"theta": 1e4, "pairs": pairs}
				run("rope/"+pairs, npu.Op{Kind: npu.Rope, Attrs: a, In: []npu.Desc{h}, Out: []npu.Desc{h}}, 2, map[int]int{0: 0})
			}
			const v = 32000
			ids, w := npu.D(npu.I32, tokens), npu.D(npu.F32, v, 512)
			some := map[int][]byte{0: ints(r, tokens, 0, v), 1: ints(r, tokens, 0, v)}
			e := npu.Op{Kind: npu.Embedding, In: []npu.Desc{ids, npu.D(dt, v, 512)}, Out: []npu.Desc{x}}
			b.Run(fmt.Sprintf("embedding/%v%v", dt, x.Shape), func(b *testing.B) { benchOp(b, e, 2*n, nil, map[int][]byte{0: some[0]}) })
			acc := npu.Op{Kind: npu.EmbeddingBwd, Attrs: npu.Attrs{"rows": v, "add": true}, In: []npu.Desc{x, ids, w}, Out: []npu.Desc{w}}
			touched := n + 2*4*x.Shape.Elems()
			b.Run(fmt.Sprintf("embedding_bwd_add/%v%v", dt, x.Shape), func(b *testing.B) { benchOp(b, acc, touched, map[int]int{0: 2}, map[int][]byte{1: some[1]}) })
			bwd := npu.Op{Kind: npu.EmbeddingBwd, Attrs: npu.Attrs{"rows": v}, In: []npu.Desc{x, ids}, Out: []npu.Desc{w}}
			b.Run(fmt.Sprintf("embedding_bwd/%v%v", dt, x.Shape), func(b *testing.B) { benchOp(b, bwd, touched+w.PlainBytes(), nil, map[int][]byte{1: some[1]}) })
		}
	}
}

// BenchmarkFewRows: a matrix of 64 MiB, against sumsq, which reads as much and little else; and one that is in the cache.
func BenchmarkFewRows(b *testing.B) {
	const size = 64 << 20
	sum := npu.Op{Kind: npu.SumSq, In: []npu.Desc{npu.D(npu.F32, size/4)}, Out: []npu.Desc{npu.D(npu.F64, 2)}}
	b.Run("sumsq", func(b *testing.B) { benchOp(b, sum, size, nil, nil) })
	for _, dt := range acts {
		for _, k := range []int{288, 512, 4096} {
			for _, m := range []int{1, 2, 4, 8} {
				n := size / dt.Size() / k
				b.Run(fmt.Sprintf("%v/M%d/K%d", dt, m, k), func(b *testing.B) { benchOp(b, fewRows(dt, dt, m, k, n, false), size, nil, nil) })
			}
		}
		b.Run(fmt.Sprintf("%v/M1/cached", dt), func(b *testing.B) {
			benchOp(b, fewRows(dt, dt, 1, 512, 512, false), int64(512*512*dt.Size()), nil, nil)
		})
	}
}

// BenchmarkConvert: weights for the step.
func BenchmarkConvert(b *testing.B) {
	x, y := npu.D(npu.F32, 4096, 4096), npu.D(npu.BF16, 4096, 4096)
	b.Run("f32→bf16", func(b *testing.B) {
		benchOp(b, npu.Op{Kind: npu.Convert, In: []npu.Desc{x}, Out: []npu.Desc{y}}, x.PlainBytes()+y.PlainBytes(), nil, nil)
	})
	b.Run("bf16→f32", func(b *testing.B) {
		benchOp(b, npu.Op{Kind: npu.Convert, In: []npu.Desc{y}, Out: []npu.Desc{x}}, x.PlainBytes()+y.PlainBytes(), nil, nil)
	})
}

// BenchmarkVision: the shapes of DeiT-S, a batch of 16: 3152 tokens of width 384, 1536 within a layer, 6 heads of 64.
func BenchmarkVision(b *testing.B) {
	for _, dt := range acts {
		x, wide, q, l := npu.D(dt, 3152, 384), npu.D(dt, 3152, 1536), npu.D(dt, 16, 197, 6, 64), npu.D(npu.F32, 16, 6, 197)
		run := func(name string, op npu.Op, passes, bytes int64) {
			b.Run(fmt.Sprintf("%s/%v", name, dt), func(b *testing.B) { benchOp(b, op, passes*bytes, nil, map[int][]byte{4: positive(3152)}) })
		}
		run("layernorm", layerNorm(x, false), 2, x.PlainBytes())
		run("layernorm_add", layerNorm(x, true), 4, x.PlainBytes())
		run("layernorm_bwd", layerNormBwd(x, false), 3, x.PlainBytes())
		run("layernorm_bwd_add", layerNormBwd(x, true), 4, x.PlainBytes())
		for _, form := range []string{"none", "tanh"} {
			a := npu.Attrs{"approximate": form}
			run("gelu_"+form, npu.Op{Kind: npu.Gelu, Attrs: a, In: []npu.Desc{wide}, Out: []npu.Desc{wide}}, 2, wide.PlainBytes())
			run("gelu_bwd_"+form, npu.Op{Kind: npu.GeluBwd, Attrs: a, In: []npu.Desc{wide, wide}, Out: []npu.Desc{wide}}, 3, wide.PlainBytes())
		}
		a := npu.Attrs{"scale": 0.125}
		run("attention", npu.Op{Kind: npu.Attention, Attrs: a, In: []npu.Desc{q, q, q}, Out: []npu.Desc{q, l}}, 4, q.PlainBytes())
		run("attention_bwd", npu.Op{Kind: npu.AttentionBwd, Attrs: a, In: []npu.Desc{q, q, q, q, q, l}, Out: []npu.Desc{q, q, q}}, 8, q.PlainBytes())
	}
}
