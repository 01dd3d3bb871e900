package graph_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/graphtest"
	"github.com/gotrain/gotrain/graph/op"
	"github.com/gotrain/gotrain/npu"
)

// indexing has a graph for each kind that indexes with an input, "at" i32[4] or [2 2].
var indexing = map[string]struct {
	build func(b *graph.Builder) *graph.Node
	below int
	free  []int64 // allowed although outside
}{
	npu.Embedding: {func(b *graph.Builder) *graph.Node { return b.Embedding(b.Input("at", npu.I32, 4), param(b, "w", 5, 2)) }, 5, nil},
	npu.CrossEntropy: {func(b *graph.Builder) *graph.Node {
		loss, _ := b.CrossEntropy(param(b, "x", 2, 2, 3), b.Input("at", npu.I32, 2, 2), graph.IgnoreIndex(-7))
		return loss
	}, 3, []int64{-7}},
	npu.OneHot: {func(b *graph.Builder) *graph.Node {
		y, _ := b.OneHot(b.Input("at", npu.I32, 4), 3, graph.IgnoreIndex(-7))
		return y
	}, 3, []int64{-7}},
	npu.TopK: {func(b *graph.Builder) *graph.Node { return b.TopK(param(b, "x", 4, 3), b.Input("at", npu.I32, 4), 1) }, 3, []int64{-100}},
	npu.LinearCrossEntropy: {func(b *graph.Builder) *graph.Node {
		loss, _ := b.LinearCrossEntropy(param(b, "x", 4, 2), param(b, "w", 6, 2), b.Input("at", npu.I32, 4))
		return loss
	}, 6, []int64{-100}},
	npu.CacheWrite: {func(b *graph.Builder) *graph.Node {
		return b.CacheWrite(b.State("cache", []int{2, 7, 1, 2}, 0), b.Input("x", npu.F32, 2, 2, 1, 2), b.Input("at", npu.I32, 2, 2))
	}, 7, []int64{-1, -50}},
}

// A bound allows what the kernels allow, no more and no less, and every kind that rejects an index has one.
func TestBoundsAreThoseOfTheKernels(t *testing.T) {
	for _, kind := range op.Names() {
		k, _ := op.Lookup(kind)
		c, ok := indexing[kind]
		if ok != (k.Indexes != nil) {
			t.Errorf("%s has a rule for indices: %t; a row in the table: %t", kind, k.Indexes != nil, ok)
		}
		if !ok || k.Indexes == nil {
			continue
		}
		b := graph.New(graph.ForEval())
		b.Output("y", c.build(b))
		bounds := b.Bounds()
		if len(bounds) != 1 || bounds[0].Input != "at" || bounds[0].Below != c.below || bounds[0].Only != nil || len(b.Unbounded()) > 0 {
			t.Fatalf("%s: bounds %+v, unbounded %v, %v", kind, bounds, b.Unbounded(), b.Err())
		}
		g, err := b.Lower()
		if err != nil {
			t.Fatal(kind, err)
		}
		for _, v := range append([]int64{0, int64(c.below) - 1, int64(c.below), 1 << 30, -1, -2, -7, -50, -100}, c.free...) {
			m := graphtest.New(g)
			if err := m.Set("at", 0, 0, float64(v), 0); err != nil {
				t.Fatal(err)
			}
			err := m.Run()
			at, found, outside := bounds[0].Outside(npu.I32, ints(0, 0, int32(v), 0))
			want := !(v >= 0 && v < int64(c.below)) && !slices.Contains(c.free, v) && !(v < 0 && bounds[0].Negative)
			if outside != want || outside && (at != 2 || found != v) {
				t.Errorf("%s: %d is outside: %t at %d", kind, v, outside, at)
			}
			if outside != (err != nil) {
				t.Errorf("%s: %d is outside: %t, and the kernel says %v", kind, v, outside, err)
			}
		}
	}
}

func ints(v ...int32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.NativeEndian.AppendUint32(b, uint32(x))
	}
	return b
}

