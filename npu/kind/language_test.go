package kind

import (
	"testing"

	"github.com/gotrain/gotrain/npu"
)

func bf16(s ...int) npu.Desc { return npu.D(npu.BF16, s...) }

func i32(s ...int) npu.Desc { return npu.D(npu.I32, s...) }

var (
	half   = npu.Attrs{"theta": 1e4, "pairs": "half"}
	placed = npu.Attrs{"theta": 1e4, "pairs": "adjacent", "pos": true}
	scaled = npu.Attrs{"scale": 0.5}
	packed = npu.Attrs{"scale": 0.5, "causal": true, "seg": true}
)

// languageShapes are rows of TestShapes.
var languageShapes = []shapeCase{
	{npu.Embedding, nil, []npu.Desc{i32(2, 3), f32(9, 4)}, []npu.Desc{f32(2, 3, 4)}},
	{npu.Embedding, nil, []npu.Desc{i32(), bf16(9, 4)}, []npu.Desc{bf16(4)}},
	{npu.EmbeddingBwd, npu.Attrs{"rows": 9}, []npu.Desc{bf16(2, 3, 4), i32(2, 3)}, []npu.Desc{f32(9, 4)}},
	{npu.EmbeddingBwd, npu.Attrs{"rows": 9, "add": true}, []npu.Desc{bf16(2, 4), i32(2), f32(9, 4)}, []npu.Desc{f32(9, 4)}},
	{npu.RMSNorm, nil, []npu.Desc{bf16(2, 3, 4), f32(4)}, []npu.Desc{bf16(2, 3, 4), f32(2, 3)}},
	{npu.RMSNorm, npu.Attrs{"add": true, "eps": 1e-6}, []npu.Desc{f32(4), f32(4), f32(4)}, []npu.Desc{f32(4), f32(), f32(4)}},
	{npu.RMSNormBwd, npu.Attrs{"add": true}, []npu.Desc{bf16(2, 4), bf16(2, 4), f32(4), f32(2), bf16(2, 4)}, []npu.Desc{bf16(2, 4), f32(4)}},
	{npu.LayerNorm, nil, []npu.Desc{bf16(2, 3, 4), f32(4), f32(4)}, []npu.Desc{bf16(2, 3, 4), f32(2, 3), f32(2, 3)}},
	{npu.LayerNorm, npu.Attrs{"add": true, "eps": 1e-6}, []npu.Desc{f32(4), f32(4), f32(4), f32(4)}, []npu.Desc{f32(4), f32(), f32(), f32(4)}},
	{
		npu.LayerNormBwd,
		npu.Attrs{"add": true},
		[]npu.Desc{bf16(2, 4), bf16(2, 4), f32(4), f32(2), f32(2), bf16(2, 4)},
		[]npu.Desc{bf16(2, 4), f32(4), f32(4)},
	},
	{npu.Gelu, npu.Attrs{"approximate": "tanh"}, []npu.Desc{bf16(2, 3)}, []npu.Desc{bf16(2, 3)}},
	{npu.GeluBwd, nil, []npu.Desc{f32(2, 3), f32(2, 3)}, []npu.Desc{f32(2, 3)}},
	{npu.Rope, half, []npu.Desc{bf16(2, 3, 4, 6)}, []npu.Desc{bf16(2, 3, 4, 6)}},
	{npu.Rope, placed, []npu.Desc{f32(2, 3, 4, 6), i32(2, 3)}, []npu.Desc{f32(2, 3, 4, 6)}},
	{npu.Attention, scaled, []npu.Desc{bf16(2, 3, 4, 6), bf16(2, 2, 2, 6), bf16(2, 2, 2, 6)}, []npu.Desc{bf16(2, 3, 4, 6), f32(2, 4, 3)}},
	{npu.Attention, packed, []npu.Desc{f32(2, 3, 4, 6), f32(2, 3, 1, 6), f32(2, 3, 1, 6), i32(2, 3)}, []npu.Desc{f32(2, 3, 4, 6), f32(2, 4, 3)}},
	{
		npu.Attention,
		npu.Attrs{"scale": 1.0, "keys": true, "mask": true},
		[]npu.Desc{f32(2, 3, 4, 6), f32(2, 5, 4, 6), f32(2, 5, 4, 6), i32(2, 5), i32(1, 4, 3, 5)},
		[]npu.Desc{f32(2, 3, 4, 6), f32(2, 4, 3)},
	},
	{
		npu.AttentionBwd,
		packed,
		[]npu.Desc{f32(2, 3, 4, 6), f32(2, 3, 4, 6), f32(2, 3, 1, 6), f32(2, 3, 1, 6), f32(2, 3, 4, 6), f32(2, 4, 3), i32(2, 3)},
		[]npu.Desc{f32(2, 3, 4, 6), f32(2, 3, 1, 6), f32(2, 3, 1, 6)},
	},
	{npu.AttentionCached, scaled, []npu.Desc{bf16(2, 1, 4, 6), f32(2, 9, 2, 6), f32(2, 9, 2, 6), i32(2, 1)}, []npu.Desc{bf16(2, 1, 4, 6)}},
	{npu.CacheWrite, nil, []npu.Desc{f32(2, 9, 2, 6), bf16(2, 1, 2, 6), i32(2, 1)}, []npu.Desc{f32(2, 9, 2, 6)}},
	{npu.SwiGLU, nil, []npu.Desc{bf16(2, 3), bf16(2, 3)}, []npu.Desc{bf16(2, 3)}},
	{npu.SwiGLUBwd, nil, []npu.Desc{f32(3), f32(3), f32(3)}, []npu.Desc{f32(3), f32(3)}},
	{npu.LinearCrossEntropy, nil, []npu.Desc{bf16(6, 3), bf16(7, 3), i32(6)}, []npu.Desc{f32(), f32(), f32(6)}},
	{npu.LinearCrossEntropyBwd, npu.Attrs{"ignore_index": 0}, []npu.Desc{bf16(6, 3), bf16(7, 3), i32(6), f32(6), f32()}, []npu.Desc{bf16(6, 3), f32(7, 3)}},
	{npu.LinearCrossEntropyGrad, nil, []npu.Desc{bf16(6, 3), bf16(7, 3), i32(6), f32()}, []npu.Desc{f32(), f32(), f32(6), bf16(6, 3), f32(7, 3)}},
}

