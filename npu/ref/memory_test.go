package ref

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/gotrain/gotrain/npu"
)

func openMemory(t *testing.T, memory string) (npu.Device, npu.Stream) {
	t.Helper()
	d, err := npu.Open("ref", npu.Options{Threads: 1, Extra: map[string]string{"memory": memory}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := d.NewStream("s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d, s
}

func locked(t *testing.T, d npu.Device, content string) []byte {
	t.Helper()
	b, err := npu.AllocHost(d, int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	copy(b.Host(), content)
	return b.Host()
}

func device4(t *testing.T, d npu.Device) npu.Ptr {
	t.Helper()
	b, err := d.Alloc(4)
	if err != nil {
		t.Fatal(err)
	}
	return npu.Ptr{Buf: b}
}

func TestMemoryIsSeparate(t *testing.T) {
	for mode, separate := range map[string]bool{"": false, "host": false, "separate": true, "strict": true} {
		d, _ := openMemory(t, mode)
		p := device4(t, d)
		if got := p.Buf.Host() == nil; got != separate || d.Info().Separate != separate || p.Buf.Bytes() != 4 {
			t.Errorf("%q: hidden %v, Info.Separate %v", mode, got, d.Info().Separate)
		}
	}
	if _, err := npu.Open("ref", npu.Options{Extra: map[string]string{"memory": "remote"}}); err == nil || !strings.Contains(err.Error(), "separate, strict") {
		t.Error(err)
	}
}

func TestUnknownOption(t *testing.T) {
	if _, err := npu.Open("ref", npu.Options{Extra: map[string]string{"memroy": "strict"}}); err == nil || !strings.Contains(err.Error(), "memroy") {
		t.Error(err)
	}
}

// With either mode, bytes get to the device and back; only strict refuses ordinary memory.
func TestCopies(t *testing.T) {
	ctx := context.Background()
	for _, mode := range []string{"separate", "strict"} {
		d, s := openMemory(t, mode)
		a, b := device4(t, d), device4(t, d)
		in, out := locked(t, d, "abcd"), locked(t, d, "....")
		for _, err := range []error{s.CopyIn(a, in), s.Copy(b, a, 4), s.CopyOut(out, b), s.Sync(ctx)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if string(out) != "abcd" {
			t.Errorf("%s: %q", mode, out)
		}
		heap, back := []byte("efgh"), make([]byte, 4)
		err1, err2 := s.CopyIn(a, heap), s.CopyOut(back, a)
		if mode == "strict" {
			for _, err := range []error{err1, err2} {
				if err == nil || !strings.Contains(err.Error(), "npu.AllocHost") {
					t.Errorf("a copy of ordinary memory: %v", err)
				}
			}
			continue
		}
		clear(heap) // it has been read
		if err1 != nil || err2 != nil || string(back) != "efgh" {
			t.Errorf("ordinary memory: %q %v %v", back, err1, err2)
		}
	}
}

// Reuse before the copy has run shows every time, and not with a wait in between.
func TestStrictCopiesLate(t *testing.T) {
	ctx := context.Background()
	d, s := openMemory(t, "strict")
	a, b := device4(t, d), device4(t, d)
	in, out := locked(t, d, "old!"), locked(t, d, "........")
	ev, err := d.NewEvent()
	if err != nil {
		t.Fatal(err)
	}
	must := func(errs ...error) {
		t.Helper()
		for _, err := range errs {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	must(s.CopyIn(a, in), s.Record(ev), s.CopyIn(b, in))
	time.Sleep(20 * time.Millisecond) // an eager stream would have run by now
	copy(in, "new!")
	must(ev.Sync(ctx))
	copy(in, "3rd!")
	must(s.CopyOut(out[:4], a), s.CopyOut(out[4:], b), s.Sync(ctx))
	if string(out) != "new!3rd!" {
		t.Errorf("%q", out)
	}
	// Another stream that waits for the event lets the first one run.
	other, err := d.NewStream("other")
	must(err, s.CopyIn(a, in), s.Record(ev), other.Wait(ev), other.CopyOut(out[:4], a), other.Sync(ctx))
	if string(out[:4]) != "3rd!" {
		t.Errorf("%q", out)
	}
	for range 3 * queueLen { // more than the queue holds, without a wait
		must(s.Copy(b, a, 4))
	}
	for range 100 {
		if ev.Done() {
			break
		}
	}
	must(s.Sync(ctx))
}

func TestStrictOverwritesFreedMemory(t *testing.T) {
	d, s := openMemory(t, "strict")
	a := device4(t, d)
	b, err := npu.AllocHost(d, 4)
	if err != nil {
		t.Fatal(err)
	}
	out := locked(t, d, "....")
	h := b.Host()
	for _, err := range []error{s.CopyIn(a, h), b.Free(), s.CopyOut(out, a), s.Sync(context.Background())} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(out, []byte{255, 255, 255, 255}) {
		t.Errorf("%v", out)
	}
	if err := s.CopyIn(a, h); err == nil {
		t.Error("freed memory is still page-locked")
	}
}

func TestForeignMemoryIsRefused(t *testing.T) {
	d, s := openMemory(t, "separate")
	other, _ := openMemory(t, "separate")
	in := locked(t, d, "abcd")
	host, err := npu.AllocHost(d, 4)
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]npu.Ptr{"of another device": device4(t, other), "page-locked": {Buf: host}, "of a host device": {Buf: alien{}}} {
		if err := s.CopyIn(p, in); err == nil {
			t.Errorf("a copy to memory %s was accepted", name)
		}
		k, err := d.Compile(npu.Op{Kind: npu.Relu, In: []npu.Desc{npu.D(npu.F32, 1)}, Out: []npu.Desc{npu.D(npu.F32, 1)}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.Bind([]npu.Ptr{p, device4(t, d)}, npu.Ptr{}); err == nil {
			t.Errorf("a kernel was bound to memory %s", name)
		}
	}
}

// alien is memory that ref did not make.
type alien struct{}

func (alien) Bytes() int64 { return 4 }
func (alien) Host() []byte { return make([]byte, 4) }
func (alien) Free() error  { return nil }
