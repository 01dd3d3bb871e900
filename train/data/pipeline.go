package data

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"
)

// chunk is a worker's portion: rows of one batch.
type chunk struct {
	b        *Batch
	from, to int
}

// startPipeline starts the planner and the workers at a position.
func (l *Loader) startPipeline(from State) *pipeline {
	ctx, cancel := context.WithCancel(context.Background())
	p := &pipeline{cancel: cancel, queue: make(chan *Batch, len(l.all))}
	work := make(chan chunk, l.opt.Workers)
	p.wait.Add(1 + l.opt.Workers)
	go func() {
		defer p.wait.Done()
		defer close(work)
		l.plan(ctx, from, p.queue, work)
	}()
	for range l.opt.Workers {
		go func() {
			defer p.wait.Done()
			// The thread is never unlocked, so it exits with the goroutine and its priority affects no other goroutine.
			if l.opt.Nice > 0 && lowerPriority != nil {
				runtime.LockOSThread()
				lowerPriority(l.opt.Nice)
			}
			w := &worker{Loader: l}
			for c := range work {
				w.fill(ctx, c)
			}
		}()
	}
	return p
}

// plan hands out rows, batch after batch, as batches become free.
func (l *Loader) plan(ctx context.Context, at State, queue chan<- *Batch, work chan<- chunk) {
	size := max(1, l.opt.Batch/(4*l.opt.Workers))
	if l.smp.Pairs {
		size += size % 2 // a pair is loaded by one worker
	}
	order, epoch := Order{}, -1
	for l.opt.Epochs == 0 || at.Epoch < l.opt.Epochs {
		var b *Batch
		select {
		case b = <-l.free:
		case <-ctx.Done():
			return
		}
		if at.Epoch != epoch {
			order, epoch = l.smp.Order(at.Epoch), at.Epoch
		}
		rows := l.prepare(b, at, order)
		at = b.Next
		if rows == 0 {
			b.finish(l.fields)
			b.ready <- struct{}{}
		}
		queue <- b // has room for all batches
		for r := 0; r < rows; r += size {
			select {
			case work <- chunk{b, r, min(r+size, rows)}:
			case <-ctx.Done():
				return
			}
		}
	}
}

// prepare sets up a batch for a position and returns the number of rows to load.
func (l *Loader) prepare(b *Batch, at State, order Order) int {
	select {
	case <-b.ready: // left over from a pipeline that was stopped
	default:
	}
	b.At, b.Next = at, l.smp.Next(at)
	b.Last = b.Next.Epoch != at.Epoch
	b.Wait, b.Load, b.failed = 0, 0, nil
	b.load.Store(0)
	b.order = order
	b.Valid = l.smp.Rows(at, b.order, b.Indices)
	rows := b.Valid
	if l.smp.Tail == Pad {
		rows = l.smp.Batch
	}
	b.pending.Store(int64(rows))
	return rows
}

// worker holds what one goroutine reuses from sample to sample.
type worker struct {
	*Loader
	rand Rand
}

// fill loads the rows of a chunk. The last chunk of a batch to complete finishes the batch.
func (w *worker) fill(ctx context.Context, c chunk) {
	begin := time.Now()
	for row := c.from; row < c.to; row++ {
		if err := w.row(ctx, c.b, row); err != nil {
			c.b.fail(row, err)
			break
		}
		if w.smp.Pairs && row%2 == 1 {
			w.pair(c.b, row-1)
		}
	}
	spent := int64(time.Since(begin))
	c.b.load.Add(spent)
	w.stats.load.Add(spent)
	if c.b.pending.Add(int64(c.from-c.to)) == 0 {
		c.b.finish(w.fields)
		c.b.ready <- struct{}{}
	}
}

// row loads one row, or a replacement if the policy allows it.
func (w *worker) row(ctx context.Context, b *Batch, row int) error {
	index := b.Indices[row]
	pos := int(w.smp.Position(b.At, row))
	_, again := b.order.Draw(pos % w.smp.Len)
	for try := 0; ; try++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := w.load(ctx, b, row, index, again)
		if err == nil {
			b.Indices[row] = index
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := w.bad.add(index, err); err != nil {
			return err
		}
		if w.smp.Tail == Short {
			b.Indices[row] = -1
			return nil
		}
		if try == w.smp.Len {
			return fmt.Errorf("data: every sample of %s is bad", w.src.Name())
		}
		index = b.order.At((pos + 1 + try) % w.smp.Len)
	}
}

// load reads one sample. A panic in a source (a bug, or a file that crashes a decoder) becomes an error that names the sample.
// again is how often the sample came before in the epoch.
func (w *worker) load(ctx context.Context, b *Batch, row, index, again int) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
		if err != nil {
			err = fmt.Errorf("data: sample %d of %s: %w", index, w.src.Name(), err)
		}
	}()
	w.rand = SampleRand(w.smp.Seed, b.At.Epoch, index+again*w.smp.Len)
	return w.src.Load(ctx, &w.rand, index, b.rows[row])
}

// pairSeed sets the random streams of pairs apart from those of samples.
const pairSeed = 0x6d69785f70616972

// pair mixes a row with the next.
func (w *worker) pair(b *Batch, row int) {
	if b.Indices[row] < 0 || b.Indices[row+1] < 0 {
		return // skipped
	}
	_, again := b.order.Draw(int(w.smp.Position(b.At, row)) % w.smp.Len)
	w.rand = SampleRand(w.smp.Seed^pairSeed, b.At.Epoch, b.Indices[row]+again*w.smp.Len)
	w.paired.Pair(&w.rand, b.rows[row], b.rows[row+1])
}
