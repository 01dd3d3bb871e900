package train

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/train/checkpoint"
)

// changes lists the settings that differ from those of a checkpoint, as "key: old -> new". Older checkpoints store all settings in a single line.
func (t *Trainer) changes(st checkpoint.State) []string {
	var out []string
	if st.Settings == nil || t.cfg.Settings == nil {
		was, is := st.Fingerprints["settings"], t.cfg.settings()
		if was != "" && was != is {
			out = append(out, fmt.Sprintf("%s -> %s", was, is))
		}
		return out
	}
	keys := maps.Clone(st.Settings)
	maps.Copy(keys, t.cfg.Settings)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if was, is := st.Settings[key], t.cfg.Settings[key]; was != is {
			out = append(out, fmt.Sprintf("%s: %s -> %s", key, orNone(was), orNone(is)))
		}
	}
	return out
}

func orNone(s string) string {
	if s == "" {
		return "(none)"
	}
	return s
}

// lengthKeys are the settings for the length of a run. A finished run may be given a shorter one.
var lengthKeys = []string{"run.steps", "run.epochs"}

// compareSettings reports the settings that differ from those of the checkpoint. If nothing is left to train they could have no effect, and that is
// an error.
func (t *Trainer) compareSettings(st checkpoint.State) error {
	if t.evaluating {
		return nil
	}
	changes := t.changes(st)
	if f, err := t.cfg.Data.Fingerprint(); err == nil && st.Fingerprints["data"] != "" && st.Fingerprints["data"] != f {
		changes = append(changes, fmt.Sprintf("training data: %s -> %s", st.Fingerprints["data"], f))
	}
	if t.step >= t.total && !t.owed {
		void := slices.DeleteFunc(slices.Clone(changes), func(c string) bool {
			key, _, _ := strings.Cut(c, ":")
			return slices.Contains(lengthKeys, key)
		})
		if len(void) > 0 {
			return launch.WithCode(launch.ExitRecipe, errors.New(
				"this run is finished, and these settings differ from those it was trained with: "+strings.Join(void, "; ")+
					"\nhint: choose another output_dir for another run, set more steps or epochs to continue this one, or set checkpoint.resume = \"none\" to start over"))
		}
	}
	if t.comm.Rank() != 0 {
		return nil
	}
	if len(changes) > 0 {
		slog.Warn("resumed with changed settings: " + strings.Join(changes, "; "))
	}
	if was, is := formerProducts(st.Kernels), t.conv.Products; is != "" && was != is {
		slog.Info(fmt.Sprintf("products of bf16 are %s, and were %s before: losses agree to rounding, not bit by bit", is, was))
	}
	if n := t.conv.others(st.Kernels); n > 0 {
		slog.Info(fmt.Sprintf("%d convolutions are computed by another algorithm than before: losses agree to rounding, not bit by bit", n))
	}
	if was, is := st.Fingerprints["sums"], comm.Fold(t.comm); was != "" && was != is && st.World == t.comm.Size() {
		slog.Info("ranks are placed in another way than before: sums of gradients are made in another order, and differ by rounding", "was", was, "is", is)
	}
	return nil
}
