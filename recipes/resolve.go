package recipes

import (
	"os"
	"path/filepath"
	"strings"
)

// pairs are keys of which at most one may be set.
var pairs = [][2]string{
	{"run.steps", "run.epochs"},
	{"schedule.warmup_steps", "schedule.warmup_epochs"},
	{"schedule.milestones_steps", "schedule.milestones_epochs"},
	{"eval.every_epochs", "eval.every_steps"},
	{"checkpoint.every_epochs", "checkpoint.every_steps"},
}

// resolve fills in auto keys that depend only on other keys. It never fails: check reports what is inconsistent.
func (r *Recipe) resolve() {
	r.settle()
	r.resolveRun()
	r.resolveData()
	r.resolveOptim()
	bad := 10
	if r.Train.DType == "f16" {
		bad = 50
	}
	auto(r, "train.max_bad_steps", &r.Train.MaxBadSteps, bad)
	auto(r, "train.ranks", &r.Train.Ranks, 1)
	auto(r, "eval.batch_per_rank", &r.Eval.Batch, max(1, r.Train.Batch))
	auto(r, "checkpoint.dir", &r.Checkpoint.Dir, filepath.Join(r.Run.OutputDir, "checkpoints"))
	r.resolvePaths()
}

// switches are keys that turn off what other keys configure.
var switches = map[string][]string{
	"eval.enabled":       {"eval.every_epochs", "eval.every_steps"},
	"checkpoint.enabled": {"checkpoint.every_epochs", "checkpoint.every_steps"},
}

// settle lets an override win over a conflicting key in the file: --set run.steps=10 shortens a run given in epochs, and --set eval.enabled=false
// turns off evaluations that the file configures.
func (r *Recipe) settle() {
	drop := func(key string) {
		byKey()[key].in(r).SetZero()
		delete(r.origin.at, key)
	}
	for key, asks := range switches {
		if r.origin.at[key].file != "--set" || byKey()[key].in(r).Bool() {
			continue
		}
		for _, k := range asks {
			if at := r.origin.at[k]; at.file != "--set" && at.file != "" {
				drop(k)
			}
		}
	}
	for _, p := range pairs {
		a, b := r.origin.at[p[0]], r.origin.at[p[1]]
		for _, loser := range []struct {
			key           string
			mine, winners place
		}{{p[1], b, a}, {p[0], a, b}} {
			if loser.winners.file == "--set" && loser.mine.file != "--set" && loser.mine.file != "" {
				drop(loser.key)
			}
		}
	}
}

// CountRanks sets train.ranks, where it is auto, to the number of devices that count returns for train.device; 0 means that they cannot be counted, and
// there is one rank. Load cannot do it: how many devices there are depends on the machine.
func (r *Recipe) CountRanks(count func(device string) int) {
	if !r.has("train.ranks") {
		r.Train.Ranks = max(1, count(r.Train.Device))
		r.warnings = r.suspicions() // of the global batch
	}
}

// Chose reports whether the file or an override sets a key; otherwise its value is the default, or derived.
func (r *Recipe) Chose(key string) bool { return r.has(key) }

// auto sets a key that is not set.
func auto[T any](r *Recipe, key string, at *T, v T) {
	if !r.has(key) {
		*at = v
	}
}

func (r *Recipe) resolveRun() {
	name := r.origin.name
	if name == "" || name == "." {
		name = "run"
	}
	auto(r, "run.name", &r.Run.Name, name)
	auto(r, "run.output_dir", &r.Run.OutputDir, filepath.Join("runs", r.Run.Name))
}

