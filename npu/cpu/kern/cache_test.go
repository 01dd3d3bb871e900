//go:build cgo && linux && (amd64 || arm64)

package kern_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/cpu/kern"
)

func TestAttentionCached(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	for _, a := range []heads{
		{b: 1, s: 1, t: 1, h: 1, g: 1, d: 8},
		{b: 3, s: 1, t: 100, h: 4, g: 2, d: 48},
		{b: 1, s: 1, t: 1300, h: 8, g: 1, d: 64}, // chunks
		{b: 2, s: 5, t: 300, h: 2, g: 2, d: 80},
		{b: 1, s: 2, t: 520, h: 3, g: 3, d: 13},
	} {
		for _, dt := range acts {
			for _, kv := range []npu.DType{npu.F32, dt} {
				q, k := npu.D(dt, a.b, a.s, a.h, a.d), npu.D(kv, a.b, a.t, a.g, a.d)
				op := npu.Op{Kind: npu.AttentionCached, Attrs: npu.Attrs{"scale": 0.3}, In: []npu.Desc{q, k, k, npu.D(npu.I32, a.b, a.s)}, Out: []npu.Desc{q}}
				pos := make([]byte, 4*a.b*a.s)
				for i := range a.b * a.s {
					put(pos, i, npu.I32, float64(r.IntN(a.t+1)-1)) // some see nothing
				}
				put(pos, 0, npu.I32, float64(a.t-1))
				t.Run(fmt.Sprintf("%s/%s", dt, a), func(t *testing.T) { twin{op: op, in: [][]byte{nil, nil, nil, pos}}.run(t, r) })
			}
		}
	}
}

func TestCacheWrite(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	for _, dt := range acts {
		cache := npu.D(npu.F32, 3, 10, 2, 9)
		op := npu.Op{Kind: npu.CacheWrite, In: []npu.Desc{cache, npu.D(dt, 3, 4, 2, 9), npu.D(npu.I32, 3, 4)}, Out: []npu.Desc{cache}}
		pos := make([]byte, 48)
		for i, p := range []float64{0, 1, 2, 3, 9, 8, -1, -7, 5, 5, 5, -1} { // of two at one position the later stays
			put(pos, i, npu.I32, p)
		}
		twin{op: op, in: [][]byte{nil, nil, pos}, alias: map[int]int{0: 0}}.run(t, r)
	}
}

// A position behind the cache is an error that names its place, and nothing is written.
func TestCacheTooShort(t *testing.T) {
	cache, x, p := npu.D(npu.F32, 1, 4, 1, 2), npu.D(npu.F32, 1, 2, 1, 2), npu.D(npu.I32, 1, 2)
	call, ok := kern.Prepare(npu.Op{Kind: npu.CacheWrite, In: []npu.Desc{cache, x, p}, Out: []npu.Desc{cache}})
	if !ok {
		t.Fatal("no kernel")
	}
	m := newMemory(t, 1<<16)
	defer m.free()
	c, rows, pos := m.take(32), m.take(16), m.take(8)
	for i := range 4 {
		put(rows, i, npu.F32, 1)
	}
	put(pos, 1, npu.I32, 4)
	cmd, err := call.Bind([]unsafe.Pointer{ptr(c), ptr(rows), ptr(pos), ptr(c)}, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Run(1); err == nil || !strings.Contains(err.Error(), "pos[0 1]: position 4 outside 0…3\nhint: ") {
		t.Errorf("error %v", err)
	}
	for i, b := range c {
		if b != 0 {
			t.Fatalf("byte %d of the cache was written", i)
		}
	}
}
