package ref_test

import (
	"math"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/ref"
)

func dI32(shape ...int) npu.Desc { return npu.D(npu.I32, shape...) }

// TestSeesNothing: a query without keys gives zeros. Causal attention always shows a query its
// own key, and a segment itself; so this needs a cache that is not filled.
func TestSeesNothing(t *testing.T) {
	q, kv := f32(1, 2, 3, 4), f32(5, 6, 7, 8, 9, 10)
	op := npu.Op{
		Kind:  npu.AttentionCached,
		Attrs: npu.Attrs{"scale": 1.0},
		In:    []npu.Desc{npu.D(npu.F32, 1, 2, 1, 2), npu.D(npu.F32, 1, 3, 1, 2), npu.D(npu.F32, 1, 3, 1, 2), dI32(1, 2)},
		Out:   []npu.Desc{npu.D(npu.F32, 1, 2, 1, 2)},
	}
	o := f32(9, 9, 9, 9)
	if err := ref.Run(op, [][]byte{q, kv, kv, i32(-1, 0), o}); err != nil {
		t.Fatal(err)
	}
	wantF32(t, o, 0, 0, 5, 6)
	if err := ref.Run(op, [][]byte{q, kv, kv, i32(1, 99), o}); err != nil { // beyond the cache: all of it
		t.Fatal(err)
	}
}

// TestResidualIsRounded: rmsnorm normalises the sum that it outputs, not the sum before rounding.
func TestResidualIsRounded(t *testing.T) {
	x := npu.D(npu.BF16, 1, 2)
	op := npu.Op{
		Kind:  npu.RMSNorm,
		Attrs: npu.Attrs{"eps": 0.0, "add": true},
		In:    []npu.Desc{x, npu.D(npu.F32, 2), x},
		Out:   []npu.Desc{x, npu.D(npu.F32, 1), x},
	}
	a, b := bf16(256, 0), bf16(1, 0) // 257 lies between the bfloat16 numbers 256 and 258; ties go to even
	y, rstd, sum := bf16(0, 0), f32(0), bf16(0, 0)
	if err := ref.Run(op, [][]byte{a, f32(1, 1), b, y, rstd, sum}); err != nil {
		t.Fatal(err)
	}
	if string(sum) != string(bf16(256, 0)) {
		t.Errorf("sum % x, want 256 and 0", sum)
	}
	wantF32(t, rstd, 1/math.Sqrt(256*256/2))
	if err := ref.Run(op, [][]byte{a, f32(1, 1), b, a, rstd, b}); err != nil { // x→y, res→sum
		t.Fatal(err)
	}
	if string(a) != string(y) || string(b) != string(sum) {
		t.Errorf("in place: y % x, sum % x; want % x, % x", a, b, y, sum)
	}
}

func bf16(v ...float32) []byte {
	var b []byte
	for _, x := range v {
		u := ref.BF16(x)
		b = append(b, byte(u), byte(u>>8))
	}
	return b
}

// TestCacheWriteInPlace: the plan binds the cache before and after to one place; rows that are not named stay, and an error leaves all.
func TestCacheWriteInPlace(t *testing.T) {
	op := npu.Op{
		Kind: npu.CacheWrite,
		In:   []npu.Desc{npu.D(npu.F32, 1, 3, 1, 1), npu.D(npu.BF16, 1, 2, 1, 1), dI32(1, 2)},
		Out:  []npu.Desc{npu.D(npu.F32, 1, 3, 1, 1)},
	}
	cache, x := f32(1, 2, 3), bf16(8, 9)
	if err := ref.Run(op, [][]byte{cache, x, i32(0, 3), cache}); err == nil {
		t.Error("a position beyond the cache: no error")
	}
	wantF32(t, cache, 1, 2, 3)
	for _, c := range []struct{ pos, want []byte }{{i32(-1, 1), f32(1, 9, 3)}, {i32(2, 2), f32(1, 9, 9)}} {
		if err := ref.Run(op, [][]byte{cache, x, c.pos, cache}); err != nil {
			t.Fatal(err)
		}
		if string(cache) != string(c.want) {
			t.Errorf("cache %v, want %v", getF32(cache), getF32(c.want))
		}
	}
}

