//go:build cgo && linux

package acl

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/acl/acltest"
	"github.com/gotrain/gotrain/npu/ref"
)

// adam is AdamW on a device: an op that CANN wants numbers from the host for.
type adam struct {
	t     *testing.T
	d     *Device
	s     *stream
	hyper npu.Ptr
	args  []npu.Ptr // w, g, m, v
	host  [][]byte  // what these must hold
	run   []npu.Launch
}

const adamLen = 1003

func adamOp() npu.Op {
	v := npu.D(npu.F32, adamLen)
	return npu.Op{Kind: npu.AdamW, Attrs: npu.Attrs{"coupled": false}, In: []npu.Desc{npu.D(npu.F32, 9), v, v, v, v}, Out: []npu.Desc{v, v, v}}
}

func newAdam(t *testing.T, d *Device) *adam {
	a := &adam{t: t, d: d, s: newStream(t, d, "s"), hyper: alloc(t, d, 36)}
	for i := range 4 {
		a.args = append(a.args, alloc(t, d, 4*adamLen))
		a.host = append(a.host, make([]byte, 4*adamLen))
		if i < 2 {
			a.host[i] = floats(adamLen, func(j int) float32 { return float32((i*7919+j*104729)%1009)/511 - 0.98 })
		}
		must(t, a.s.CopyIn(a.args[i], a.host[i]))
	}
	return a
}

func (a *adam) bind() {
	k, err := a.d.Compile(adamOp())
	must(a.t, err)
	x := a.args
	l, err := k.Bind([]npu.Ptr{a.hyper, x[0], x[1], x[2], x[3], x[0], x[2], x[3]}, alloc(a.t, a.d, k.Workspace()+1))
	must(a.t, err)
	a.run = []npu.Launch{l}
}

// numbers are hyperparameters of step n, no two steps with one in common but eps.
func numbers(n int) []byte {
	b1, b2 := 0.9-0.05*float64(n), 0.99-0.01*float64(n)
	scale := []float64{1, 0.5}[n%2]
	return floats(9, func(i int) float32 {
		return float32([]float64{1e-2 / float64(n), scale, b1, b2, 1e-8, 0.1 * float64(n), 1 - math.Pow(b1, float64(n)), 1 - math.Pow(b2, float64(n)), float64(n)}[i])
	})
}

// locked is page-locked memory.
func (a *adam) locked(b []byte) []byte {
	h, err := a.d.AllocHost(int64(len(b)))
	must(a.t, err)
	copy(h.Host(), b)
	return h.Host()
}

// expect computes a step as package ref does.
func (a *adam) expect(hyper []byte) {
	x := a.host
	must(a.t, ref.Run(adamOp(), [][]byte{hyper, x[0], x[1], x[2], x[3], x[0], x[2], x[3]}))
}

// compare waits and compares weights and both moments. Numbers of another step would change each by 1e-3 and more somewhere.
func (a *adam) compare() {
	a.t.Helper()
	for i, name := range []string{"w", "g", "m", "v"} {
		got := make([]byte, 4*adamLen)
		must(a.t, a.s.CopyOut(got, a.args[i]), a.s.Sync(ctx))
		for j := 0; j < len(got); j += 4 {
			x, want := float64(bitsToFloat(got[j:])), float64(bitsToFloat(a.host[i][j:]))
			if !(math.Abs(x-want) <= 2e-6*max(math.Abs(want), 0.05)) {
				a.t.Fatalf("%s[%d] is %g, must be %g", name, j/4, x, want)
			}
		}
	}
}

func bitsToFloat(b []byte) float32 { return math.Float32frombits(binary.NativeEndian.Uint32(b)) }

// Every launch gets the numbers of the copy that was enqueued before it, however late copies and launches run, and wherever the numbers come from.
func TestNumbersFromTheHost(t *testing.T) {
	one, two := numbers(1), numbers(2)
	for _, c := range []struct {
		name, delay string
		steps       func(a *adam)
	}{
		{"nothing runs before all is enqueued", "", func(a *adam) {
			x, y, wait := a.locked(one), a.locked(two), make(chan bool)
			must(t, a.s.Do(func() error { <-wait; return nil }))
			must(t, a.s.CopyIn(a.hyper, x), a.s.Run(a.run), a.s.CopyIn(a.hyper, y), a.s.Run(a.run))
			close(wait)
		}},
		{"all runs late", "*:10", func(a *adam) {
			x, y := a.locked(one), a.locked(two)
			must(t, a.s.CopyIn(a.hyper, x), a.s.Run(a.run), a.s.CopyIn(a.hyper, y), a.s.Run(a.run))
		}},
		{"the memory is used again when its copy ran, before the launch did", "Adds:50,Mul:50,ApplyAdamWV2:50", func(a *adam) {
			x, ran := a.locked(one), newEvent(t, a.d)
			must(t, a.s.CopyIn(a.hyper, x), a.s.Record(ran), a.s.Run(a.run), ran.Sync(ctx))
			copy(x, two)
			must(t, a.s.CopyIn(a.hyper, x), a.s.Run(a.run))
		}},
		{"memory of Go", "*:5", func(a *adam) {
			must(t, a.s.CopyIn(a.hyper, one), a.s.Run(a.run), a.s.CopyIn(a.hyper, two), a.s.Run(a.run))
		}},
		{"on another stream", "*:5", func(a *adam) {
			x, y, up := a.locked(one), a.locked(two), newStream(t, a.d, "up")
			sent, ran, wait := newEvent(t, a.d), newEvent(t, a.d), make(chan bool)
			must(t, up.Do(func() error { <-wait; return nil }))
			must(t, up.CopyIn(a.hyper, x), up.Record(sent), a.s.Wait(sent), a.s.Run(a.run), a.s.Record(ran))
			must(t, up.Wait(ran), up.CopyIn(a.hyper, y), up.Record(sent), a.s.Wait(sent), a.s.Run(a.run))
			close(wait)
		}},
		{"in parts", "", func(a *adam) {
			must(t, a.s.CopyIn(a.hyper, two), a.s.CopyIn(a.hyper, one[:16]), a.s.CopyIn(a.hyper.At(16), one[16:]), a.s.Run(a.run))
			must(t, a.s.CopyIn(a.hyper, two), a.s.Run(a.run))
		}},
		{"by way of the device", "*:5", func(a *adam) {
			there := alloc(t, a.d, 36)
			must(t, a.s.CopyIn(a.hyper, two), a.s.CopyIn(there, one), a.s.Copy(a.hyper, there, 36), a.s.Run(a.run))
			must(t, a.s.CopyIn(there, two), a.s.Copy(a.hyper, there, 36), a.s.Run(a.run))
		}},
		{"behind other launches", "", func(a *adam) {
			_, l := adder(t, a.d, 4)
			must(t, a.s.CopyIn(a.hyper, one), a.s.Run([]npu.Launch{l, l, a.run[0], l}), a.s.CopyIn(a.hyper, two), a.s.Run([]npu.Launch{l, a.run[0]}))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			fake := acltest.Use(t)
			fake.Set("DELAY", c.delay)
			a := newAdam(t, openOn(t))
			a.bind()
			c.steps(a)
			a.expect(one)
			a.expect(two)
			a.compare()
			must(t, a.d.Close())
		})
	}
}

