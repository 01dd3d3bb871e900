package fakecann

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func (d *driver) refused(t *testing.T, c *opCase, code int, text string) {
	t.Helper()
	if a := d.call(t, c, 1); a.code != code || !strings.Contains(a.text, text) {
		t.Errorf("%s: %d %q, want %d and %q", c.Op, a.code, a.text, code, text)
	}
}

// array is a plain tensor of random values.
func array(r *rand.Rand, format string, dims ...int) opArg {
	a := opArg{Kind: "T", DType: "f32", Dims: dims, Strides: make([]int, len(dims)), Storage: 1, Format: format}
	for i, d := range slices.Backward(dims) {
		a.Strides[i] = a.Storage
		a.Storage *= d
	}
	for range a.Storage {
		a.Values = append(a.Values, number(float32(r.NormFloat64())))
	}
	return a
}

// result is a plain tensor that was never written.
func result(format string, dims ...int) opArg {
	a := array(rand.New(rand.NewPCG(1, 1)), format, dims...)
	a.Values = nil
	return a
}

func ids(r *rand.Rand, n, below int) opArg {
	a := vector("i64", n)
	for range n {
		a.Values = append(a.Values, number(r.IntN(below)))
	}
	return a
}

// Operators whose order of sums is open give other bits from run to run, unless the switch is on.
func TestOrderOfSums(t *testing.T) {
	d := newDriver(t)
	r := rand.New(rand.NewPCG(7, 7))
	none := opArg{Kind: "N"}
	mask := func(v ...number) opArg { return opArg{Kind: "B", Values: v} }
	conv := []opArg{array(r, "nchw", 8, 4, 6, 6), array(r, "nchw", 8, 3, 6, 6), array(r, "nchw", 4, 3, 3, 3), list(4), list(1, 1), list(1, 1),
		list(1, 1), integer(0), list(0, 0),
		integer(1), mask(0, 1, 0), integer(0), none, result("nchw", 4, 3, 3, 3), none}
	max := array(r, "", 1, 2, 200, 8)
	for i := range max.Values {
		max.Values[i] = 0
	}
	sum := max
	sum.Values = slices.Clone(max.Values)
	for i := range sum.Values {
		sum.Values[i] = 100
	}
	attention := []opArg{array(r, "", 1, 200, 2, 4), array(r, "", 1, 200, 1, 4), array(r, "", 1, 200, 1, 4), array(r, "", 1, 200, 2, 4), none, none,
		none, none, max, sum, none,
		array(r, "", 1, 200, 2, 4), none, float(0.5), float(1), integer(1 << 30), integer(1 << 30), integer(2), {Kind: "s", Text: "BSND"},
		integer(0), integer(0),
		result("", 1, 200, 2, 4), result("", 1, 200, 1, 4), result("", 1, 200, 1, 4), none}
	cases := map[string][]opArg{
		"LinalgVectorNorm":       {array(r, "", 3000), scalar(2), list(0), integer(0), integer(0), result("")},
		"Norm":                   {array(r, "", 3000), scalar(2), list(0), integer(0), result("")},
		"ConvolutionBackward":    conv,
		"EmbeddingDenseBackward": {array(r, "", 300, 16), ids(r, 300, 4), integer(4), integer(-1), integer(0), result("", 4, 16)},
		"IndexAdd":               {array(r, "", 4, 16), integer(0), ids(r, 300, 4), array(r, "", 300, 16), scalar(1), result("", 4, 16)},
		"IndexPutImpl":           nil,
		"RmsNormGrad":            {array(r, "", 64, 16), array(r, "", 64, 16), array(r, "", 64, 1), array(r, "", 16), result("", 64, 16), result("", 16)},
		"BatchNormBackward": {array(r, "nchw", 16, 8, 3, 3), array(r, "nchw", 16, 8, 3, 3), array(r, "", 8), none, none, array(r, "", 8),
			positive(array(r, "", 8)), integer(1),
			float(1e-5), mask(1, 1, 1), result("nchw", 16, 8, 3, 3), result("", 8), result("", 8)},
		"BatchNorm": {array(r, "nchw", 16, 8, 3, 3), array(r, "", 8), array(r, "", 8), array(r, "", 8), positive(array(r, "", 8)), integer(1),
			float(0.1), float(1e-5),
			result("nchw", 16, 8, 3, 3), result("", 8), result("", 8)},
		"NLLLoss": {array(r, "", 500, 4), ids(r, 500, 4), array(r, "", 4), integer(2), integer(-100), result("", 1), result("", 1)},
		"AvgPool2dBackward": {array(r, "nchw", 1, 2, 8, 8), array(r, "nchw", 1, 2, 10, 10), list(3, 3), list(1, 1), list(0, 0), integer(0),
			integer(0), integer(0), integer(0),
			result("nchw", 1, 2, 10, 10)},
		"AdaptiveAvgPool2dBackward": {array(r, "nchw", 1, 2, 7, 7), array(r, "nchw", 1, 2, 10, 10), result("nchw", 1, 2, 10, 10)},
		"FlashAttentionScoreGrad":   attention,
	}
	target := array(r, "", 4, 16)
	cases["IndexPutImpl"] = []opArg{target, {Kind: "L", List: []opArg{ids(r, 300, 4)}}, array(r, "", 300, 16), integer(1), integer(0)}
	off := false
	for op, args := range cases {
		bits := func(on *bool, seed int) string {
			a := d.call(t, &opCase{Op: op, Args: args, Deterministic: on}, seed)
			if a.code != 0 {
				t.Fatalf("%s: %d %s", op, a.code, a.text)
			}
			var all strings.Builder
			for _, s := range a.storage {
				all.Write(s)
			}
			return all.String()
		}
		on := bits(nil, 1)
		for seed := 2; seed < 5; seed++ {
			if bits(nil, seed) != on {
				t.Errorf("%s: other bits although the switch is on", op)
			}
		}
		seen := map[string]bool{}
		for seed := 2; seed < 8; seed++ {
			seen[bits(&off, seed)] = true
		}
		if len(seen) < 2 {
			t.Errorf("%s: always the same bits although the switch is off", op)
		}
	}
}

