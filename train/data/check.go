package data

import (
	"context"
	"errors"
	"io"
	"runtime"
)

// Check loads every sample of a source once, as training would, and lists those that cannot be loaded, by index. It returns an error only if ctx ends or
// the source's description is invalid.
func Check(ctx context.Context, src Source, seed uint64) ([]BadSample, error) {
	if src.Len() == 0 {
		return nil, nil
	}
	l, err := NewLoader(src, Options{Batch: 16, Seed: seed, Tail: Short, Epochs: 1, Workers: runtime.GOMAXPROCS(0), Nice: -1, SkipBad: src.Len()})
	if err != nil {
		return nil, err
	}
	defer l.Close()
	for {
		b, err := l.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return l.Bad(), nil
		case err != nil:
			return nil, err
		}
		b.Release()
	}
}