// Indices are followed through what only moves elements: the bound is for those that are used.
func TestBoundsFollowIndices(t *testing.T) {
	in := func(b *graph.Builder, shape ...int) *graph.Node { return b.Input("in", npu.I32, shape...) }
	for name, c := range map[string]struct {
		index func(b *graph.Builder) *graph.Node
		want  string // of each bound: its input, and an x for each element that is used
	}{
		"direct":    {func(b *graph.Builder) *graph.Node { return in(b, 2, 3) }, "in all"},
		"reshape":   {func(b *graph.Builder) *graph.Node { return b.Reshape(in(b, 2, 3), 6) }, "in all"},
		"next":      {func(b *graph.Builder) *graph.Node { return b.Slice(in(b, 2, 3), 1, 1, 3) }, "in .xx.xx"},
		"transpose": {func(b *graph.Builder) *graph.Node { return b.Slice(b.Transpose(in(b, 2, 3), 1, 0), 0, 0, 1) }, "in x..x.."},
		"twice":     {func(b *graph.Builder) *graph.Node { return b.Slice(b.Slice(in(b, 6), 0, 2, 6), 0, 1, 2) }, "in ...x.."},
		"broadcast": {func(b *graph.Builder) *graph.Node {
			return b.Slice(b.BroadcastTo(in(b, 3, 1), 2, 3, 2), 1, 1, 2)
		}, "in .x."},
		"concat": {func(b *graph.Builder) *graph.Node {
			return b.Slice(b.Slice(b.Concat(1, in(b, 2, 2), b.Input("other", npu.I32, 2, 3)), 1, 1, 4), 0, 0, 1)
		}, "in .x.. other xx...."},
		"wider":    {func(b *graph.Builder) *graph.Node { return b.Cast(b.Input("wide", npu.I64, 4), npu.I32) }, "wide all"},
		"computed": {func(b *graph.Builder) *graph.Node { return b.Cast(b.Input("x", npu.F32, 4), npu.I32) }, `unbounded embedding "layer"`},
		"constant": {func(b *graph.Builder) *graph.Node { return b.Const(npu.I32, 1, 4) }, ""},
	} {
		b := graph.New(graph.ForEval())
		var y *graph.Node
		b.In("layer", func() { y = b.Embedding(c.index(b), param(b, "w", 5, 2)) })
		b.Output("y", y)
		if err := b.Err(); err != nil {
			t.Fatal(name, err)
		}
		var got []string
		for _, x := range b.Bounds() {
			used := "all"
			if x.Only != nil {
				used = strings.NewReplacer("true", "x", "false", ".", " ", "", "[", "", "]", "").Replace(fmt.Sprint(x.Only))
			}
			got = append(got, x.Input+" "+used)
		}
		for _, u := range b.Unbounded() {
			got = append(got, "unbounded "+u)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", name, strings.Join(got, " "), c.want)
		}
	}
}

// An input that is used as an index twice, into tables of different sizes, has both bounds; equal ones are listed once.
func TestBoundsOfAnInputUsedTwice(t *testing.T) {
	b := graph.New(graph.ForEval())
	labels := b.Input("labels", npu.I32, 4)
	x := param(b, "x", 4, 3)
	loss, _ := b.CrossEntropy(x, labels)
	b.Output("loss", loss)
	b.Output("top1", b.TopK(x, labels, 1))
	b.Output("y", b.Embedding(labels, param(b, "w", 9, 2)))
	bounds := b.Bounds()
	if len(bounds) != 2 || bounds[0].Below != 3 || !bounds[0].Ignores || bounds[1].Below != 9 || bounds[1].Ignores {
		t.Fatalf("%+v", bounds)
	}
	only := graph.Bound{Below: 2, Only: []bool{true, false, true}}
	for want, mem := range map[int][]byte{-1: ints(0, 9, 1), 2: ints(1, 9, 2), 0: ints(-1, 0, 5)} {
		if at, _, outside := only.Outside(npu.I32, mem); outside != (want >= 0) || outside && at != want {
			t.Errorf("found at %d (%t), want %d", at, outside, want)
		}
	}
	wide := binary.NativeEndian.AppendUint64(nil, 1<<32)
	if _, v, outside := only.Outside(npu.I64, wide); !outside || v != 1<<32 {
		t.Errorf("2^32 as i64: %d, %t", v, outside)
	}
}

// BenchmarkOutside checks the tokens of a batch of 8 sequences of 2048.
func BenchmarkOutside(b *testing.B) {
	mem, bound := ints(make([]int32, 8*2048)...), graph.Bound{Below: 128256}
	b.SetBytes(int64(len(mem)))
	for b.Loop() {
		if _, _, outside := bound.Outside(npu.I32, mem); outside {
			b.Fatal("outside")
		}
	}
}
