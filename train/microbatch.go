package train

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"syscall"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/train/data"
)

// loading gives an error of loading its exit code: a broken file would be met again, so such a run is not worth starting again as it is. An error of the
// system (a disk, a server) may pass, and keeps the code of everything else.
func loading(err error) error {
	var no syscall.Errno
	if !errors.As(err, new(data.SampleError)) || errors.As(err, &no) && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return launch.WithCode(launch.ExitNoInput, err)
}

// take waits for the next batch and enqueues its copies. An abandoned step does not need it.
func (t *Trainer) take(ctx context.Context, r *report) error {
	b, err := t.loader.Next(ctx)
	switch {
	case err != nil && t.abandoned():
		return nil
	case err != nil:
		return loading(fmt.Errorf("train: rank %d step %d: %w", t.comm.Rank(), t.step, err))
	}
	r.data += b.Wait
	t.micro, t.valid, t.at = append(t.micro, b), append(t.valid, b.Valid), b.Next
	if err := t.train.whole(b); err != nil {
		return err
	}
	if err := t.train.within(b, t.cfg.Data); err != nil {
		return t.where(err)
	}
	return t.train.copyIn(t.stream, b)
}

// microStep enqueues one micro-batch. Gradients of the last one are reduced in buckets as they become ready. Abandon cancels the waits that use
// waiting.
func (t *Trainer) microStep(ctx, waiting context.Context, m int, r *report) error {
	if m == 0 {
		t.micro, t.valid = t.micro[:0], t.valid[:0]
	}
	if len(t.micro) >= maxHeld {
		if err := t.stream.Sync(ctx); err != nil { // host waits for device: all batches of the loader are in use
			return t.where(err)
		}
		t.release()
	}
	if err := t.take(waiting, r); err != nil {
		return err
	}
	if err := t.scalars(m); err != nil {
		return err
	}
	if err := t.eng.Begin(int64(t.step), m == t.cfg.Accumulate-1); err != nil {
		return err
	}
	return t.train.prog.Run(t.stream, m > 0, func(group int) error {
		if group == graph.Forward {
			if err := t.train.copyOut(t.stream, m); err != nil {
				return err
			}
			return t.stream.Record(t.train.ready)
		}
		if m < t.cfg.Accumulate-1 {
			return nil
		}
		if err := t.stream.Record(t.marks.ready[group]); err != nil {
			return err
		}
		return t.eng.ReadyBucket(group, t.marks.ready[group])
	})
}

// maxHeld is how many batches of the loader's ring a step keeps until the device has read them.
const maxHeld = 2

// scalars sets the loss scale and the dropout seed of a micro-batch.
func (t *Trainer) scalars(m int) error {
	if m == 0 && !t.train.scale.IsNil() { // set once per step, because the copy may still be pending in the next micro-batch
		// The loss is a sum; dividing by the usual count keeps gradients at their customary scale. The exact count is applied at the end.
		binary.NativeEndian.PutUint32(t.hostScale, math.Float32bits(float32(t.scaler.Scale()/t.usualCount())))
		if err := t.stream.CopyIn(t.train.scale, t.hostScale); err != nil {
			return err
		}
	}
	if t.train.seed.IsNil() {
		return nil
	}
	// Depends on position only: a resumed run drops the same elements, and ranks drop different ones.
	seed := t.hostSeed[8*m:][:8]
	binary.NativeEndian.PutUint64(seed, mix(t.cfg.Seed, uint64(t.step), uint64(m*t.comm.Size()+t.comm.Rank())))
	return t.stream.CopyIn(t.train.seed, seed)
}

// mix hashes three numbers (splitmix64).
func mix(a, b, c uint64) uint64 {
	z := a
	for _, v := range []uint64{b, c} {
		z += 0x9e3779b97f4a7c15 * (v + 1)
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		z ^= z >> 31
	}
	return z
}

// usualCount is the number of items in a step whose batches are all full. It is the same on all ranks.
func (t *Trainer) usualCount() float64 {
	return float64(t.cfg.Batch * t.cfg.Accumulate * t.comm.Size() * t.train.net.items.perSample())
}
