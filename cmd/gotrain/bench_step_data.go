package main

import (
	"context"
	"sync"

	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/recipes/assemble"
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/data"
)

// What a step is measured with if neither the recipe nor its data say: times hardly depend on either.
const (
	assumedClasses = 1000
	assumedSamples = 1 << 20
)

// stepConfig is the configuration of a run that trains and does nothing else. If the data are there, its samples are the first ones of them; otherwise they are
// random. assumed says what the recipe lacks.
func stepConfig(ctx context.Context, r *recipes.Recipe, k assemble.Rank, steps int) (c train.Config, assumed string, err error) {
	run := *r
	if run.Data.Published == 0 {
		run.Data.Published = assumedSamples
	}
	c, without, err := assemble.Plan(ctx, &run, k, false)
	if err != nil && run.Model.Classes == 0 {
		run.Model.Classes = assumedClasses
		if c, without, err = assemble.Plan(ctx, &run, k, true); err == nil {
			assumed = "1,000 classes"
		}
	}
	if err != nil {
		return c, "", err
	}
	if without == nil {
		c.Data = &repeated{Source: c.Data, kept: map[int][][]byte{}}
	}
	c.Steps, c.Epochs, c.Schedule = steps+2, 0, train.ConstantLR(1e-6) // longer than what is measured: the end of a run is no step like others
	c.Eval, c.SaveDir, c.SaveEvery, c.Resume, c.ResumeFrom, c.InitFrom = nil, "", 0, false, "", ""
	c.CheckEvery, c.BucketAuto, c.Monitor = -1, false, train.Monitor{}
	return c, assumed, nil
}

// repeated has only the first samples of a source, which it keeps, so that reading and decoding do not take processors from what is measured.
type repeated struct {
	data.Source
	mu   sync.Mutex
	kept map[int][][]byte
}

// keptSamples are enough for different labels and tokens in a batch.
const keptSamples = 32

// Load is Source.Load of one of the first samples.
func (s *repeated) Load(ctx context.Context, r *data.Rand, i int, dst [][]byte) error {
	i %= min(keptSamples, s.Len())
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept[i] == nil {
		if err := s.Source.Load(ctx, r, i, dst); err != nil {
			return err
		}
		kept := make([][]byte, len(dst))
		for f, b := range dst {
			kept[f] = append([]byte{}, b...)
		}
		s.kept[i] = kept
		return nil
	}
	for f, b := range s.kept[i] {
		copy(dst[f], b)
	}
	return nil
}
