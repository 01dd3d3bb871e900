//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"context"
	"fmt"
	"time"

	"github.com/gotrain/gotrain/npu"
)

// calibrate measures the peak of a matmul, the best of a few runs of some milliseconds each.
func (d *Device) calibrate() (map[npu.DType]float64, error) {
	s, err := d.NewStream("calibrate")
	if err != nil {
		return nil, err
	}
	defer s.Close()
	peak := map[npu.DType]float64{}
	for _, t := range d.Info().Compute {
		const n = 1024
		op := npu.Op{Kind: npu.MatMul, In: []npu.Desc{npu.D(t, n, n), npu.D(t, n, n)}, Out: []npu.Desc{npu.D(t, n, n)}}
		k, err := d.Compile(op)
		if err != nil {
			return nil, err
		}
		mem, err := d.Alloc(3*op.Out[0].PlainBytes() + k.Workspace())
		if err != nil {
			return nil, err
		}
		p := npu.Ptr{Buf: mem}
		b := op.Out[0].PlainBytes()
		l, err := k.Bind([]npu.Ptr{p, p.At(b), p.At(2 * b)}, p.At(3*b))
		if err != nil {
			return nil, err
		}
		best := time.Duration(0)
		for range 6 {
			begin := time.Now()
			if err := s.Run([]npu.Launch{l}); err != nil {
				return nil, err
			}
			if err := s.Sync(context.Background()); err != nil {
				return nil, err
			}
			if took := time.Since(begin); best == 0 || took < best {
				best = took
			}
		}
		peak[t] = 2 * n * n * n / best.Seconds()
		if err := mem.Free(); err != nil {
			return nil, fmt.Errorf("free: %w", err)
		}
	}
	return peak, nil
}
