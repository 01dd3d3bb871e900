package data

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Options configures how a Loader reads its source. The zero value of every field except Batch is usable.
type Options struct {
	Batch   int    // rows per batch on this rank
	Rank    int    // of this process
	World   int    // number of ranks; 0 means 1
	Seed    uint64 // of the run: order and augmentation
	Shuffle bool
	Tail    Tail
	Epochs  int   // Next returns io.EOF after that many epochs; 0 means never
	From    State // where to begin
	Repeat  int   // how often each sample comes in a row of an epoch (Sampler.Repeat); 0 means 1
	// Groups balances the classes (Sampler.Groups); nil: every sample once an epoch.
	Groups *Groups

	// Workers is the number of goroutines that load samples. 0: one for every four of GOMAXPROCS, from 1 to 8.
	Workers int
	// Prefetch is the number of batches loaded ahead; 0 means 2. Memory is Prefetch+1 batches.
	Prefetch int
	// Nice lowers the priority of the workers' threads (Linux only), so that decoding uses only the time that computing leaves; while the
	// consumer waits, that is all of it. 0 means 10, negative leaves the priority unchanged.
	Nice int

	// Alloc returns zeroed memory for a field of a batch, aligned to 8 bytes, such as page-locked memory of a device; nil: ordinary memory. Its owner
	// frees it after Close, and after the last batch was released.
	Alloc func(bytes int64) ([]byte, error)

	// SkipBad is the number of distinct samples that may fail before the loader does. 0: the first failure is an error. With Tail Short a
	// skipped sample leaves its batch shorter; otherwise the next good sample in order replaces it, so that batches stay full.
	SkipBad int
	// OnSkip is called when a sample is first skipped, from worker goroutines, one call at a time.
	OnSkip func(index int, err error)
}

// Stats sums up a loader's work since it was created.
type Stats struct {
	Batches int64         // batches returned by Next
	Samples int64         // rows that count in those batches
	Wait    time.Duration // time the consumer waited in Next
	Load    time.Duration // time the workers were busy, summed over workers
	Bad     int           // distinct samples skipped
}

// Loader reads batches ahead of a consumer. What it returns depends only on the source, seed, order and position, not on the number of
// workers or on timing. Next, Release and Stats may be used while workers run; Next, Seek, Start and Close must be called from one goroutine.
type Loader struct {
	src    Source
	fields []Field
	paired Paired // nil: samples are not mixed
	opt    Options
	smp    Sampler
	at     State // of the batch that Next returns next

	all   []*Batch
	free  chan *Batch
	held  atomic.Int64
	run   *pipeline
	cur   *Batch // taken from the queue by a Next whose context ended
	err   error  // returned by every further Next
	stats struct{ batches, samples, wait, load atomic.Int64 }
	bad   badList
}

// NewLoader checks the options against the source and allocates the batches. Nothing is read before Start or Next.
func NewLoader(src Source, o Options) (*Loader, error) {
	if src == nil {
		return nil, errors.New("data: the loader has no source")
	}
	if err := checkFields(src); err != nil {
		return nil, err
	}
	if o.World == 0 {
		o.World = 1
	}
	if o.Workers <= 0 {
		o.Workers = min(8, max(1, runtime.GOMAXPROCS(0)/4))
	}
	if o.Prefetch <= 0 {
		o.Prefetch = 2
	}
	if o.Nice == 0 {
		o.Nice = 10
	}
	l := &Loader{src: src, fields: src.Fields(), opt: o, smp: Sampler{Len: src.Len(), Seed: o.Seed, Shuffle: o.Shuffle,
		Rank: o.Rank, World: o.World, Batch: o.Batch, Tail: o.Tail, Repeat: o.Repeat, Groups: o.Groups}}
	l.paired, l.smp.Pairs = src.(Paired)
	l.bad = badList{source: src.Name(), limit: o.SkipBad, told: o.OnSkip}
	if err := l.smp.Check(); err != nil {
		return nil, fmt.Errorf("source %s: %w", src.Name(), err)
	}
	if err := l.smp.CheckState(o.From); err != nil {
		return nil, fmt.Errorf("source %s: %w", src.Name(), err)
	}
	l.at = l.smp.Normal(o.From)
	l.free = make(chan *Batch, o.Prefetch+1)
	for range o.Prefetch + 1 {
		b, err := newBatch(l.fields, o.Batch, o.Alloc, l.free, &l.held)
		if err != nil {
			return nil, err
		}
		l.all = append(l.all, b)
		l.free <- b
	}
	return l, nil
}

