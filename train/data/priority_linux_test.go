package data

import (
	"context"
	"fmt"
	"syscall"
	"testing"
)

// polite fails unless it runs at the given nice value.
type polite struct {
	counting
	nice int
}

func (p *polite) Load(ctx context.Context, r *Rand, i int, dst [][]byte) error {
	// The raw system call returns 20 - nice.
	got, err := syscall.Getpriority(syscall.PRIO_PROCESS, syscall.Gettid())
	if err == nil && 20-got != p.nice {
		err = fmt.Errorf("nice value %d, want %d", 20-got, p.nice)
	}
	if err != nil {
		return err
	}
	return p.counting.Load(ctx, r, i, dst)
}

func TestWorkersAreNice(t *testing.T) {
	before, err := syscall.Getpriority(syscall.PRIO_PROCESS, syscall.Gettid())
	if err != nil {
		t.Skip(err)
	}
	for nice, want := range map[int]int{0: 10, 15: 15, -1: 20 - before} {
		if want < 20-before {
			continue // may only be lowered
		}
		l := newLoader(t, &polite{counting: counting{n: 8}, nice: want}, Options{Batch: 2, Epochs: 1, Workers: 2, Nice: nice})
		if n := len(drain(t, l, 100)); n != 4 {
			t.Errorf("%d batches", n)
		}
		l.Close()
		// The threads are gone with their priority; this one never changed.
		if after, _ := syscall.Getpriority(syscall.PRIO_PROCESS, syscall.Gettid()); after != before {
			t.Errorf("the consumer's priority went from %d to %d", before, after)
		}
	}
}