// languageMistakes are rows of TestBadCalls.
var languageMistakes = []badCase{
	{npu.Embedding, nil, []npu.Desc{npu.D(npu.I64, 2), f32(9, 4)}, "ids is i64, want i32"},
	{npu.Embedding, nil, []npu.Desc{i32(2), f32(9)}, "w has rank 1"},
	{npu.Embedding, nil, []npu.Desc{i32(2), i32(9, 4)}, "w is i32, want a float"},
	{npu.EmbeddingBwd, nil, []npu.Desc{f32(2, 4), i32(2)}, "attribute rows is 0"},
	{npu.EmbeddingBwd, npu.Attrs{"rows": 9}, []npu.Desc{f32(3, 4), i32(2)}, "not a row for each"},
	{npu.EmbeddingBwd, npu.Attrs{"rows": 9}, []npu.Desc{f32(), i32()}, "not a row for each"},
	{npu.EmbeddingBwd, npu.Attrs{"rows": 9, "add": true}, []npu.Desc{f32(2, 4), i32(2), f32(8, 4)}, "acc is f32[8 4]"},
	{npu.EmbeddingBwd, npu.Attrs{"rows": 9, "add": true}, []npu.Desc{f32(2, 4), i32(2)}, "takes the inputs dy, ids, acc, got 2"},
	{npu.RMSNorm, nil, []npu.Desc{f32(2, 4), f32(2)}, "w is f32[2]"},
	{npu.RMSNorm, nil, []npu.Desc{bf16(2, 4), bf16(4)}, "w is bf16[4]"},
	{npu.RMSNorm, nil, []npu.Desc{f32(), f32()}, "x is a scalar"},
	{npu.RMSNorm, npu.Attrs{"eps": -1.0}, []npu.Desc{f32(2, 4), f32(4)}, "eps is -1"},
	{npu.RMSNorm, npu.Attrs{"add": true}, []npu.Desc{f32(2, 4), f32(4), f32(4)}, "res is"},
	{npu.RMSNormBwd, nil, []npu.Desc{f32(2, 4), f32(2, 4), f32(4), f32(4)}, "rstd is f32[4]"},
	{npu.RMSNormBwd, nil, []npu.Desc{f32(2, 3), f32(2, 4), f32(4), f32(2)}, "dy is"},
	{npu.LayerNorm, nil, []npu.Desc{f32(2, 4), f32(2), f32(2)}, "w is f32[2]"},
	{npu.LayerNorm, nil, []npu.Desc{f32(2, 4), f32(4), f32(2)}, "b is f32[2]"},
	{npu.LayerNorm, nil, []npu.Desc{f32(), f32(), f32()}, "x is a scalar"},
	{npu.LayerNorm, npu.Attrs{"eps": 2.0}, []npu.Desc{f32(2, 4), f32(4), f32(4)}, "eps is 2"},
	{npu.LayerNorm, npu.Attrs{"add": true}, []npu.Desc{f32(2, 4), f32(4), f32(4), f32(4)}, "res is"},
	{npu.LayerNormBwd, nil, []npu.Desc{f32(2, 4), f32(2, 4), f32(4), f32(4), f32(2)}, "mean is f32[4]"},
	{npu.LayerNormBwd, nil, []npu.Desc{f32(2, 4), f32(2, 4), f32(4), f32(2), f32(4)}, "rstd is f32[4]"},
	{npu.LayerNormBwd, nil, []npu.Desc{f32(2, 3), f32(2, 4), f32(4), f32(2), f32(2)}, "dy is"},
	{npu.Gelu, npu.Attrs{"approximate": "erf"}, []npu.Desc{f32(2)}, `approximate is "erf", want none or tanh`},
	{npu.GeluBwd, nil, []npu.Desc{f32(2), f32(3)}, "x is f32[3]"},
	{npu.Rope, half, []npu.Desc{f32(2, 3, 4)}, "x has rank 3"},
	{npu.Rope, half, []npu.Desc{f32(1, 1, 1, 5)}, "heads of odd width"},
	{npu.Rope, npu.Attrs{"theta": 1e4, "pairs": "quarter"}, []npu.Desc{f32(1, 1, 1, 2)}, `pairs is "quarter"`},
	{npu.Rope, npu.Attrs{"pairs": "half"}, []npu.Desc{f32(1, 1, 1, 2)}, "theta is 0"},
	{
		npu.Rope,
		npu.Attrs{"theta": 1e4, "pairs": "half", "factor": 8.0, "low": 4.0, "high": 1.0, "original": 8192},
		[]npu.Desc{f32(1, 1, 1, 2)},
		"got low 4, high 1, original 8192",
	},
	{npu.Rope, placed, []npu.Desc{f32(2, 3, 4, 6), i32(3)}, "pos is i32[3], want i32[2 3]"},
	{npu.Attention, scaled, []npu.Desc{f32(2, 3, 4, 6), f32(2, 3, 3, 6), f32(2, 3, 3, 6)}, "G a divisor of H"},
	{npu.Attention, scaled, []npu.Desc{f32(2, 3, 4, 6), f32(2, 3, 4, 5), f32(2, 3, 4, 5)}, "want [B S H D] and [B T G D]"},
	{npu.Attention, scaled, []npu.Desc{f32(2, 3, 4, 6), f32(2, 3, 4, 6), f32(2, 2, 4, 6)}, "v is"},
	{npu.Attention, scaled, []npu.Desc{bf16(2, 3, 4, 6), f32(2, 3, 4, 6), f32(2, 3, 4, 6)}, "must be of one type"},
	{npu.Attention, nil, []npu.Desc{f32(2, 3, 4, 6), f32(2, 3, 4, 6), f32(2, 3, 4, 6)}, "scale is 0"},
	{npu.Attention, npu.Attrs{"scale": 1.0, "causal": true}, []npu.Desc{f32(2, 3, 4, 6), f32(2, 2, 4, 6), f32(2, 2, 4, 6)}, "2 keys for 3 queries"},
	{
		npu.Attention,
		npu.Attrs{"scale": 1.0, "keys": true},
		[]npu.Desc{f32(2, 3, 4, 6), f32(2, 5, 4, 6), f32(2, 5, 4, 6), i32(2, 3)},
		"keys is i32[2 3], want i32[2 5]",
	},
	{
		npu.Attention,
		npu.Attrs{"scale": 1.0, "mask": true},
		[]npu.Desc{f32(2, 3, 4, 6), f32(2, 5, 4, 6), f32(2, 5, 4, 6), i32(2, 2, 3, 5)},
		"mask is i32[2 2 3 5], want i32[2 or 1, 4 or 1, 3, 5]",
	},
	{npu.Attention, packed, []npu.Desc{f32(2, 3, 4, 6), f32(2, 4, 4, 6), f32(2, 4, 4, 6), i32(2, 3)}, "as many keys as queries, got 4 and 3"},
	{npu.Attention, packed, []npu.Desc{f32(2, 3, 4, 6), f32(2, 3, 4, 6), f32(2, 3, 4, 6), f32(2, 3)}, "seg is f32[2 3]"},
	{
		npu.AttentionBwd,
		scaled,
		[]npu.Desc{f32(2, 3, 4, 6), f32(2, 3, 4, 6), f32(2, 3, 4, 6), f32(2, 3, 4, 6), f32(2, 3, 4, 6), f32(2, 3, 4)},
		"lse is f32[2 3 4], want f32[2 4 3]",
	},
	{npu.AttentionBwd, scaled, []npu.Desc{f32(2, 3, 4, 5), f32(2, 3, 4, 6), f32(2, 3, 4, 6), f32(2, 3, 4, 6), f32(2, 3, 4, 6), f32(2, 4, 3)}, "do is"},
	{npu.AttentionCached, scaled, []npu.Desc{f32(2, 1, 4, 6), f32(2, 9, 4, 6), f32(2, 9, 4, 6), i32(2)}, "pos is i32[2], want i32[2 1]"},
	{npu.AttentionCached, nil, []npu.Desc{f32(2, 1, 4, 6), f32(2, 9, 4, 6), f32(2, 9, 4, 6), i32(2, 1)}, "scale is 0"},
	{npu.CacheWrite, nil, []npu.Desc{bf16(2, 9, 2, 6), f32(2, 1, 2, 6), i32(2, 1)}, "cache is bf16"},
	{npu.CacheWrite, nil, []npu.Desc{f32(2, 9, 2, 6), f32(1, 1, 2, 6), i32(1, 1)}, "want [B T G D] and [B S G D]"},
	{npu.CacheWrite, nil, []npu.Desc{f32(2, 9, 2, 6), f32(2, 1, 2, 6), i32(2)}, "pos is i32[2]"},
	{npu.SwiGLU, nil, []npu.Desc{f32(2, 3), f32(3)}, "up is"},
	{npu.SwiGLU, nil, []npu.Desc{i32(3), i32(3)}, "want a float"},
	{npu.SwiGLUBwd, nil, []npu.Desc{f32(3), f32(2), f32(3)}, "gate is"},
	{npu.LinearCrossEntropy, nil, []npu.Desc{f32(6, 3), f32(7, 4), i32(6)}, "want [N D] and [V D] of one type"},
	{npu.LinearCrossEntropy, nil, []npu.Desc{bf16(6, 3), f32(7, 3), i32(6)}, "of one type"},
	{npu.LinearCrossEntropy, nil, []npu.Desc{f32(6, 3), f32(7, 3), i32(7)}, "labels is i32[7], want i32[6]"},
	{npu.LinearCrossEntropy, npu.Attrs{"smoothing": 0.1}, []npu.Desc{f32(6, 3), f32(7, 3), i32(6)}, `no attribute "smoothing"`},
	{npu.LinearCrossEntropyBwd, nil, []npu.Desc{f32(6, 3), f32(7, 3), i32(6), f32(7), f32()}, "lse is"},
	{npu.LinearCrossEntropyGrad, nil, []npu.Desc{f32(6, 3), f32(7, 3), i32(6), f32(1)}, "dloss is f32[1]"},
}

// TestLanguageRows: every kind of language models has a row of each sort.
func TestLanguageRows(t *testing.T) {
	good, bad := map[string]bool{}, map[string]bool{}
	for _, c := range languageShapes {
		good[c.kind] = true
	}
	for _, c := range languageMistakes {
		bad[c.kind] = true
	}
	for _, k := range []string{npu.Embedding, npu.EmbeddingBwd, npu.RMSNorm, npu.RMSNormBwd,
		npu.LayerNorm, npu.LayerNormBwd, npu.Gelu, npu.GeluBwd, npu.Rope, npu.Attention, npu.AttentionBwd,
		npu.AttentionCached, npu.CacheWrite,
		npu.SwiGLU, npu.SwiGLUBwd, npu.LinearCrossEntropy, npu.LinearCrossEntropyBwd, npu.LinearCrossEntropyGrad} {
		if !good[k] || !bad[k] {
			t.Errorf("%s: good row %t, bad row %t", k, good[k], bad[k])
		}
	}
}
