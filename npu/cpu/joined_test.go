//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/gotrain/gotrain/npu"
)

// product binds y = a·bᵀ of few rows; b is [n k].
func (r *rig) product(dt npu.DType, m, k, n int, a, b, y npu.Ptr, work func(bytes int64) npu.Ptr) npu.Launch {
	r.t.Helper()
	c, err := r.d.Compile(npu.Op{
		Kind: npu.MatMul, Attrs: npu.Attrs{"ta": false, "tb": true, "bias": false},
		In: []npu.Desc{npu.D(dt, m, k), npu.D(dt, n, k)}, Out: []npu.Desc{npu.D(dt, m, n)},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	l, err := c.Bind([]npu.Ptr{a, b, y}, work(c.Workspace()))
	if err != nil {
		r.t.Fatal(err)
	}
	return l
}

// Products of one left factor that follow one another run as one where there is a team, with equal bits; one that reads what another writes, or whose result
// lies in the workspace of another, waits for it.
func TestProductsOfOneFactorRunAsOne(t *testing.T) {
	const k = 64
	for _, dt := range []npu.DType{npu.F32, npu.BF16} {
		for _, m := range []int{1, 3} {
			var want []byte
			for threads := 1; threads <= 3; threads++ {
				g := newRig(t, open(t, npu.Options{Threads: threads, Extra: map[string]string{"onednn": libraries(t)[0]}}))
				rnd := rand.New(rand.NewPCG(14, 3))
				filled := func(n int) npu.Ptr {
					p := g.alloc(int64(n * dt.Size()))
					for i := range n {
						put(p.Buf.Host(), i, dt, rnd.NormFloat64())
					}
					return p
				}
				zeroed := func(n int) npu.Ptr { return g.alloc(int64(n * dt.Size())) }
				apart := func(n int64) npu.Ptr { return g.alloc(max(n, 64)) }
				var batch []npu.Launch
				var results []npu.Ptr
				add := func(n int, a, b, y npu.Ptr, work func(int64) npu.Ptr) {
					batch, results = append(batch, g.product(dt, m, k, n, a, b, y, work)), append(results, y)
				}
				for range 10 {
					a, other := filled(m*k), filled(m*k)
					add(300, a, filled(300*k), zeroed(m*300), apart) // three that run as one, of unequal width
					add(33, a, filled(33*k), zeroed(m*33), apart)
					add(100, a, filled(100*k), zeroed(m*100), apart)
					y := zeroed(m * k)
					add(k, other, filled(k*k), y, apart)
					add(m, other, y, zeroed(m*m), apart) // reads what the one before wrote
					w := g.alloc(int64(4 * m * k))
					add(50, a, filled(50*k), zeroed(m*50), func(int64) npu.Ptr { return w })
					add(60, a, filled(60*k), w, apart) // writes where the one before may work
				}
				g.s.Profile(true)
				if err := g.s.Run(batch); err != nil {
					t.Fatal(err)
				}
				g.sync()
				var got []byte
				for _, y := range results {
					got = append(got, y.Buf.Host()...)
				}
				if want == nil {
					want = got
				}
				if !bytes.Equal(got, want) {
					t.Errorf("%s, %d rows: %d threads differ from one", dt, m, threads)
				}
				// Those that ran as one share their time evenly, without a gap.
				samples := g.s.Profile(false)
				for i, want := range []bool{threads > 1, threads > 1, false, false, false, threads > 1 && dt == npu.F32} { // float32 needs no workspace
					joined := 0
					for at := i; at+1 < len(samples); at += 7 {
						if p, q := samples[at], samples[at+1]; p.Dur == q.Dur && q.Begin == p.Begin+p.Dur {
							joined++
						}
					}
					if want && joined != 10 || !want && joined > 3 { // some may take equal times by chance
						t.Errorf("%s, %d rows, %d threads: products %d and %d ran as one in %d of 10 cases, want %t", dt, m, threads, i, i+1, joined, want)
					}
				}
			}
		}
	}
}