func newEvent(t *testing.T, d *Device) npu.Event {
	t.Helper()
	e, err := d.NewEvent()
	must(t, err)
	return e
}

// What was copied before Bind is asked of the device once, when the first launch needs it; not when launches are skipped meanwhile.
func TestNumbersThatCameEarly(t *testing.T) {
	d, _ := open(t)
	a := newAdam(t, d)
	must(t, a.s.CopyIn(a.hyper, numbers(1)), a.s.Sync(ctx))
	a.bind()
	_, l := adder(t, d, 4)
	a.s.Skip(true)
	must(t, a.s.Run(a.run), a.s.Sync(ctx))
	a.s.Skip(false)
	must(t, a.s.Run([]npu.Launch{l, a.run[0], a.run[0]}))
	a.expect(numbers(1))
	a.expect(numbers(1))
	a.compare()
	must(t, d.Close())
}

// A step that ends while the device is asked leaves nothing behind.
func TestNumbersSkippedOnTheirWay(t *testing.T) {
	fake := acltest.Use(t)
	fake.Set("DELAY", "memcpy:30")
	a := newAdam(t, openOn(t))
	must(t, a.s.CopyIn(a.hyper, numbers(1)))
	a.bind()
	must(t, a.s.Run(a.run))
	time.Sleep(5 * time.Millisecond) // any other moment is right as well
	a.s.Skip(true)
	must(t, a.s.Sync(ctx))
	a.s.Skip(false)
	must(t, a.s.Run(a.run), a.s.Sync(ctx))
	must(t, a.d.Close())
}

// One first phase for each launch, whose numbers change; the scaling of the gradient is prepared once, and not called where the scale is 1.
func TestPhasesOfAdamW(t *testing.T) {
	for _, debug := range []string{"false", "true"} { // call by call with debug_sync
		d, _ := open(t, "debug_sync", debug)
		a := newAdam(t, d)
		a.bind()
		for i, second := range []uint64{3, 2, 3, 2} {
			before1, before2 := d.Launches()
			must(t, a.s.CopyIn(a.hyper, numbers(i+1)), a.s.Run(a.run), a.s.Sync(ctx))
			after1, after2 := d.Launches()
			if after1-before1 != 1 || after2-before2 != second {
				t.Errorf("debug_sync=%s: step %d: %d first and %d second phases, want 1 and %d", debug, i+1, after1-before1, after2-before2, second)
			}
			a.expect(numbers(i + 1))
		}
		a.compare()
		must(t, d.Close())
	}
}

// The operator counts updates from 0: with t instead of t-1 the first step would be 0.74 of what it must be.
func TestFirstStepOfAdamW(t *testing.T) {
	for _, soc := range []string{"A2", "A3"} {
		fake := acltest.Use(t)
		fake.Set("SOC", soc)
		a := newAdam(t, openOn(t))
		a.bind()
		hyper := floats(9, func(i int) float32 { return []float32{1e-2, 1, 0.9, 0.999, 1e-8, 0, 0.1, 0.001, 1}[i] })
		must(t, a.s.CopyIn(a.hyper, hyper), a.s.Run(a.run))
		w, g := a.host[0], a.host[1]
		got := make([]byte, 4*adamLen)
		must(t, a.s.CopyOut(got, a.args[0]), a.s.Sync(ctx))
		for j := 0; j < len(got); j += 4 {
			step := float64(bitsToFloat(w[j:]) - bitsToFloat(got[j:]))
			want := math.Copysign(1e-2, float64(bitsToFloat(g[j:])))
			if math.Abs(float64(bitsToFloat(g[j:]))) > 1e-3 && math.Abs(step-want) > 1e-6 {
				t.Fatalf("%s: the first step is %g, must be %g, the learning rate", soc, step, want)
			}
		}
		must(t, a.d.Close())
	}
	if acltest.Version() == "8.1" {
		acltest.Again(t, "9.0", "TestFirstStepOfAdamW|TestNumbers|TestPhasesOfAdamW")
	}
}
