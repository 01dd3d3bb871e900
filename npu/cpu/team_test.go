//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"testing"
	"time"

	"github.com/gotrain/gotrain/npu"
)

// chain is n small kernels, each of which reads what the one before wrote: y += x. With every, a matrix product stands after as many.
func (r *rig) chain(n, elems, every int, x, y npu.Ptr) (batch []npu.Launch) {
	r.t.Helper()
	d := npu.D(npu.F32, elems)
	k, err := r.d.Compile(npu.Op{Kind: npu.Binary, Attrs: npu.Attrs{"fn": "add"}, In: []npu.Desc{d, d}, Out: []npu.Desc{d}})
	if err != nil {
		r.t.Fatal(err)
	}
	l, err := k.Bind([]npu.Ptr{x, y, y}, npu.Ptr{})
	if err != nil {
		r.t.Fatal(err)
	}
	product := r.matmul(64)
	for i := range n {
		if every > 0 && i%every == every-1 {
			batch = append(batch, product)
		}
		batch = append(batch, l)
	}
	return batch
}

// Long runs of small kernels have a team, short ones between matrix products have OpenMP's: each kernel sees what the one before wrote, with any number of
// threads, and also when the threads of the team have gone to sleep.
func TestTeamKeepsOrder(t *testing.T) {
	const n, elems = 200, 50000
	for _, every := range []int{0, 3, 40} {
		for threads := 1; threads <= 4; threads++ { // more than there are processors, on small machines
			g := newRig(t, open(t, npu.Options{Threads: threads, Extra: map[string]string{"onednn": libraries(t)[0]}}))
			if has := g.s.(*stream).team != nil; has != (threads > 1) {
				t.Fatalf("%d threads: a team: %t", threads, has)
			}
			x, y := g.alloc(4*elems), g.alloc(4*elems)
			for i := range elems {
				put(x.Buf.Host()[4*i:], 0, npu.F32, float64(i%7))
			}
			batch := g.chain(n, elems, every, x, y)
			for range 3 {
				if err := g.s.Run(batch); err != nil {
					t.Fatal(err)
				}
				g.sync()
				time.Sleep(time.Millisecond)
			}
			for i := range elems {
				if v := get(y.Buf.Host(), i, npu.F32); v != float64(3*n*(i%7)) {
					t.Fatalf("products after %d, %d threads: element %d is %g, want %d", every, threads, i, v, 3*n*(i%7))
				}
			}
		}
	}
}

// A profile has every launch, in order, whether a team ran it or not.
func TestTeamIsProfiled(t *testing.T) {
	g := newRig(t, open(t, npu.Options{Threads: 2, Extra: map[string]string{"onednn": libraries(t)[0]}}))
	batch := g.chain(50, 1000, 20, g.alloc(4000), g.alloc(4000))
	g.s.Profile(true)
	if err := g.s.Run(batch); err != nil {
		t.Fatal(err)
	}
	g.sync()
	got := g.s.Profile(false)
	if len(got) != len(batch) {
		t.Fatalf("%d samples of %d launches", len(got), len(batch))
	}
	for i, s := range got {
		if s.Launch != batch[i] || i > 0 && s.Begin < got[i-1].Begin+got[i-1].Dur {
			t.Errorf("sample %d is not launch %d, or begins before the one before it ended", i, i)
		}
	}
}

func BenchmarkSmallKernels(b *testing.B) {
	const elems = 40000
	for _, every := range []int{0, 10} { // with a team, and without
		b.Run(map[int]string{0: "team", 10: "regions"}[every], func(b *testing.B) {
			g := newRig(b, open(b, npu.Options{Threads: 2, Extra: map[string]string{"onednn": libraries(b)[0]}}))
			batch := g.chain(100, elems, every, g.alloc(4*elems), g.alloc(4*elems))
			for b.Loop() {
				if err := g.s.Run(batch); err != nil {
					b.Fatal(err)
				}
				g.sync()
			}
		})
	}
}
