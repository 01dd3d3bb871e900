package assemble

import (
	"context"
	"fmt"
	"strings"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/internal/amount"
	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/train"
)

// Assumed describes what a plan without data is based on.
type Assumed struct {
	Why    string   `json:"reason"`                // why the data were not opened
	Counts []string `json:"counts"`                // what was taken from the recipe instead
	Epoch  bool     `json:"epoch_known,omitempty"` // whether the number of samples is known, and so the steps of an epoch
}

// Plan is Config for a plan, which needs only the number and shape of samples. If the data exist and blind is false, it opens them and assumes
// nothing (nil). Otherwise it uses random samples instead, data.published_samples of them.
func Plan(ctx context.Context, r *recipes.Recipe, rank Rank, blind bool) (train.Config, *Assumed, error) {
	why := "not opened"
	if !blind {
		c, err := Config(ctx, r, rank)
		if err == nil || launch.ExitCode(err) != launch.ExitNoInput {
			return c, nil, err
		}
		why = "not found: " + strings.TrimPrefix(firstLine(err), "data: ")
	}
	f, err := familyOf(r)
	if err != nil {
		return train.Config{}, nil, err
	}
	without := *r
	taken, lacks := f.planned(&without)
	d := &without.Data
	epochs := d.Published > 0
	switch {
	case epochs:
		taken = append(taken, "data.published_samples = "+amount.Count(d.Published))
	case inEpochs(r):
		lacks = append(lacks, "the number of training samples (--samples N, or data.published_samples in the recipe)")
	}
	if len(lacks) > 0 {
		return train.Config{}, nil, launch.WithCode(
			launch.ExitNoInput,
			fmt.Errorf("%s\nhint: a plan needs no data, but then specify %s", why, strings.Join(lacks, "; ")),
		)
	}
	d.Kind, d.Samples = "synthetic", d.Published
	if !epochs {
		d.Samples = without.GlobalBatch(max(1, rank.World))
	}
	c, err := Config(ctx, &without, rank)
	if err != nil {
		return c, nil, fmt.Errorf("a plan without data: %w", err)
	}
	return c, &Assumed{Why: why, Counts: taken, Epoch: epochs}, nil
}

// inEpochs reports whether a plan depends on the number of steps per epoch.
func inEpochs(r *recipes.Recipe) bool {
	s := &r.Schedule
	return r.Run.Steps == 0 || s.WarmupEpochs > 0 || len(s.MilestonesEpochs) > 0
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return strings.TrimSuffix(line, "; searched")
}