// Source returns the loader's source.
func (l *Loader) Source() Source { return l.src }

// Sampler returns the loader's sampler: the order of samples and their division among ranks.
func (l *Loader) Sampler() Sampler { return l.smp }

// Workers is the number of goroutines that load samples.
func (l *Loader) Workers() int { return l.opt.Workers }

// State is the position of the next batch: after all batches returned so far. To store only what has been used, store Batch.Next.
func (l *Loader) State() State { return l.at }

// Stats reads the counters.
func (l *Loader) Stats() Stats {
	return Stats{Batches: l.stats.batches.Load(), Samples: l.stats.samples.Load(), Wait: time.Duration(l.stats.wait.Load()),
		Load: time.Duration(l.stats.load.Load()), Bad: l.bad.count()}
}

// Bad lists the samples skipped so far.
func (l *Loader) Bad() []BadSample { return l.bad.list() }

// Start begins prefetching while the caller still prepares other things. Next does so too.
func (l *Loader) Start() {
	if l.run == nil && l.err == nil {
		l.run = l.startPipeline(l.at)
	}
}

// Next returns the next batch, waiting for it if necessary. It returns io.EOF after the last epoch. After an error of the source,
// the loader stays at the batch that failed and returns the same error until Seek.
func (l *Loader) Next(ctx context.Context) (*Batch, error) {
	if l.err != nil {
		return nil, l.err
	}
	if l.opt.Epochs > 0 && l.at.Epoch >= l.opt.Epochs {
		return nil, io.EOF
	}
	if l.held.Load() == int64(len(l.all)) {
		return nil, fmt.Errorf("data: the caller holds all %d batches of the loader\nhint: call Release on each one, or raise Prefetch", len(l.all))
	}
	l.Start()
	begin := time.Now()
	if l.cur == nil {
		select {
		case l.cur = <-l.run.queue:
		case <-ctx.Done():
			return nil, l.waited(ctx, begin)
		}
	}
	select {
	case <-l.cur.ready:
	case <-ctx.Done():
		return nil, l.waited(ctx, begin)
	}
	b := l.cur
	l.cur = nil
	b.Wait = time.Since(begin)
	l.stats.wait.Add(int64(b.Wait))
	if b.failed != nil {
		l.err = b.failed
		l.stop()
		return nil, l.err
	}
	l.stats.batches.Add(1)
	l.stats.samples.Add(int64(b.Valid))
	l.at = b.Next
	l.held.Add(1)
	b.out.Store(true)
	return b, nil
}

func (l *Loader) waited(ctx context.Context, begin time.Time) error {
	l.stats.wait.Add(int64(time.Since(begin)))
	return fmt.Errorf("data: waited %v for the batch at %v of %s: %w", time.Since(begin).Round(time.Millisecond), l.at, l.src.Name(), context.Cause(ctx))
}

// Seek makes Next continue at another position, in constant time. Batches that the caller still holds stay valid.
func (l *Loader) Seek(to State) error {
	if err := l.smp.CheckState(to); err != nil {
		return fmt.Errorf("source %s: %w", l.src.Name(), err)
	}
	if errors.Is(l.err, errClosed) {
		return l.err
	}
	l.stop()
	l.at, l.err = l.smp.Normal(to), nil
	return nil
}

var errClosed = errors.New("data: the loader is closed")

// Close stops the workers and waits for them to exit. The source stays open. Idempotent.
func (l *Loader) Close() error {
	l.stop()
	l.err = errClosed
	return nil
}

// stop ends the pipeline and recovers every batch that the consumer does not hold.
func (l *Loader) stop() {
	if l.run == nil {
		return
	}
	l.run.cancel()
	l.run.wait.Wait()
	l.run, l.cur = nil, nil
	inFree := map[*Batch]bool{}
	for range len(l.free) {
		b := <-l.free
		inFree[b] = true
		l.free <- b
	}
	for _, b := range l.all {
		if !b.out.Load() && !inFree[b] {
			l.free <- b
		}
	}
}

// pipeline is one run of the workers, from a position until it is stopped.
type pipeline struct {
	cancel context.CancelFunc
	wait   sync.WaitGroup
	queue  chan *Batch // in order; loaded when its ready has a token
}