// TestLanguageErrorsName: numbers that come with the data, and attributes, are named in the error.
func TestLanguageErrorsName(t *testing.T) {
	f := func(s ...int) npu.Desc { return npu.D(npu.F32, s...) }
	for _, c := range []struct {
		kind string
		a    npu.Attrs
		in   []npu.Desc
		out  []npu.Desc
		ints map[int][]byte
		want string
	}{
		{npu.Embedding, nil, []npu.Desc{dI32(2, 2), f(3, 1)}, []npu.Desc{f(2, 2, 1)}, map[int][]byte{0: i32(0, 1, 2, 3)}, "embedding: ids[1 1]: id 3 outside 0…2\nhint: "},
		{npu.Embedding, nil, []npu.Desc{dI32(2), f(3, 1)}, []npu.Desc{f(2, 1)}, map[int][]byte{0: i32(-1, 1)}, "ids[0]: id -1"},
		{npu.EmbeddingBwd, npu.Attrs{"rows": 3}, []npu.Desc{f(2, 1), dI32(2)}, []npu.Desc{f(3, 1)}, map[int][]byte{1: i32(2, 3)}, "embedding_bwd: ids[1]: id 3"},
		{npu.EmbeddingBwd, npu.Attrs{"rows": 3}, []npu.Desc{f(2, 1), dI32(2)}, []npu.Desc{f(4, 1)}, nil, "output 0 is f32[4 1], must be f32[3 1]"},
		{npu.RMSNorm, nil, []npu.Desc{f(2, 3), f(2)}, []npu.Desc{f(2, 3)}, nil, "w is f32[2], want f32[3]"},
		{npu.Rope, npu.Attrs{"theta": 1e4, "pairs": "half"}, []npu.Desc{f(1, 1, 1, 3)}, []npu.Desc{f(1, 1, 1, 3)}, nil, "odd width"},
		{npu.Rope, npu.Attrs{"theta": 1e4}, []npu.Desc{f(1, 1, 1, 2)}, []npu.Desc{f(1, 1, 1, 2)}, nil, `pairs is ""`},
		{npu.Rope, npu.Attrs{"theta": 1e4, "pairs": "half", "factor": 8.0}, []npu.Desc{f(1, 1, 1, 2)}, []npu.Desc{f(1, 1, 1, 2)}, nil, "scaling wants"},
		{npu.Attention, npu.Attrs{"scale": 1.0}, []npu.Desc{f(1, 2, 3, 4), f(1, 2, 2, 4), f(1, 2, 2, 4)}, []npu.Desc{f(1, 2, 3, 4)}, nil, "G a divisor of H"},
		{npu.Attention, npu.Attrs{"scale": 1.0, "causal": true}, []npu.Desc{f(1, 2, 1, 4), f(1, 1, 1, 4), f(1, 1, 1, 4)}, []npu.Desc{f(1, 2, 1, 4)}, nil, "1 keys for 2 queries"},
		{npu.Attention, nil, []npu.Desc{f(1, 1, 1, 4), f(1, 1, 1, 4), f(1, 1, 1, 4)}, []npu.Desc{f(1, 1, 1, 4)}, nil, "attribute scale"},
		{npu.CacheWrite, nil, []npu.Desc{f(1, 3, 1, 1), f(1, 2, 1, 1), dI32(1, 2)}, []npu.Desc{f(1, 3, 1, 1)}, map[int][]byte{2: i32(2, 3)}, "cache_write: pos[0 1]: position 3 outside 0…2\nhint: "},
		{npu.LinearCrossEntropy, nil, []npu.Desc{f(2, 1), f(3, 1), dI32(2)}, []npu.Desc{f()}, map[int][]byte{2: i32(2, 3)}, "linear_cross_entropy: row 1: label 3 outside 0…2\nhint: "},
		{npu.LinearCrossEntropyGrad, nil, []npu.Desc{f(1, 1), f(3, 1), dI32(1), f()}, []npu.Desc{f()}, map[int][]byte{2: i32(-1)}, "row 0: label -1"},
	} {
		op := npu.Op{Kind: c.kind, Attrs: c.a, In: c.in, Out: c.out}
		var args [][]byte
		for i, d := range append(append([]npu.Desc{}, c.in...), c.out...) {
			args = append(args, make([]byte, d.PlainBytes()))
			if c.ints[i] != nil {
				args[i] = c.ints[i]
			}
		}
		if err := ref.Run(op, args); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want %q, got %v", op, c.want, err)
		}
	}
}

// TestRopeTurnsBack: the inverse undoes it, position 0 is not turned, later ones are.
func TestRopeTurnsBack(t *testing.T) {
	x := npu.D(npu.F32, 1, 3, 2, 8)
	in, there, back := f32(make([]float32, 48)...), f32(make([]float32, 48)...), f32(make([]float32, 48)...)
	for i := range 48 {
		copy(in[4*i:], f32(float32(i%7)-3))
	}
	a := npu.Attrs{"theta": 1e4, "pairs": "half"}
	if err := ref.Run(npu.Op{Kind: npu.Rope, Attrs: a, In: []npu.Desc{x}, Out: []npu.Desc{x}}, [][]byte{in, there}); err != nil {
		t.Fatal(err)
	}
	if string(there[:64]) != string(in[:64]) {
		t.Error("position 0 is turned")
	}
	if string(there[64:]) == string(in[64:]) {
		t.Error("position 1 and 2 are not turned")
	}
	a = a.Clone()
	a["inverse"] = true
	if err := ref.Run(npu.Op{Kind: npu.Rope, Attrs: a, In: []npu.Desc{x}, Out: []npu.Desc{x}}, [][]byte{there, back}); err != nil {
		t.Fatal(err)
	}
	wantF32(t, back, getF32(in)...)
}
