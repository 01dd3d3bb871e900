//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"context"
	"fmt"
	"time"

	"github.com/gotrain/gotrain/npu"
)

// A calibration round takes a few milliseconds. Calibration ends when the best time has not improved for calmRounds rounds, so that an interruption by
// another process costs rounds rather than accuracy, or after patience. At least calmRounds rounds are run.
const (
	calmRounds = 6
	patience   = 200 * time.Millisecond
)

// calibrate measures the peak of a matmul in a type, or in all where it is Invalid. On a machine that is busy all the time the result is too low, which
// cannot be detected from here.
func (d *Device) calibrate(only npu.DType) (map[npu.DType]float64, error) {
	s, err := d.NewStream("calibrate")
	if err != nil {
		return nil, err
	}
	defer s.Close()
	peak := map[npu.DType]float64{}
	info := d.Info()
	if wide, ok := info.Widened[only]; ok {
		only = wide
	}
	for _, t := range info.Compute {
		if _, ok := info.Widened[t]; ok || only != npu.Invalid && t != only {
			continue
		}
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
		best, err := bestRound(func() (time.Duration, error) {
			begin := time.Now()
			if err := s.Run([]npu.Launch{l}); err != nil {
				return 0, err
			}
			err := s.Sync(context.Background())
			return time.Since(begin), err
		})
		if err != nil {
			return nil, err
		}
		peak[t] = 2 * n * n * n / best.Seconds()
		if err := mem.Free(); err != nil {
			return nil, fmt.Errorf("free: %w", err)
		}
	}
	for t, wide := range info.Widened {
		if p, ok := peak[wide]; ok {
			peak[t] = p
		}
	}
	return peak, nil
}

// bestRound returns the shortest time of enough rounds.
func bestRound(round func() (time.Duration, error)) (best time.Duration, err error) {
	calm, total := 0, time.Duration(0)
	for n := 0; n < calmRounds || calm < calmRounds && total < patience; n++ {
		took, err := round()
		if err != nil {
			return 0, err
		}
		calm++
		if total += took; best == 0 || took < best {
			if took < best-best/50 {
				calm = 0
			}
			best = took
		}
	}
	return best, nil
}
