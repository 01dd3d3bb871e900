package assemble

import (
	"fmt"
	"strings"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/internal/amount"
	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/train"
)

// Assumed says what a plan without data is based on.
type Assumed struct {
	Why    string   `json:"reason"`                // why the data were not looked at
	Counts []string `json:"counts"`                // what was taken from the recipe instead
	Epoch  bool     `json:"epoch_known,omitempty"` // whether the number of samples is known, and so the steps of an epoch
}

// Plan is Config for a plan, which needs no samples but their number and shape. Where the data are here and blind is false they are opened, and nothing is
// assumed (nil). Otherwise samples that mean nothing take their place, as many as data.published_samples says.
func Plan(r *recipes.Recipe, rank Rank, blind bool) (train.Config, *Assumed, error) {
	why := "not looked at"
	if !blind {
		c, err := Config(r, rank)
		if err == nil || launch.ExitCode(err) != launch.ExitNoInput {
			return c, nil, err
		}
		why = "not here: " + strings.TrimPrefix(firstLine(err), "data: ")
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
		return train.Config{}, nil, launch.WithCode(launch.ExitNoInput, fmt.Errorf("%s\nhint: a plan needs no data, but then it must be told: %s", why, strings.Join(lacks, "; ")))
	}
	d.Kind, d.Samples = "synthetic", d.Published
	if !epochs {
		d.Samples = without.GlobalBatch(max(1, rank.World))
	}
	c, err := Config(&without, rank)
	if err != nil {
		return c, nil, fmt.Errorf("a plan without data: %w", err)
	}
	return c, &Assumed{Why: why, Counts: taken, Epoch: epochs}, nil
}

// inEpochs says whether a plan depends on the steps of an epoch.
func inEpochs(r *recipes.Recipe) bool {
	s := &r.Schedule
	return r.Run.Steps == 0 || s.WarmupEpochs > 0 || len(s.MilestonesEpochs) > 0
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return strings.TrimSuffix(line, "; looked for")
}