func (r *Recipe) resolveData() {
	d := &r.Data
	train, eval, size, channels, augment, resize := "train", "val", 224, 3, "random_resized_crop", true
	switch d.Kind {
	case "idx":
		eval, size, channels, augment, resize = "test", 0, 1, "none", false
	case "csv":
		train, eval = "train.csv", "val.csv"
	case "webdataset":
		train, eval = "train*.tar", "val*.tar"
	case "packed":
		train, eval, size, augment, resize = "train*.bin", "val*.bin", 0, "none", false
	case "text":
		train, eval, size, augment, resize = "train*.txt", "val*.txt", 0, "none", false
	case "tokens":
		size, augment, resize = 0, "none", false
	case "synthetic":
		augment, resize = "none", false
		if r.Model.Classes == 0 {
			r.Model.Classes = 1000
		}
	}
	auto(r, "data.train_split", &d.TrainSplit, train)
	auto(r, "data.eval_split", &d.EvalSplit, eval)
	auto(r, "data.image_size", &d.ImageSize, size)
	auto(r, "data.channels", &d.Channels, channels)
	auto(r, "data.augment", &d.Augment, augment)
	if resize {
		auto(r, "data.eval_resize_pixels", &d.EvalResize, d.ImageSize*256/224)
	}
	mean, std := []float64{0, 0, 0}, []float64{1, 1, 1}
	if d.Channels == 3 && d.Kind != "synthetic" {
		mean, std = []float64{0.485, 0.456, 0.406}, []float64{0.229, 0.224, 0.225}
	}
	n := min(max(d.Channels, 1), 3)
	auto(r, "data.mean", &d.Mean, mean[:n])
	auto(r, "data.std", &d.Std, std[:n])
}

func (r *Recipe) resolveOptim() {
	o := r.optimizer()
	if o.name == "" {
		o = optimizers[0] // the name is already reported; avoid follow-on problems
	}
	auto(r, "optim.lr", &r.Optim.LR, o.lr)
	auto(r, "optim.weight_decay", &r.Optim.WeightDecay, o.decay)
	auto(r, "optim.eps", &r.Optim.Eps, o.eps)
}

// resolvePaths resolves paths in a recipe file relative to the file's folder. Paths on the command line are relative to the working directory, as
// usual for a command line.
func (r *Recipe) resolvePaths() {
	fromFile := func(key string) bool { return r.origin.dir != "" && r.has(key) && r.origin.at[key].file != "--set" }
	join := func(p string) string { return filepath.Join(r.origin.dir, filepath.FromSlash(p)) }

	if root := &r.Data.Root; fromFile("data.root") && *root != "" && !filepath.IsAbs(*root) {
		switch {
		case strings.HasPrefix(*root, "./"), strings.HasPrefix(*root, "../"), *root == ".", *root == "..":
			*root = join(*root)
		case exists(join(*root)):
			*root = join(*root)
		case exists(join(filepath.Join("data", *root))):
			*root = join(filepath.Join("data", *root))
		}
	}
	if p := &r.Model.InitFrom; fromFile("model.init_from") && *p != "" && !filepath.IsAbs(*p) {
		// A recipe that ships with the source may use weights downloaded to the working directory.
		switch dotted := strings.HasPrefix(*p, "./") || strings.HasPrefix(*p, "../"); {
		case !dotted && !exists(join(*p)) && exists(join(filepath.Join("data", *p))): // bundled ones
			*p = join(filepath.Join("data", *p))
		case dotted || exists(join(*p)):
			*p = join(*p)
		} // otherwise in the working directory, or bundled weights by name
	}
	if p := &r.Checkpoint.Resume; fromFile("checkpoint.resume") && *p != "auto" && *p != "none" && *p != "best" && *p != "" && !filepath.IsAbs(*p) {
		*p = join(*p)
	}
}

func exists(p string) bool { _, err := os.Stat(p); return err == nil }

// Dir is the folder of the recipe file, which may also hold data; "" for a recipe in the binary.
func (r *Recipe) Dir() string { return r.origin.dir }

// Source is the file that the recipe was read from, for messages.
func (r *Recipe) Source() string { return r.origin.file }

// GlobalBatch is the number of samples per optimizer step with the given number of ranks.
func (r *Recipe) GlobalBatch(ranks int) int { return r.Train.Batch * r.Train.Accumulate * ranks }

// Warnings lists settings that are allowed but look like mistakes.
func (r *Recipe) Warnings() []string { return r.warnings }
