//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"testing"

	"github.com/gotrain/gotrain/npu"
)

// Pieces have as many pictures as the cache holds copies of, a multiple of the threads, and gradients of large weights are computed at once.
func TestPieces(t *testing.T) {
	conv := func(n, in, out, hw int) []npu.Op {
		return three(n, in, out, hw, hw, [4]int{1, 1, 1, 1}, false, false).ops(npu.BF16)
	}
	for _, c := range []struct {
		n, in, out, hw, threads int
		want                    [3]int // forward, by data, by weights
	}{
		{16, 64, 64, 56, 1, [3]int{1, 1, 1}},   // 1.6 MB a picture
		{16, 64, 64, 56, 2, [3]int{2, 2, 2}},   // no thread without a picture
		{16, 64, 64, 14, 1, [3]int{8, 8, 8}},   // 0.1 MB a picture: two pieces
		{15, 64, 64, 14, 1, [3]int{8, 8, 8}},   // and seven pictures
		{16, 512, 512, 7, 1, [3]int{4, 4, 16}}, // 9.4 MB of weights
		{16, 512, 512, 7, 4, [3]int{16, 16, 16}},
		{1, 64, 64, 56, 1, [3]int{}},
		{16, 8, 8, 4, 1, [3]int{16, 16, 16}},
	} {
		d := open(t, npu.Options{Threads: c.threads, Extra: map[string]string{"onednn": libraries(t)[0]}})
		for i, op := range conv(c.n, c.in, c.out, c.hw) {
			if got := d.pieces(op); got != c.want[i] {
				t.Errorf("%s on %d threads: %d pictures at a time, want %d", op, c.threads, got, c.want[i])
			}
		}
	}
	x := npu.D(npu.BF16, 64, 64)
	if got := open(t, npu.Options{}).pieces(npu.Op{Kind: npu.MatMul, In: []npu.Desc{x, x}, Out: []npu.Desc{x}}); got != 0 {
		t.Errorf("a product of matrices in pieces of %d", got)
	}
}

// Results are those of package ref, whatever the number of pieces, and the copies of a piece need less memory.
func TestInPieces(t *testing.T) {
	defer func(was int64) { pieceBytes = was }(pieceBytes)
	for _, lib := range libraries(t) {
		for threads := 1; threads <= 3; threads++ {
			for _, layout := range []npu.Layout{NHWC, NChw16c} {
				var sizes []int64
				for _, pieceBytes = range []int64{64 << 10, 1 << 30} {
					d := open(t, npu.Options{Threads: threads, Extra: map[string]string{"onednn": lib, "layout": string(layout), "bf16": "f32"}})
					runProducts(t, d)
					x, w := npu.D(npu.BF16, 9, 32, 14, 14), npu.D(npu.BF16, 64, 32, 1, 1)
					op := npu.Op{Kind: npu.Conv2D, In: []npu.Desc{x, w}, Out: []npu.Desc{npu.D(npu.BF16, 9, 64, 14, 14)}}
					sizes = append(sizes, must(d.Compile(must(d.Choose(op))(t)))(t).Workspace())
				}
				if sizes[0] >= sizes[1] {
					t.Errorf("%d threads, %s: workspaces of %d bytes in pieces, and %d at once", threads, layout, sizes[0], sizes[1])
				}
			}
		}
	}
}
