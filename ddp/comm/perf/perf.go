package perf

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

// Config is what to measure. It must be the same on all ranks, except Stop.
type Config struct {
	Kind  comm.Kind // AllReduce, AllGather, ReduceScatter, AllToAll, Broadcast or Reduce
	Op    comm.Op
	DType npu.DType
	Root  int
	Sizes []int64 // bytes of the larger side; rounded down to whole elements for each rank, at least one

	Repeat  int           // measured calls of a size; 0: 200 below 1 MiB, 20 below 64 MiB, else 5
	Warmup  int           // calls before them; below 0: none, 0: two
	Heap    bool          // reduce ordinary memory instead of memory from Alloc
	NoCheck bool          // do not compare results
	Timeout time.Duration // for a rank that shows no sign of life; 0: a minute

	// Reducer, if not nil, makes what is measured instead of the collective, for each size, on all ranks at the same point. Kind is AllReduce.
	Reducer func(m comm.Mem) (Reduction, error)
	// Tolerance says for it how far a sum of w numbers, each at most top, may be off.
	Tolerance func(w int, top float64) float64

	// Start, if not nil, joins the same ranks with a lower latency, such as by shared memory where the measured transport is TCP: they then agree by it to
	// begin. The later a rank learns that all begin, the longer the call takes for those that know.
	Start comm.Communicator

	// Stop is asked before each call; when it returns true on some rank, all ranks stop there together.
	Stop func() bool
}

// Reduction is an all-reduce of one span of memory by other means, in place.
type Reduction interface {
	Reduce(ctx context.Context) error
	Close() error
}

// ErrStopped is the error of Run on every rank if Stop returned true on one.
var ErrStopped = errors.New("stopped on request")

// Summary is what is known after all sizes.
type Summary struct {
	Rows   []Row
	Wrong  int64 // elements, over all rows
	Size   int   // ranks
	Levels []Way // of the slowest rank, for the largest size
	Copy   float64
	call   comm.Call
}

// Run measures a collective over all sizes, and calls each with every row as soon as it is known. When it fails, or on a stop, the summary has the rows so
// far. Wrong elements are no error.
func Run(ctx context.Context, c comm.Communicator, cfg Config, each func(Row)) (*Summary, error) {
	s := &Summary{Size: c.Size()}
	if err := cfg.check(c); err != nil {
		return s, err
	}
	ctx, cancel := comm.Patient(ctx, cfg.Timeout, 240*time.Hour)
	defer cancel()
	for i, n := range cfg.Sizes {
		call := comm.Call{Kind: cfg.Kind, Op: cfg.Op, DType: cfg.DType, Root: cfg.Root, Elems: elems(cfg.Kind, cfg.DType, n, c.Size())}
		if !reduces(cfg.Kind) {
			call.Op = comm.Sum
		}
		if i > 0 && call.Elems == s.call.Elems {
			continue // rounding made it the size before
		}
		s.call = call
		row, ways, err := one(ctx, c, &cfg, call)
		if err != nil {
			return s, fmt.Errorf("%v of %s: %w", cfg.Kind, FormatBytes(n), err)
		}
		s.Rows, s.Wrong, s.Levels = append(s.Rows, row), s.Wrong+row.Wrong, ways
		if each != nil {
			each(row)
		}
	}
	if c.Size() > 1 && linkless(s.Levels) {
		var err error
		if s.Copy, err = copying(ctx, c, &cfg, s.call.Elems*int64(cfg.DType.Size())); err != nil {
			return s, fmt.Errorf("measuring memory: %w", err)
		}
	}
	return s, nil
}

func (cfg *Config) check(c comm.Communicator) error {
	if cfg.Timeout <= 0 {
		cfg.Timeout = time.Minute
	}
	if cfg.Start == nil {
		cfg.Start = c
	}
	switch {
	case cfg.DType.Size() == 0:
		return fmt.Errorf("perf: memory of %v cannot be exchanged", cfg.DType)
	case len(cfg.Sizes) == 0:
		return errors.New("perf: no sizes")
	case cfg.Start.Rank() != c.Rank() || cfg.Start.Size() != c.Size():
		return fmt.Errorf("perf: Config.Start has rank %d of %d, the measured group %d of %d", cfg.Start.Rank(), cfg.Start.Size(), c.Rank(), c.Size())
	case cfg.Root < 0 || cfg.Root >= c.Size():
		return fmt.Errorf("perf: root %d of %d ranks", cfg.Root, c.Size())
	case cfg.Reducer != nil && cfg.Kind != comm.AllReduce:
		return fmt.Errorf("perf: %v cannot be measured with another reduction", cfg.Kind)
	}
	switch cfg.Kind {
	case comm.AllReduce, comm.AllGather, comm.ReduceScatter, comm.AllToAll, comm.Broadcast, comm.Reduce:
		return nil
	}
	return fmt.Errorf("perf: %v cannot be measured", cfg.Kind)
}

// elems is how many elements a call of n bytes has: such that parts are equal, and at least one for each.
func elems(kind comm.Kind, t npu.DType, n int64, w int) int64 {
	grain := int64(1)
	switch kind {
	case comm.AllGather, comm.ReduceScatter, comm.AllToAll:
		grain = int64(w)
	}
	return max(grain, n/int64(t.Size())/grain*grain)
}

// repeat returns how often a size is measured.
func (cfg *Config) repeat(bytes int64) int {
	switch {
	case cfg.Repeat > 0:
		return cfg.Repeat
	case bytes < 1<<20:
		return 200
	case bytes < 64<<20:
		return 20
	}
	return 5
}

// warmup returns how many calls come before those that are measured.
func (cfg *Config) warmup() int {
	if cfg.Warmup == 0 {
		return 2
	}
	return max(0, cfg.Warmup)
}
