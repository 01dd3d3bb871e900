package npu_test

import (
	"errors"
	"testing"

	"github.com/gotrain/gotrain/npu"
)

// locked is a device with page-locked memory.
type locked struct {
	npu.Device
	asked int64
	err   error
}

func (d *locked) Info() npu.Info { return npu.Info{Name: "locked:3"} }
func (d *locked) AllocHost(n int64) (npu.Buffer, error) {
	d.asked = n
	return page{}, d.err
}

type page struct{ npu.Buffer }

func TestAllocHostAsksTheDevice(t *testing.T) {
	d := &locked{}
	b, err := npu.AllocHost(d, 7)
	if _, ok := b.(page); err != nil || !ok || d.asked != 7 {
		t.Fatalf("got %T, %v; the device was asked for %d bytes", b, err, d.asked)
	}
	d.err = errors.New("no pages")
	if _, err = npu.AllocHost(d, 9); !errors.Is(err, d.err) || err.Error() != "npu: 9 bytes of page-locked host memory for locked:3: no pages" {
		t.Fatal(err)
	}
}

func TestAllocHostOfAnyDevice(t *testing.T) {
	for _, n := range []int64{0, 1, 4096} {
		b, err := npu.AllocHost(struct{ npu.Device }{}, n)
		if err != nil || b.Bytes() != n || int64(len(b.Host())) != n || b.Host() == nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
	if _, err := npu.AllocHost(struct{ npu.Device }{}, -1); err == nil {
		t.Fatal("a negative size was accepted")
	}
}
