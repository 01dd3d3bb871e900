//go:build cgo && linux && (amd64 || arm64)

package kern_test

import (
	"bytes"
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

// One query alone is answered as it is among several, bit by bit, although memory is walked in another order.
func TestCachedAlone(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 10))
	for _, a := range []heads{
		{b: 1, t: 150, h: 6, g: 6, d: 48}, {b: 2, t: 130, h: 4, g: 2, d: 64}, {b: 1, t: 70, h: 36, g: 4, d: 13}, {b: 1, t: 600, h: 3, g: 1, d: 128},
	} {
		for _, dt := range acts {
			m := newMemory(t, 1<<23)
			defer m.free()
			key, val, x := npu.D(dt, a.b, a.t, a.g, a.d), npu.D(dt, a.b, a.t, a.g, a.d), npu.D(dt, a.b, 1, a.h, a.d)
			size := func(d npu.Desc) int64 { return d.Shape.Elems() * int64(d.DType.Size()) }
			run := func(s int, q, k, v []byte, at []int) []byte {
				d := npu.D(dt, a.b, s, a.h, a.d)
				call, ok := kern.Prepare(npu.Op{Kind: npu.AttentionCached, Attrs: npu.Attrs{"scale": 0.3}, In: []npu.Desc{d, key, val, npu.D(npu.I32, a.b, s)},
					Out: []npu.Desc{d}})
				if !ok {
					t.Fatal("no kernel")
				}
				pos, o, work := m.take(int64(4*a.b*s)), m.take(size(d)), m.take(call.Workspace())
				for i := range a.b * s {
					put(pos, i, npu.I32, float64(at[i%s]))
				}
				cmd, err := call.Bind([]unsafe.Pointer{ptr(q), ptr(k), ptr(v), ptr(pos), ptr(o)}, ptr(work), 2)
				if err != nil {
					t.Fatal(err)
				}
				if err := cmd.Run(2); err != nil {
					t.Fatal(err)
				}
				return o
			}
			fill := func(n npu.Desc) []byte {
				b := m.take(size(n))
				for i := range int(n.Shape.Elems()) {
					put(b, i, dt, r.NormFloat64())
				}
				return b
			}
			q, k, v := fill(x), fill(key), fill(val)
			two, row := m.take(2*size(x)), int(size(x))/a.b
			for i := range a.b {
				copy(two[2*i*row:], q[i*row:(i+1)*row])
				copy(two[(2*i+1)*row:], q[i*row:(i+1)*row])
			}
			alone, both := run(1, q, k, v, []int{a.t - 2}), run(2, two, k, v, []int{a.t - 2, a.t - 2})
			for i := range a.b {
				if !bytes.Equal(alone[i*row:(i+1)*row], both[2*i*row:(2*i+1)*row]) {
					t.Errorf("%s %+v: text %d: other numbers alone", dt, a, i)
				}
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
