//go:build cgo && linux

package acl

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/acl/acltest"
	"github.com/gotrain/gotrain/npu/acl/cann"
)

// Memory is zeroed, also when it was used before, and comes back.
func TestAlloc(t *testing.T) {
	d, fake := open(t)
	s := newStream(t, d, "s")
	for _, n := range []int64{1, 511, 512, 4096, 70 << 20} {
		for range 2 {
			b, err := d.Alloc(n)
			must(t, err)
			if b.Bytes() != n || b.Host() != nil {
				t.Errorf("%d bytes, host %v", b.Bytes(), b.Host() != nil)
			}
			a, err := d.address(npu.Ptr{Buf: b}, n)
			must(t, err)
			if a%512 != 0 {
				t.Errorf("at %#x", a)
			}
			got, ones := make([]byte, n), bytes.Repeat([]byte{0xff}, int(n))
			must(t, s.CopyOut(got, npu.Ptr{Buf: b}), s.CopyIn(npu.Ptr{Buf: b}, ones), s.Sync(ctx))
			if !bytes.Equal(got, make([]byte, n)) {
				t.Errorf("%d bytes are not zeroed", n)
			}
			must(t, b.Free(), b.Free())
		}
	}
	if n := fake.Stats().DeviceBlocks; n > 1 {
		t.Errorf("%d blocks are kept", n)
	}
	if held, free, total, err := d.Memory(); err != nil || held <= 0 || free <= 0 || total < free {
		t.Errorf("memory %d, %d, %d, %v", held, free, total, err)
	}
	for _, n := range []int64{-1, 1 << 50} {
		if _, err := d.Alloc(n); err == nil {
			t.Errorf("alloc of %d bytes", n)
		}
		if _, err := d.AllocHost(n); err == nil {
			t.Errorf("alloc of %d bytes on the host", n)
		}
	}
	b, err := d.Alloc(0)
	must(t, err)
	must(t, b.Free())
}

func TestOutOfMemory(t *testing.T) {
	d, _ := open(t)
	keep, err := d.Alloc(1 << 30)
	must(t, err)
	_, err = d.Alloc(64 << 30)
	var e *cann.Error
	if !errors.As(err, &e) || e.Code != cann.CodeOutOfMemory {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"npu:0: alloc of 64.0 GiB", "this process has 1.0 GiB", "of the device's 4.0 GiB are free", "hint: "} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
	must(t, keep.Free())
}

func TestMemoryLimit(t *testing.T) {
	d, fake := open(t, "memory_mib", "100")
	if n := d.Info().Memory; n != 100<<20 {
		t.Errorf("memory %d", n)
	}
	b, err := d.Alloc(80 << 20)
	must(t, err)
	if _, err := d.Alloc(30 << 20); err == nil || !strings.Contains(err.Error(), "memory_mib") {
		t.Errorf("beyond the limit: %v", err)
	}
	must(t, b.Free())
	if st := fake.Stats(); st.DeviceBlocks != 1 || st.DeviceBytes < 100<<20 {
		t.Errorf("%d blocks, %d bytes", st.DeviceBlocks, st.DeviceBytes)
	}
}

func TestAllocHost(t *testing.T) {
	d, _ := open(t)
	b, err := npu.AllocHost(d, 1000)
	must(t, err)
	h := b.Host()
	if len(h) != 1000 || !bytes.Equal(h, make([]byte, 1000)) || !d.thread.pages.has(h[10:20]) || d.thread.pages.has(make([]byte, 8)) {
		t.Errorf("%d bytes", len(h))
	}
	c, err := d.AllocHost(8)
	must(t, err)
	must(t, b.Free(), b.Free())
	if d.thread.pages.has(h[:1]) || !d.thread.pages.has(c.Host()) {
		t.Error("the list of page-locked memory is wrong after Free")
	}
	// What is not freed is freed with the device.
}

