//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/npu"
)

// languageCases are the kinds that tensors of tokens go through, but for attention and the loss. Heads [B S H D] come in any layout.
func languageCases(t npu.DType) []opCase {
	x, h, w, rows := npu.D(t, 2, 5, 24), npu.D(t, 2, 5, 3, 8).With(npu.Any), npu.D(npu.F32, 24), npu.D(npu.F32, 2, 5)
	ids, pos, table := npu.D(npu.I32, 2, 5), npu.D(npu.I32, 2, 5), npu.D(npu.F32, 11, 24)
	some := constant(0, 10, 3, 3, 7)
	add := npu.Attrs{"add": true, "eps": 1e-5}
	list := []opCase{
		{op: npu.Op{Kind: npu.Embedding, In: []npu.Desc{ids, npu.D(t, 11, 24)}, Out: []npu.Desc{x}}, fill: map[int]func(int) float64{0: some}},
		{
			op:    npu.Op{Kind: npu.EmbeddingBwd, Attrs: npu.Attrs{"rows": 11}, In: []npu.Desc{x, ids}, Out: []npu.Desc{table}},
			fill:  map[int]func(int) float64{1: some},
			scale: 4,
		},
		{op: npu.Op{Kind: npu.EmbeddingBwd, Attrs: npu.Attrs{"rows": 11, "add": true}, In: []npu.Desc{x, ids, table}, Out: []npu.Desc{table}},
			fill: map[int]func(int) float64{1: some}, alias: map[int]int{0: 2}, scale: 4},
		{op: npu.Op{Kind: npu.RMSNorm, Attrs: npu.Attrs{"eps": 1e-5}, In: []npu.Desc{x, w}, Out: []npu.Desc{x, rows}}, alias: map[int]int{0: 0}},
		{op: npu.Op{Kind: npu.RMSNorm, Attrs: add, In: []npu.Desc{x, w, x}, Out: []npu.Desc{x, rows, x}}, alias: map[int]int{2: 2}},
		{
			op:    npu.Op{Kind: npu.RMSNormBwd, Attrs: add, In: []npu.Desc{x, x, w, rows, x}, Out: []npu.Desc{x, w}},
			fill:  map[int]func(int) float64{3: positive(9)},
			alias: map[int]int{0: 4},
			scale: 8,
		},
		{op: npu.Op{Kind: npu.SwiGLU, In: []npu.Desc{x, x}, Out: []npu.Desc{x}}, alias: map[int]int{0: 0}},
		{op: npu.Op{Kind: npu.SwiGLUBwd, In: []npu.Desc{x, x, x}, Out: []npu.Desc{x, x}}, alias: map[int]int{0: 1, 1: 2}, scale: 4},
	}
	for _, pairs := range []string{"half", "adjacent"} {
		a := npu.Attrs{"theta": 1e4, "pairs": pairs}
		at := npu.Attrs{"theta": 1e4, "pairs": pairs, "pos": true, "inverse": true}
		list = append(
			list,
			opCase{op: npu.Op{Kind: npu.Rope, Attrs: a, In: []npu.Desc{h}, Out: []npu.Desc{h}}, alias: map[int]int{0: 0}},
			opCase{
				op:   npu.Op{Kind: npu.Rope, Attrs: at, In: []npu.Desc{h, pos}, Out: []npu.Desc{h}},
				fill: map[int]func(int) float64{1: constant(3, 400, 0, 7, 8)},
			},
		)
	}
	for i := range list {
		list[i].impl = "c:"
	}
	return list
}

// The kinds of language models run in C, and their tensors are plain even where they look like pictures and no layout is asked for.
func TestLanguageKinds(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *Device) {
		g := newRig(t, d)
		for _, dt := range floatTypes {
			for i, c := range languageCases(dt) {
				c.check(t, g, uint64(i))
				if op := must(d.Choose(c.op))(t); !isPlain(op) {
					t.Errorf("not plain: %s", op)
				}
			}
		}
	})
}

// Products of at most eight rows are C's, those of more the library's; weights are converted in C.
func TestFewRowsChosen(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *Device) {
		g := newRig(t, d)
		for _, dt := range floatTypes {
			for m, impl := range map[int]string{1: "c:fewrows:", 8: "c:fewrows:", 9: "dnnl:"} {
				op := npu.Op{
					Kind:  npu.MatMul,
					Attrs: npu.Attrs{"tb": true},
					In:    []npu.Desc{npu.D(dt, m, 50), npu.D(dt, 70, 50).With(npu.Any)},
					Out:   []npu.Desc{npu.D(dt, m, 70)},
				}
				opCase{op: op, impl: impl, scale: math.Sqrt(50)}.check(t, g, uint64(m))
			}
		}
		w := npu.Op{Kind: npu.Convert, In: []npu.Desc{npu.D(npu.F32, 30, 40)}, Out: []npu.Desc{npu.D(npu.BF16, 30, 40).With(npu.Any)}}
		opCase{op: w, impl: "c:convert:"}.check(t, g, 1)
	})
}

// A bad id is an error of the stream that names the kind and the place; nothing else happens.
func TestBadID(t *testing.T) {
	g := newRig(t, testDevice(t))
	ids, w, y := npu.D(npu.I32, 2, 3), npu.D(npu.F32, 5, 4), npu.D(npu.F32, 2, 3, 4)
	op := must(g.d.Choose(npu.Op{Kind: npu.Embedding, In: []npu.Desc{ids, w}, Out: []npu.Desc{y}}))(t)
	args := []npu.Ptr{g.alloc(ids.PlainBytes()), g.alloc(w.PlainBytes()), g.alloc(y.PlainBytes())}
	put(args[0].Buf.Host(), 5, npu.I32, 5)
	k := must(g.d.Compile(op))(t)
	l := must(k.Bind(args, npu.Ptr{}))(t)
	err := g.s.Run([]npu.Launch{l})
	if err == nil {
		err = g.s.Sync(context.Background())
	}
	if err == nil || !strings.Contains(err.Error(), "embedding") || !strings.Contains(err.Error(), "ids[1 2]: id 5 outside 0…4\nhint: ") {
		t.Errorf("%v", err)
	}
}

// In evaluation nobody wants rstd.
func TestRMSNormWithoutStatistics(t *testing.T) {
	g := newRig(t, testDevice(t))
	x, w, rows := npu.D(npu.F32, 3, 8), npu.D(npu.F32, 8), npu.D(npu.F32, 3)
	op := must(g.d.Choose(npu.Op{Kind: npu.RMSNorm, Attrs: npu.Attrs{"eps": 1e-5}, In: []npu.Desc{x, w}, Out: []npu.Desc{x, rows}}))(t)
	in := [][]byte{tensor(x, positive(3)), tensor(w, positive(4))}
	y := g.alloc(x.PlainBytes())
	g.launch(op, []npu.Ptr{g.upload(x, in[0]), g.upload(w, in[1]), y, {}})
	compare(t, "y", x, g.download(x, y), want(t, op, in)[0], 4e-6, 1)
}