func positive(a opArg) opArg {
	for i, v := range a.Values {
		a.Values[i] = number(float32(math.Abs(float64(v)) + 0.5))
	}
	return a
}

// An index out of range leaves the result undefined: here it is poison, or nothing is written. The rest is right, and nothing crashes.
func TestIndicesOutOfRange(t *testing.T) {
	d := newDriver(t)
	table := vector("f32", 6, 1, 2, 3, 4, 5, 6)
	table.Dims, table.Strides = []int{3, 2}, []int{2, 1}
	bad := vector("i64", 3, 2, 99, -1)
	out := vector("f32", 6)
	out.Dims, out.Strides = []int{3, 2}, []int{2, 1}
	for op, args := range map[string][]opArg{
		"Embedding":              {table, bad, out},
		"IndexSelect":            {table, integer(0), bad, out},
		"GatherV2":               {table, integer(0), bad, out},
		"Index":                  {table, {Kind: "L", List: []opArg{bad}}, out},
		"EmbeddingDenseBackward": {table, bad, integer(3), integer(-100), integer(0), out},
	} {
		a := d.call(t, &opCase{Op: op, Args: args}, 1)
		if a.code != 0 || a.outOfRange != 2 {
			t.Fatalf("%s: %d %s, %d indices out of range, want 2", op, a.code, a.text, a.outOfRange)
		}
		got := out.view(a.storage[len(a.storage)-1])
		want := []float64{5, 6, -60000, -60000, -60000, -60000}
		if op == "EmbeddingDenseBackward" {
			want = []float64{0, 0, 0, 0, 1, 2}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", op, got, want)
		}
	}
	column := bad
	column.Dims, column.Strides = []int{3, 1}, []int{1, 1}
	one := vector("f32", 3)
	one.Dims, one.Strides = []int{3, 1}, []int{1, 1}
	if got := one.view(d.ok(t, &opCase{Op: "Gather", Args: []opArg{table, integer(1), column, one}}, 1)); !slices.Equal(got, []float64{-60000,
		-60000, -60000}) {
		t.Errorf("Gather: %v", got)
	}
	add := opCase{Op: "InplaceScatter", Args: []opArg{table, integer(1), column, vectorOf(one, 1, 1, 1), integer(1)}}
	if a := d.call(t, &add, 1); a.code != 0 || !slices.Equal(table.view(a.storage[0]), []float64{1, 2, 3, 4, 5, 6}) {
		t.Errorf("InplaceScatter: %d %s", a.code, a.text)
	}
	for _, c := range []opCase{
		{Op: "ScatterNdUpdate", Args: []opArg{table, column, vectorOf(table, 7, 7, 7, 7, 7, 7)}},
		{Op: "IndexPutImpl", Args: []opArg{table, {Kind: "L", List: []opArg{bad}}, vectorOf(table, 7, 7, 7, 7, 7, 7), integer(0), integer(0)}},
	} {
		if a := d.call(t, &c, 1); a.code != 0 || !slices.Equal(table.view(a.storage[0]), []float64{1, 2, 3, 4, 7, 7}) {
			t.Errorf("%s: %d %s", c.Op, a.code, a.text)
		}
	}
}

func vectorOf(like opArg, v ...number) opArg {
	like.Values = v
	return like
}

// A query that sees nothing: an even mix of all values, or zeros where the caller asked for care.
func TestBlindQuery(t *testing.T) {
	d := newDriver(t)
	r := rand.New(rand.NewPCG(3, 3))
	none := opArg{Kind: "N"}
	v := array(r, "", 1, 4, 1, 2)
	hidden := opArg{Kind: "T", DType: "bool", Dims: []int{1, 4}, Strides: []int{4, 1}, Storage: 4, Values: []number{1, 1, 1, 1}}
	out := result("", 1, 1, 1, 2)
	for precise, want := range map[int]float64{0: float64(v.Values[0]+v.Values[2]+v.Values[4]+v.Values[6]) / 4, 2: 0} {
		got := out.view(d.ok(t, &opCase{Op: "FlashAttentionScore", Args: []opArg{array(r, "", 1, 1, 1, 2), array(r, "", 1, 4, 1, 2), v, none, none,
			none, hidden, none, float(1),
			float(1), integer(1 << 30), integer(1 << 30), integer(1), {Kind: "s", Text: "BSND"}, integer(precise), integer(0), result("", 1, 1, 1,
				8), result("", 1, 1, 1, 8), none,
			out}}, 1))
		if math.Abs(got[0]-want) > 1e-6 {
			t.Errorf("innerPrecise %d: %v, want %v", precise, got[0], want)
		}
	}
}
