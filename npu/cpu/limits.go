//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/cpu/kern"
)

// limitBytes is the memory that Limits needs: several times what caches hold.
const limitBytes = 256<<20 + limitGap

// LimitBytes is the memory that Limits needs.
func (d *Device) LimitBytes() int64 { return limitBytes }

// limitGap is between two arrays that are walked together, so that they do not compete for the same places of a cache: an odd number of lines.
const limitGap = 37 * 64

// Working sets of Limits, and how long each loop runs.
const (
	limitLeast = 16 << 10
	limitTime  = 2 * time.Millisecond
)

// Limits measures what bounds kernels on this many threads of the stream: arithmetic in registers, and loops over working sets from 16 KiB to 256 MiB.
// With sets, only the loops over working sets of these bytes are measured. mem has LimitBytes bytes, or the largest set and 4 KiB, and what it holds is lost.
// It takes about a second. Other programs make it too low, so callers measure more than once.
func (d *Device) Limits(ctx context.Context, s npu.Stream, mem npu.Ptr, threads int, sets ...int64) (npu.Limits, error) {
	all := sets == nil
	for n := int64(limitLeast); all && n <= limitBytes-limitGap; n *= 2 {
		sets = append(sets, n)
	}
	m, err := span(mem, slices.Max(sets)+limitGap)
	if err != nil {
		return npu.Limits{}, fmt.Errorf("cpu: limits: %w", err)
	}
	if threads < 1 || threads > d.threads {
		return npu.Limits{}, fmt.Errorf("cpu: limits: %d threads of a device that has %d", threads, d.threads)
	}
	l := npu.Limits{Threads: threads}
	err = s.Do(func() error {
		for _, t := range []npu.DType{npu.F32, npu.BF16} {
			if !all {
				break
			}
			if rate, isa := kern.Arithmetic(t, threads, 10*limitTime); rate > 0 {
				l.Peaks = append(l.Peaks, npu.Peak{Type: t.String(), ISA: isa, FLOP: rate})
			}
		}
		for _, n := range sets {
			half := n / 128 * 64
			a, b := m[:half], m[half+limitGap:][:half]
			l.Rates = append(l.Rates, npu.Rates{Bytes: n, Read: kern.Rate(kern.Read, m[:n], nil, threads, limitTime),
				Copy: kern.Rate(kern.Copy, a, b, threads, limitTime), Add: kern.Rate(kern.Add, a, b, threads, limitTime)})
		}
		l.Region = kern.Region(threads)
		return nil
	})
	if err == nil {
		err = s.Sync(ctx)
	}
	return l, err
}
