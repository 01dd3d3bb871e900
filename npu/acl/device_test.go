//go:build cgo && linux

package acl

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/gotrain/gotrain/npu"
)

func floats(n int, f func(int) float32) []byte {
	b := make([]byte, 0, 4*n)
	for i := range n {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f(i)))
	}
	return b
}

// An addition on the device, with everything on its way: memory, copies of Go's memory and of page-locked memory, a kernel, events, Sync.
func TestAdd(t *testing.T) {
	d, fake := open(t)
	s := newStream(t, d, "compute")
	const n = 1000
	op := npu.Op{Kind: npu.Binary, Attrs: npu.Attrs{"fn": "add"}, In: []npu.Desc{npu.D(npu.F32, n), npu.D(npu.F32, n)}, Out: []npu.Desc{npu.D(npu.F32, n)}}
	op, err := d.Choose(op)
	must(t, err)
	k, err := d.Compile(op)
	must(t, err)
	a, b, y := alloc(t, d, 4*n), alloc(t, d, 4*n), alloc(t, d, 4*n)
	var ws npu.Ptr
	if k.Workspace() > 0 {
		ws = alloc(t, d, k.Workspace())
	}
	l, err := k.Bind([]npu.Ptr{a, b, y}, ws)
	must(t, err)
	host, err := d.AllocHost(4 * n)
	must(t, err)
	copy(host.Host(), floats(n, func(i int) float32 { return float32(i) }))
	got := make([]byte, 4*n)
	must(t, s.CopyIn(a, host.Host()), s.CopyIn(b, floats(n, func(i int) float32 { return float32(2 * i) })))
	must(t, s.Run([]npu.Launch{l}), s.CopyOut(got, y), s.Sync(ctx))
	if want := floats(n, func(i int) float32 { return float32(3 * i) }); !bytes.Equal(got, want) {
		t.Errorf("wrong sum")
	}
	must(t, d.Close())
	st := fake.Stats()
	if st.DeviceThreads[0] == 0 || st.PageableCopies != 0 {
		t.Errorf("%+v", st)
	}
}
