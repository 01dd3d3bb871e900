//go:build cgo && linux

package acl

import (
	"bytes"
	"testing"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/acl/acltest"
)

// An operator whose executor cannot be reused gets a first phase for each launch; the result is the same.
func TestFreshExecutors(t *testing.T) {
	t.Run("refused", func(t *testing.T) {
		acltest.Use(t).Set("INJECT", "aclSetAclOpExecutorRepeatable:*:561000")
		fresh(t, openOn(t))
	})
	t.Run("not wanted", func(t *testing.T) {
		acltest.Use(t)
		fresh(t, openOn(t, "reuse", "false"))
	})
}

func fresh(t *testing.T, d *Device) {
	s := newStream(t, d, "s")
	y, l := adder(t, d, 4)
	calls := uint64(l.(*launch).seq.Len())
	before, _ := d.Launches()
	must(t, s.Run([]npu.Launch{l, l, l}), s.Sync(ctx))
	if got := read(t, s, y); got != 3 {
		t.Errorf("%v additions, want 3", got)
	}
	if after, n := d.Launches(); after-before != 3*calls || n != 3*calls {
		t.Errorf("%d first and %d second phases for 3 launches", after-before, n)
	}
	must(t, d.Close())
}

// By default a sum has the same bits in every run; without the switch the fake adds in another order each time, as the documents allow.
func TestDeterministic(t *testing.T) {
	for _, c := range []struct {
		value string
		same  bool
	}{{"true", true}, {"false", false}} {
		d, _ := open(t, "deterministic", c.value)
		s := newStream(t, d, "s")
		const n, rows = 64, 512
		op := npu.Op{Kind: npu.RMSNormBwd, Attrs: npu.Attrs{"eps": 1e-5},
			In:  []npu.Desc{npu.D(npu.F32, rows, n), npu.D(npu.F32, rows, n), npu.D(npu.F32, n), npu.D(npu.F32, rows)},
			Out: []npu.Desc{npu.D(npu.F32, rows, n), npu.D(npu.F32, n)}}
		k, err := d.Compile(op)
		must(t, err)
		var args []npu.Ptr
		for i, desc := range append(op.In, op.Out...) {
			p := alloc(t, d, desc.PlainBytes())
			must(t, s.CopyIn(p, floats(int(desc.Shape.Elems()), func(j int) float32 { return float32((i*7919+j*104729)%1009)/511 - 0.9 })))
			args = append(args, p)
		}
		l, err := k.Bind(args, alloc(t, d, k.Workspace()+1))
		must(t, err)
		var all [][]byte
		for range 8 {
			got := make([]byte, 4*n)
			must(t, s.Run([]npu.Launch{l}), s.CopyOut(got, args[5]), s.Sync(ctx))
			all = append(all, got)
		}
		same := true
		for _, got := range all {
			same = same && bytes.Equal(got, all[0])
		}
		if same != c.same {
			t.Errorf("deterministic=%s: all runs equal: %v", c.value, same)
		}
		must(t, d.Close())
	}
}

// What the host pays for a launch with reused executors, without, and without any call of CANN, which is gotrain's own part. The fake's work is in the
// first two: its kernels run on other threads, but it checks and copies arguments in the calls.
func BenchmarkLaunch(b *testing.B) {
	for _, c := range []struct{ name, inject string }{{"reused", ""}, {"fresh", "aclSetAclOpExecutorRepeatable:*:561000"}, {"empty", ""}} {
		b.Run(c.name, func(b *testing.B) {
			fake := acltest.Use(b)
			fake.Set("INJECT", c.inject)
			d, err := Open(npu.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer d.Close()
			desc := npu.D(npu.F32, 1)
			k, err := d.Compile(npu.Op{Kind: npu.Binary, Attrs: npu.Attrs{"fn": "mul"}, In: []npu.Desc{desc, desc}, Out: []npu.Desc{desc}})
			if err != nil {
				b.Fatal(err)
			}
			buf, err := d.Alloc(1 << 16)
			if err != nil {
				b.Fatal(err)
			}
			p := npu.Ptr{Buf: buf}
			l, err := k.Bind([]npu.Ptr{p, p.At(512), p.At(1024)}, p.At(4096))
			if err != nil {
				b.Fatal(err)
			}
			if c.name == "empty" {
				l = &launch{kernel: k.(*kernel), seq: d.lib.NewSequence(0)}
				defer l.(*launch).seq.Close()
			}
			s, err := d.NewStream("s")
			if err != nil {
				b.Fatal(err)
			}
			batch := make([]npu.Launch, 64)
			for i := range batch {
				batch[i] = l
			}
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				if err := s.Run(batch); err != nil {
					b.Fatal(err)
				}
			}
			if err := s.Sync(ctx); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(64*b.N), "ns/launch")
		})
	}
}
