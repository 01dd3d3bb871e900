package npu_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/gotrain/gotrain/npu"
	_ "github.com/gotrain/gotrain/npu/ref"
)

// Bytes survive the way to the device and back in pieces, whatever the memory; "strict" would show a piece that is reused too early.
func TestCopier(t *testing.T) {
	ctx := context.Background()
	for _, memory := range []string{"host", "separate", "strict"} {
		dev, err := npu.Open("ref", npu.Options{Threads: 1, Extra: map[string]string{"memory": memory}})
		if err != nil {
			t.Fatal(err)
		}
		defer dev.Close()
		s, err := dev.NewStream("copies")
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{0, 1, 8 << 20, 8<<20 + 1, 40<<20 + 13} {
			b, err := dev.Alloc(int64(n) + 2)
			if err != nil {
				t.Fatal(err)
			}
			at, c := npu.Ptr{Buf: b, Off: 1}, npu.NewCopier(dev, s)
			src, dst := make([]byte, n), make([]byte, n+2)
			for i := range src {
				src[i] = byte(i*7 + i>>8 + i>>16 + 1)
			}
			if err := errors.Join(c.In(ctx, at, src), c.Out(ctx, dst, at.At(-1))); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(dst[1:n+1], src) || dst[0] != 0 || dst[n+1] != 0 {
				t.Errorf("%s: %d bytes came back changed", memory, n)
			}
			var seen []byte
			if err := c.Each(ctx, at, int64(n), func(p []byte) error { seen = append(seen, p...); return nil }); err != nil || !bytes.Equal(seen, src) {
				t.Errorf("%s: Each shows %d of %d bytes, or others: %v", memory, len(seen), n, err)
			}
			enough := errors.New("enough")
			if n > 0 {
				if err := c.Each(ctx, at, int64(n), func([]byte) error { return enough }); !errors.Is(err, enough) {
					t.Error(err)
				}
			}
			if err := errors.Join(c.Zero(ctx, at, int64(n)), c.Out(ctx, dst, at.At(-1))); err != nil || !bytes.Equal(dst, make([]byte, n+2)) {
				t.Errorf("%s: not zero: %v", memory, err)
			}
			if err := errors.Join(c.Close(), c.Close()); err != nil {
				t.Error(err)
			}
		}
	}
}
