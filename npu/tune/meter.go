package tune

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/gotrain/gotrain/npu"
)

const (
	maxTimes  = 256
	sample    = 2 * time.Millisecond // shortest time that is read from the clock
	minRounds = 2
	maxRounds = 8
)

// meter measures ops on a stream, in one buffer.
type meter struct {
	dev    npu.Device
	stream npu.Stream
	buf    npu.Buffer
}

func (m *meter) close() error {
	if m.buf == nil {
		return nil
	}
	return m.buf.Free()
}

// contest measures all entrants in turn, and keeps the best time of each.
func (m *meter) contest(ctx context.Context, c Contest) ([]Timing, error) {
	var all []*runner
	for _, e := range c.Entrants {
		r, err := prepare(m.dev, e.Op)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", Name(e.Name), err)
		}
		all = append(all, r)
	}
	if err := m.bind(ctx, all); err != nil {
		return nil, err
	}
	ts := make([]Timing, len(all))
	for n := 0; n < minRounds || n < maxRounds && !clear(ts); n++ {
		for i, r := range all {
			if err := m.round(ctx, r); err != nil {
				return nil, err
			}
			ts[i] = Timing{c.Entrants[i].Name, r.best}
		}
	}
	return ts, nil
}

// bind gives everything memory, all the same, and executes it once to learn how often a round must repeat it.
func (m *meter) bind(ctx context.Context, all []*runner) error {
	size := int64(0)
	for _, r := range all {
		size = max(size, r.size)
	}
	if m.buf == nil || m.buf.Bytes() < size {
		if err := m.close(); err != nil {
			return err
		}
		var err error
		if m.buf, err = m.dev.Alloc(size); err != nil {
			return err
		}
	}
	if err := m.fill(ctx, size); err != nil {
		return err
	}
	for _, r := range all {
		if err := r.bind(m.buf); err != nil {
			return err
		}
		r.times = 1
		if err := m.round(ctx, r); err != nil {
			return err
		}
		r.times, r.best = int(max(1, min(sample/max(r.best, 1), maxTimes))), 0
	}
	return nil
}

// round executes an op as often as its time requires, and keeps its best time.
func (m *meter) round(ctx context.Context, r *runner) error {
	begin := time.Now()
	for range r.times {
		if err := m.stream.Run(r.launches); err != nil {
			return err
		}
	}
	if err := m.stream.Sync(ctx); err != nil {
		return err
	}
	if took := time.Since(begin) / time.Duration(r.times); r.best == 0 || took < r.best {
		r.best = max(took, 1)
	}
	return nil
}

// fill writes numbers between -1 and 1 that are valid in every type of activations: both halves of a float32 are the same bf16.
func (m *meter) fill(ctx context.Context, size int64) error {
	block := make([]byte, min(size, 1<<20))
	draw := rand.New(rand.NewPCG(1, 2))
	for i := 0; i+4 <= len(block); i += 4 {
		h := math.Float32bits(draw.Float32()*2-1) >> 16
		binary.NativeEndian.PutUint32(block[i:], h<<16|h)
	}
	for at := int64(0); at < size; at += int64(len(block)) {
		n := min(int64(len(block)), size-at)
		if err := m.stream.CopyIn(npu.Ptr{Buf: m.buf, Off: at}, block[:n]); err != nil {
			return err
		}
	}
	return m.stream.Sync(ctx)
}
