package data

import (
	"context"
	"errors"
	"testing"
)

// broken fails for some samples, for one of them by a panic.
type broken struct{ Source }

func (b broken) Load(ctx context.Context, r *Rand, i int, dst [][]byte) error {
	switch i {
	case 3, 36:
		return errors.New("no picture")
	case 17:
		panic("a bug of a decoder")
	}
	return b.Source.Load(ctx, r, i, dst)
}

func TestCheckFindsEveryBadSample(t *testing.T) {
	src, err := NewSynthetic(1, 37, 4, 6)
	if err != nil {
		t.Fatal(err)
	}
	if bad, err := Check(context.Background(), src, 1); err != nil || len(bad) != 0 {
		t.Errorf("good data: %v %v", bad, err)
	}
	bad, err := Check(context.Background(), broken{src}, 1)
	if err != nil {
		t.Fatal(err)
	}
	var at []int
	for _, b := range bad {
		if b.Err == nil {
			t.Errorf("sample %d has no reason", b.Index)
		}
		at = append(at, b.Index)
	}
	if len(at) != 3 || at[0] != 3 || at[1] != 17 || at[2] != 36 {
		t.Errorf("bad samples are %v, want 3, 17 and 36", at)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Check(ctx, broken{src}, 1); err == nil {
		t.Error("a cancelled check found nothing and said so")
	}
}