func TestOpen(t *testing.T) {
	d, fake := open(t)
	i := d.Info()
	if i.Name != "npu:0" || i.Family != "npu" || !i.Separate || !i.Unchecked || i.Memory != 4<<30 || len(i.Compute) != 3 || i.Peak != nil {
		t.Errorf("%+v", i)
	}
	if !strings.Contains(i.Detail, "Ascend910B3 (A2), CANN ") {
		t.Errorf("detail %q", i.Detail)
	}
	if p, ok := d.Utilization(); !ok || p != 37 {
		t.Errorf("utilization %v, %v", p, ok)
	}
	alloc(t, d, 1<<20)
	d.gauges.at = time.Time{}
	if n, ok := d.MemoryUse(); !ok || n <= 0 || n >= i.Memory {
		t.Errorf("%d bytes in use, %v", n, ok)
	}
	fake.Set("UTIL", "-4")
	if _, ok := d.Utilization(); !ok {
		t.Error("a gauge is read again at once")
	}
	d.gauges.at = time.Time{}
	if _, ok := d.Utilization(); ok {
		t.Error("a device that does not tell has a utilization")
	}
	must(t, d.Close(), d.Close())
	for what, err := range map[string]error{"alloc": second(d.Alloc(1)), "stream": second(d.NewStream("s")), "event": second(d.NewEvent()),
		"compile": second(d.Compile(npu.Op{Kind: npu.Fill}))} {
		if !errors.Is(err, errClosed) {
			t.Errorf("%s after close: %v", what, err)
		}
	}
}

// Types of activations follow the attributes of the device.
func TestTypes(t *testing.T) {
	fake := acltest.Use(t)
	fake.Set("INFNAN", "0")
	d := openOn(t)
	if got := d.Info().Compute; len(got) != 2 || got[0] != npu.F32 || got[1] != npu.BF16 {
		t.Errorf("without INF/NAN mode: %v", got)
	}
	must(t, d.Close())
}

func TestRefusedAtOpen(t *testing.T) {
	fake := acltest.Use(t)
	for soc, want := range map[string]string{"910": "first Ascend 910 generation", "950": "experimental=true", "Ascend910B": "Ascend910B is of the first"} {
		fake.Set("SOC", soc)
		if _, err := npu.Open("npu", npu.Options{}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "hint: ") {
			t.Errorf("%s: %v", soc, err)
		}
	}
	fake.Set("SOC", "950")
	d, err := Open(npu.Options{Extra: map[string]string{"experimental": "true"}})
	must(t, err)
	must(t, d.Close())
	fake.Set("SOC", "A2")
	fake.Set("DEVICES", "2")
	for index, want := range map[int]string{2: "device 2 of 2", 7: "at most 2 ranks"} {
		if _, err := Open(npu.Options{Index: index}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("device %d: %v", index, err)
		}
	}
	// Without device files, too: a rank for which no device is left must not take it for a machine without any.
	t.Setenv(cann.EnvHome, "")
	t.Setenv("ASCEND_HOME_PATH", fake.Dir())
	if _, err := Open(npu.Options{Index: 2}); err == nil || errors.Is(err, npu.ErrAbsent) {
		t.Errorf("device 2 of 2: %v", err)
	}
	fake.Set("DEVICES", "0")
	if _, err := Open(npu.Options{}); !errors.Is(err, npu.ErrAbsent) {
		t.Errorf("device 0 of 0: %v", err)
	}
}

// Each device has one thread, and two devices work at the same time.
func TestOneThreadPerDevice(t *testing.T) {
	fake := acltest.Use(t)
	before := fake.Stats().DeviceThreads
	var devices []*Device
	for i := range 2 {
		d, err := Open(npu.Options{Index: i})
		must(t, err)
		devices = append(devices, d)
	}
	done := make(chan error)
	for _, d := range devices {
		go func() {
			s, err := d.NewStream("s")
			if err != nil {
				done <- err
				return
			}
			b, err := d.Alloc(1 << 20)
			for range 50 {
				err = errors.Join(err, s.CopyIn(npu.Ptr{Buf: b}, make([]byte, 1<<20)), s.Sync(ctx))
			}
			done <- err
		}()
	}
	must(t, <-done, <-done)
	foreign := npu.Ptr{Buf: value(devices[1].Alloc(8))}
	s := newStream(t, devices[0], "s")
	if err := s.CopyIn(foreign, []byte{1}); err == nil || !strings.Contains(err.Error(), "another device") {
		t.Errorf("memory of another device: %v", err)
	}
	for _, d := range devices {
		must(t, d.Close())
	}
	after := fake.Stats().DeviceThreads
	for i := range 2 {
		if n := after[i] - before[i]; n != 1 {
			t.Errorf("%d threads used device %d", n, i)
		}
	}
}

func value[T any](v T, _ error) T { return v }

// A waiter is not held up much longer than the device takes.
func TestWaitsEndSoon(t *testing.T) {
	d, _ := open(t)
	s := newStream(t, d, "s")
	y, l := adder(t, d, 4)
	_ = y
	begin := time.Now()
	const rounds = 200
	for range rounds {
		must(t, s.Run([]npu.Launch{l}), s.Sync(ctx))
	}
	t.Logf("%v for a launch and a sync", time.Since(begin)/rounds)
}
