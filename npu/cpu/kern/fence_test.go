//go:build cgo && linux && (amd64 || arm64)

package kern_test

import (
	"math/rand/v2"
	"syscall"
	"testing"
	"unsafe"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/cpu/kern"
)

// fenced is memory of n bytes that ends where no memory is: whoever reads or writes behind it crashes.
func fenced(t *testing.T, n int64) []byte {
	page := int64(syscall.Getpagesize())
	size := (n + page - 1) / page * page
	m, err := syscall.Mmap(-1, 0, int(size+page), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Munmap(m) })
	if err := syscall.Mprotect(m[size:], syscall.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	return m[size-n : size : size]
}

// TestFenced: the kernels of language models neither read nor write behind their arguments.
func TestFenced(t *testing.T) {
	r := rand.New(rand.NewPCG(27, 1))
	var ops []npu.Op
	for _, dt := range acts {
		for _, d := range []int{1, 2, 9, 16, 30, 66, 127} {
			x, w, ids := npu.D(dt, 3, d), npu.D(dt, 5, d), npu.D(npu.I32, 3)
			two := []npu.Desc{x, x}
			ops = append(ops, npu.Op{Kind: npu.Embedding, In: []npu.Desc{ids, w}, Out: []npu.Desc{x}},
				npu.Op{Kind: npu.EmbeddingBwd, Attrs: npu.Attrs{"rows": 5}, In: []npu.Desc{x, ids}, Out: []npu.Desc{npu.D(npu.F32, 5, d)}},
				npu.Op{Kind: npu.SwiGLU, In: two, Out: two[:1]}, npu.Op{Kind: npu.SwiGLUBwd, In: []npu.Desc{x, x, x}, Out: two},
				rmsNorm(x, true), rmsNormBwd(x, true), fewRows(dt, npu.F32, 3, d, 7, true), fewRows(dt, dt, 8, d, 3, false))
			for _, pairs := range []string{"half", "adjacent"} {
				h := npu.D(dt, 1, 3, 2, 2*d)
				ops = append(ops, npu.Op{Kind: npu.Rope, Attrs: npu.Attrs{"theta": 1e4, "pairs": pairs}, In: []npu.Desc{h}, Out: []npu.Desc{h}})
			}
		}
	}
	for _, op := range ops {
		for isa := range kern.ISAs() {
			call, ok := kern.PrepareFor(op, isa)
			if !ok {
				t.Fatalf("no kernel for %s", op)
			}
			var args []unsafe.Pointer
			for i, d := range append(append([]npu.Desc{}, op.In...), op.Out...) {
				b := fenced(t, d.PlainBytes())
				if i < len(op.In) && d.DType != npu.I32 {
					copy(b, random(r, d))
				}
				args = append(args, ptr(b))
			}
			cmd, err := call.Bind(args, ptr(fenced(t, call.Workspace())), 1)
			if err == nil {
				err = cmd.Run(2)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}
