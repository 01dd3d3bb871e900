//go:build cgo && linux

package acl

import (
	"context"
	"testing"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/acl/acltest"
)

func TestMain(m *testing.M) { acltest.Main(m) }

var ctx = context.Background()

// open opens the fake's device 0, to be closed at the end of the test.
func open(t *testing.T, extra ...string) (*Device, *acltest.Fake) {
	t.Helper()
	fake := acltest.Use(t)
	return openOn(t, extra...), fake
}

// openOn opens device 0 for a test that has set the fake up.
func openOn(t *testing.T, extra ...string) *Device {
	t.Helper()
	o := npu.Options{Extra: map[string]string{}}
	for i := 0; i < len(extra); i += 2 {
		o.Extra[extra[i]] = extra[i+1]
	}
	d, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// alloc allocates memory that is freed with the device.
func alloc(t *testing.T, d npu.Device, bytes int64) npu.Ptr {
	t.Helper()
	b, err := d.Alloc(bytes)
	must(t, err)
	return npu.Ptr{Buf: b}
}

func newStream(t *testing.T, d npu.Device, name string) *stream {
	t.Helper()
	s, err := d.NewStream(name)
	must(t, err)
	return s.(*stream)
}
