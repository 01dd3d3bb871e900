package train

import (
	"fmt"
	"log/slog"
	"path"
	"slices"
	"strings"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
)

// fit is how the tensors of a file match those of the run. Both directions count: a file with tensors that the model lacks is most likely for another
// model.
type fit struct {
	kept    []string // tensors of the run that the file lacks, or has in another shape
	why     []string // the same, with reasons
	surplus []string // tensors of the file that the run does not use
	ignored []string // surplus that the configuration allows
	adapted []adapted
}

// adapted is a tensor that the file has in another shape, from which the model's is made.
type adapted struct {
	name      string
	has, want npu.Shape
	from      func([]float32) []float32
}

// adapt moves those tensors from kept to adapted that can be made from the file's.
func (f *fit) adapt(want []tensor, shape func(name string) ([]int, bool), how func(param string, has, want npu.Shape) func([]float32) []float32) {
	if how == nil {
		return
	}
	for _, x := range want {
		has, ok := shape(x.name)
		at := slices.Index(f.kept, x.name)
		if !ok || at < 0 {
			continue
		}
		if from := how(x.name, has, x.desc.Shape); from != nil {
			f.adapted = append(f.adapted, adapted{x.name, has, x.desc.Shape, from})
			f.kept, f.why = slices.Delete(f.kept, at, at+1), slices.Delete(f.why, at, at+1)
		}
	}
}

// readAdapted reads a tensor of another shape and makes the model's.
func (f *fit) readAdapted(set Weights, name string) ([]float32, error) {
	for _, a := range f.adapted {
		if a.name != name {
			continue
		}
		v := make([]float32, a.has.Elems())
		if err := set.Read(name, v); err != nil {
			return nil, err
		}
		slog.Info(fmt.Sprintf("%s is %v in the initial weights and was resized to %v", name, a.has, a.want))
		out := a.from(v)
		if int64(len(out)) != a.want.Elems() {
			return nil, fmt.Errorf("%s: %d values for the shape %v", name, len(out), a.want)
		}
		return out, nil
	}
	return nil, nil
}

// fitting compares by name and shape.
func fitting(want []tensor, names []string, shape func(name string) ([]int, bool), ignore []string) fit {
	var f fit
	known, ignored := map[string]bool{}, MatchAny(ignore...)
	for _, x := range want {
		known[x.name] = true
		has, ok := shape(x.name)
		switch {
		case !ok:
			f.kept, f.why = append(f.kept, x.name), append(f.why, x.name+" is missing in the file")
		case !npu.Shape(has).Equal(x.desc.Shape):
			f.kept, f.why = append(f.kept, x.name), append(f.why, fmt.Sprintf("%s is %v in the file, %v in the model", x.name, has, x.desc.Shape))
		}
	}
	for _, name := range names {
		switch {
		case known[name] || derived(name):
		case ignored(name):
			f.ignored = append(f.ignored, name)
		default:
			f.surplus = append(f.surplus, name)
		}
	}
	return f
}

// derived reports whether a tensor of a file is not a model parameter: the batch counter of PyTorch's batch norm, or rotary tables, which follow from
// the configuration.
func derived(name string) bool {
	return strings.HasSuffix(name, ".num_batches_tracked") || strings.HasSuffix(name, "rotary_emb.inv_freq") || name == "rope.freqs"
}

// matches reports whether a name fits a pattern, in which * matches any text.
func matches(pattern, name string) bool {
	const slash, other = "/", "\x00" // path.Match's star stops at slashes, and names may contain them
	ok, _ := path.Match(strings.ReplaceAll(pattern, slash, other), strings.ReplaceAll(name, slash, other))
	return ok
}

// checkPatterns rejects malformed patterns.
func checkPatterns(patterns []string) error {
	for _, p := range patterns {
		if _, err := path.Match(p, ""); err != nil {
			return fmt.Errorf("train: pattern %q of tensors to ignore: %w", p, err)
		}
	}
	return nil
}

// faults describes what does not fit, or returns "" if everything does; with partial, parameters may be missing.
func (f fit) faults(partial bool) string {
	var out []string
	if !partial && len(f.why) > 0 {
		out = append(out, fmt.Sprintf("%d tensors of the model do not fit: %s", len(f.why), strings.Join(shorten(f.why, 4), "; ")))
	}
	if len(f.surplus) > 0 {
		out = append(out, fmt.Sprintf("%d tensors of the file are not in the model: %s", len(f.surplus), strings.Join(shorten(f.surplus, 4), ", ")))
	}
	return strings.Join(out, "; ")
}

// misfit is the error for weights that do not match the tensors of the run.
func (t *Trainer) misfit(file string, names []string, faults, hint string) error {
	if wrapped := safetensors.WrapperHint(names); wrapped != "" {
		hint = wrapped
	}
	guess := ""
	if t.cfg.Recognise != nil {
		if model := t.cfg.Recognise(names); model != "" {
			guess = fmt.Sprintf("; they look like the weights of %s", model)
		}
	}
	return launch.WithCode(launch.ExitRecipe, fmt.Errorf("train: %s does not match this model: %s%s\nhint: %s", file, faults, guess, hint))
}
