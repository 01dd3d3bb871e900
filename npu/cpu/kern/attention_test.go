//go:build cgo && linux && (amd64 || arm64)

package kern_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/cpu/kern"
	"github.com/gotrain/gotrain/npu/ref"
)

// heads is a shape of attention.
type heads struct {
	b, s, t, h, g, d int
	causal, seg      bool
}

func (a heads) String() string {
	return fmt.Sprintf("B%d_S%d_T%d_H%d_G%d_D%d_causal=%v_seg=%v", a.b, a.s, a.t, a.h, a.g, a.d, a.causal, a.seg)
}

// ops are forward and backward.
func (a heads) ops(dt npu.DType) (fwd, bwd npu.Op) {
	q, k, l := npu.D(dt, a.b, a.s, a.h, a.d), npu.D(dt, a.b, a.t, a.g, a.d), npu.D(npu.F32, a.b, a.h, a.s)
	at := npu.Attrs{"scale": 1 / math.Sqrt(float64(a.d)), "causal": a.causal, "seg": a.seg}
	fwd = npu.Op{Kind: npu.Attention, Attrs: at, In: []npu.Desc{q, k, k}, Out: []npu.Desc{q, l}}
	bwd = npu.Op{Kind: npu.AttentionBwd, Attrs: at, In: []npu.Desc{q, q, k, k, q, l}, Out: []npu.Desc{q, k, k}}
	if a.seg {
		seg := npu.D(npu.I32, a.b, a.s)
		fwd.In, bwd.In = append(fwd.In, seg), append(bwd.In, seg)
	}
	return fwd, bwd
}

// segments are runs of random length.
func segments(r *rand.Rand, b, s int) []byte {
	out := make([]byte, 4*b*s)
	for i, n := 0, 0; i < b*s; i++ {
		if i%s == 0 || r.IntN(1+s/4) == 0 {
			n = r.IntN(5)
		}
		put(out, i, npu.I32, float64(n))
	}
	return out
}

// check compares both directions with package ref: in float32 to the rounding of sums; in bfloat16 probabilities, too, are rounded to 2^-9
// on their way into the second product.
func (a heads) check(t *testing.T, dt npu.DType) {
	t.Helper()
	r := rand.New(rand.NewPCG(7, 7))
	fwd, bwd := a.ops(dt)
	in := make([][]byte, len(fwd.In))
	for i, d := range fwd.In {
		if i < 3 {
			in[i] = random(r, d)
		} else {
			in[i] = segments(r, a.b, a.s)
		}
	}
	checkAttention(t, r, fwd, bwd, in)
}

// checkAttention runs both directions on the inputs of the first.
func checkAttention(t *testing.T, r *rand.Rand, fwd, bwd npu.Op, in [][]byte) {
	t.Helper()
	twin{op: fwd, in: in}.run(t, r)
	args := append([][]byte{}, in...)
	for _, d := range fwd.Out {
		args = append(args, make([]byte, d.PlainBytes()))
	}
	if err := ref.Run(fwd, args); err != nil {
		t.Fatal(err)
	}
	twin{op: bwd, in: append(append([][]byte{random(r, bwd.In[0])}, in[:3]...), append(args[len(in):len(in)+2:len(in)+2], in[3:]...)...)}.run(t, r)
}

func TestAttention(t *testing.T) {
	for _, a := range []heads{
		{1, 1, 1, 1, 1, 8, true, false},
		{2, 7, 7, 4, 2, 16, true, false},
		{1, 64, 64, 2, 2, 48, true, false},
		{1, 256, 256, 2, 1, 64, true, false},
		{1, 300, 300, 3, 1, 48, true, false},
		{2, 129, 129, 2, 2, 128, true, false},
		{2, 70, 70, 8, 4, 16, true, false}, // key heads enough for one unit each
		{1, 610, 610, 2, 2, 32, true, false},
		{1, 65, 65, 5, 1, 80, false, false},
		{1, 31, 200, 2, 1, 16, true, false}, // more keys than queries
		{2, 70, 300, 4, 2, 19, true, false}, // and more than a block of queries sees, by no whole number of tiles
		{1, 1, 300, 4, 2, 64, true, false},
		{1, 140, 9, 2, 2, 10, false, false},
		{2, 300, 300, 2, 1, 24, true, true},
		{1, 150, 150, 2, 2, 33, false, true},
	} {
		if testing.Short() && a.s*a.t > 30000 {
			continue
		}
		for _, dt := range acts {
			t.Run(fmt.Sprintf("%s/%s", a, dt), func(t *testing.T) { a.check(t, dt) })
		}
		t.Run(fmt.Sprintf("%s/no_amx", a), func(t *testing.T) {
			kern.Tiles(false)
			defer kern.Tiles(true)
			a.check(t, npu.BF16)
		})
	}
}

