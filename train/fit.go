package train

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
)

// fit is how the tensors of a file go with those of the run. Both ways count: a file with more than the model takes is, most likely, another model's.
type fit struct {
	kept    []string // of the run, and not in the file or of another shape there
	why     []string // the same with the reason
	surplus []string // of the file, and nothing in the run takes them
	ignored []string // surplus that the configuration allows
}

// fitting compares by name and shape.
func fitting(want []tensor, names []string, shape func(name string) ([]int, bool), ignore []string) fit {
	var f fit
	known := map[string]bool{}
	for _, x := range want {
		known[x.name] = true
		has, ok := shape(x.name)
		switch {
		case !ok:
			f.kept, f.why = append(f.kept, x.name), append(f.why, x.name+" is missing")
		case !npu.Shape(has).Equal(x.desc.Shape):
			f.kept, f.why = append(f.kept, x.name), append(f.why, fmt.Sprintf("%s is %v there, %v in the model", x.name, has, x.desc.Shape))
		}
	}
	for _, name := range names {
		switch {
		case known[name] || derived(name):
		case slices.ContainsFunc(ignore, func(pattern string) bool { return matches(pattern, name) }):
			f.ignored = append(f.ignored, name)
		default:
			f.surplus = append(f.surplus, name)
		}
	}
	return f
}

// derived says whether a tensor of a file is none of a model's: PyTorch's count of batches in a batch norm, and rotary tables, which follow from the configuration.
func derived(name string) bool {
	return strings.HasSuffix(name, ".num_batches_tracked") || strings.HasSuffix(name, "rotary_emb.inv_freq") || name == "rope.freqs"
}

// matches says whether a name fits a pattern, in which * stands for any text.
func matches(pattern, name string) bool {
	const slash, other = "/", "\x00" // path.Match's star stops at slashes, and names may have some
	ok, _ := path.Match(strings.ReplaceAll(pattern, slash, other), strings.ReplaceAll(name, slash, other))
	return ok
}

// checkPatterns finds patterns that can never match.
func checkPatterns(patterns []string) error {
	for _, p := range patterns {
		if _, err := path.Match(p, ""); err != nil {
			return fmt.Errorf("train: the pattern %q of tensors to ignore: %w", p, err)
		}
	}
	return nil
}

// faults says what does not fit, "" where all does; with partial, parameters may be missing.
func (f fit) faults(partial bool) string {
	var out []string
	if !partial && len(f.why) > 0 {
		out = append(out, fmt.Sprintf("%d of the model's tensors do not fit: %s", len(f.why), strings.Join(shorten(f.why, 4), "; ")))
	}
	if len(f.surplus) > 0 {
		out = append(out, fmt.Sprintf("%d of the file's are not in the model: %s", len(f.surplus), strings.Join(shorten(f.surplus, 4), ", ")))
	}
	return strings.Join(out, "; ")
}

// misfit is the error about weights of which not all find a place, or which leave a place empty.
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
	return launch.WithCode(launch.ExitRecipe, fmt.Errorf("train: %s does not hold this model: %s%s\nhint: %s", file, faults, guess, hint))
}