// Nothing is read behind an argument: each ends where a page begins that must not be touched.
func TestAttentionReadsNoMore(t *testing.T) {
	for _, a := range []heads{{1, 70, 70, 2, 1, 24, true, true}, {1, 33, 50, 1, 1, 10, false, false}, {2, 64, 64, 2, 2, 64, true, false}} {
		for _, dt := range acts {
			fwd, bwd := a.ops(dt)
			q, k := npu.D(dt, a.b, 1, a.h, a.d), npu.D(npu.F32, a.b, a.t, a.g, a.d)
			cached := npu.Op{Kind: npu.AttentionCached, Attrs: npu.Attrs{"scale": 1.0}, In: []npu.Desc{q, k, k, npu.D(npu.I32, a.b, 1)}, Out: []npu.Desc{q}}
			for _, op := range []npu.Op{fwd, bwd, cached} {
				for isa := range kern.ISAs() {
					call, ok := kern.PrepareFor(op, isa)
					if !ok {
						t.Fatalf("no kernel for %s", op)
					}
					var args []unsafe.Pointer
					for _, d := range append(append([]npu.Desc{}, op.In...), op.Out...) {
						args = append(args, ptr(fenced(t, d.PlainBytes())))
					}
					cmd, err := call.Bind(args, ptr(fenced(t, (call.Workspace()+63)/64*64)), 1)
					if err != nil {
						t.Fatal(err)
					}
					if err := cmd.Run(1); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
}

// Workspace grows with S·D, not with S·S, and with the threads, not with the heads.
func TestAttentionWorkspace(t *testing.T) {
	for _, dt := range acts {
		fwd, bwd := heads{4, 4096, 4096, 32, 8, 64, true, false}.ops(dt)
		for i, op := range []npu.Op{fwd, bwd} {
			call, ok := kern.Prepare(op)
			if !ok {
				t.Fatal(op)
			}
			call.ForThreads(2)
			// Keys and values of one key head, and backward two sums, in float32, and less than 1 MiB for blocks; for each thread.
			most := 2 * (int64(2+2*i)*4*4096*64 + 1<<20)
			if w := call.Workspace(); w > most {
				t.Errorf("%s wants a workspace of %d bytes, more than %d", op, w, most)
			}
		}
	}
}

// TestAttentionMasks: hidden keys, whole blocks of them too, and masks of pairs for all, each sequence, each head; queries that see nothing give zeros.
func TestAttentionMasks(t *testing.T) {
	for i, a := range []heads{
		{1, 1, 1, 1, 1, 8, false, false},
		{2, 70, 70, 2, 2, 16, false, false},
		{2, 69, 300, 4, 2, 19, false, false},
		{2, 197, 197, 2, 2, 64, false, false},
		{2, 130, 130, 2, 1, 8, true, false},
		{1, 66, 66, 2, 2, 24, true, true},
	} {
		if testing.Short() && a.s*a.t > 10000 {
			continue
		}
		for form := 1; form < 4; form++ { // keys, mask, both
			for _, dt := range acts {
				r := rand.New(rand.NewPCG(8, uint64(i*4+form)))
				fwd, bwd := a.ops(dt)
				in := [][]byte{random(r, fwd.In[0]), random(r, fwd.In[1]), random(r, fwd.In[2])}
				if a.seg {
					in = append(in, segments(r, a.b, a.s))
				}
				add := func(attr string, share float64, shape ...int) {
					d := npu.D(npu.I32, shape...)
					b := make([]byte, d.PlainBytes())
					for j := range d.Shape.Elems() {
						put(b, int(j), npu.I32, float64(7*toInt(r.Float64() < share && (j%int64(a.t) < 128 || attr == "mask" || i != 2))))
					}
					fwd.In, bwd.In, in = append(fwd.In, d), append(bwd.In, d), append(in, b)
					fwd.Attrs[attr] = true // bwd's too
				}
				if form&1 != 0 {
					add("keys", 0.6, a.b, a.t)
				}
				if form&2 != 0 {
					add("mask", 0.3, []int{1, a.b}[i%2], []int{1, a.h}[i/2%2], a.s, a.t)
				}
				t.Run(fmt.Sprintf("%s/%d/%s", a, form, dt), func(t *testing.T) { checkAttention(t, r, fwd, bwd, in) })
			}
		}
	}
}

func toInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
