package recipes

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// checker collects the problems of one recipe.
type checker struct {
	r   *Recipe
	out Errors
}

// bad records a problem at the place where the key was set.
func (c *checker) bad(key, hint, format string, a ...any) {
	at, set := c.r.origin.at[key]
	if !set {
		at.file = c.r.origin.file
	}
	c.out = append(c.out, Problem{File: at.file, Line: at.line, Key: key, Msg: fmt.Sprintf(format, a...), Hint: hint})
}

// Check reports everything that is wrong with a recipe. It is for recipes changed in Go; Load and Decode have already checked theirs. It returns nil
// for a valid recipe, and Errors otherwise.
func (r *Recipe) Check() error {
	if p := r.check(); len(p) > 0 {
		return p
	}
	return nil
}

func (r *Recipe) check() Errors {
	c := &checker{r: r}
	for _, s := range schema() {
		for _, f := range s.fields {
			c.field(f)
		}
	}
	c.run()
	c.data()
	c.family()
	c.lossScale()
	c.compress()
	c.optim()
	c.groups()
	c.schedule()
	c.monitor()
	c.checkpoint()
	c.comm()
	return c.out
}

// field checks what the tags say about a single value.
func (c *checker) field(f *field) {
	v := f.in(c.r)
	switch f.typ.Kind() {
	case reflect.String:
		s := v.String()
		if f.oneOf != nil && !slices.Contains(f.oneOf, s) {
			hint := "one of " + strings.Join(slices.DeleteFunc(slices.Clone(f.oneOf), func(s string) bool { return s == "" }), ", ")
			if n := nearest(s, f.oneOf); n != "" {
				hint = fmt.Sprintf("did you mean %q? %s", n, hint)
			}
			if instead := elsewhere[f.key()][s]; instead != "" {
				hint = instead
			}
			c.bad(f.key(), hint, "unknown value %q", s)
		}
		if strings.ContainsAny(s, "\n\r\x00") {
			c.bad(f.key(), "", "must be one line of text")
		}
	case reflect.Int:
		if f.oneOf != nil && !slices.Contains(f.oneOf, strconv.FormatInt(v.Int(), 10)) {
			c.bad(f.key(), "one of "+strings.Join(f.oneOf, ", "), "unknown value %d", v.Int())
		}
		c.number(f, float64(v.Int()))
	case reflect.Uint64:
		c.number(f, float64(v.Uint()))
	case reflect.Float64:
		if x := v.Float(); !f.takesAuto() || x != float64(Auto) {
			c.number(f, x)
		}
	case reflect.Slice:
		for i := range v.Len() {
			if e := v.Index(i); e.Kind() == reflect.Float64 && (math.IsNaN(e.Float()) || math.IsInf(e.Float(), 0)) {
				c.bad(f.key(), "", "element %d is not a finite number", i+1)
			}
		}
	}
}

func (c *checker) number(f *field, x float64) {
	unit := ""
	if f.unit != "" {
		unit = " " + f.unit
	}
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0):
		c.bad(f.key(), "", "must be a finite number, got %g", x)
	case f.over != nil && x <= *f.over:
		c.bad(f.key(), "", "must be above %g%s, got %g", *f.over, unit, x)
	case f.min != nil && x < *f.min:
		c.bad(f.key(), "", "must be at least %g%s, got %g", *f.min, unit, x)
	case f.max != nil && x > *f.max:
		c.bad(f.key(), "", "must be at most %g%s, got %g", *f.max, unit, x)
	}
}

// one reports a problem if both keys of a pair are set. It returns how many are.
func (c *checker) one(a, b string) int {
	given := func(key string) bool {
		v := byKey()[key].in(c.r)
		if v.Kind() == reflect.Slice {
			return v.Len() > 0
		}
		return !v.IsZero()
	}
	n := 0
	for _, k := range []string{a, b} {
		if given(k) {
			n++
		}
	}
	if n == 2 {
		c.bad(b, "remove one of the two", "cannot be set together with %s", a)
	}
	return n
}

func (c *checker) run() {
	if c.one("run.steps", "run.epochs") == 0 {
		c.bad("run.steps", "set run.steps or run.epochs", "the recipe does not say how long to train")
	}
	name := c.r.Run.Name
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, `/\:`) {
		c.bad("run.name", "use letters, digits, - and _", "%q is not a valid folder name", name)
	}
	if c.r.Run.OutputDir == "" {
		c.bad("run.output_dir", "", "is empty")
	}
}

func (c *checker) data() {
	d := &c.r.Data
	if d.Kind != "synthetic" && d.Root == "" {
		c.bad("data.root", `set it in section [data] or with --set data.root=FOLDER: a folder such as "/data/imagenet", or a bundled data set such as "flowers"`,
			"is required for data.kind = %q", d.Kind)
	}
	if d.ImageSize == 0 && (slices.Contains(encoded, d.Kind) || d.Kind == "synthetic") {
		c.bad("data.image_size", "224 is usual", "must be above 0 for data.kind = %q", d.Kind)
	}
	if d.ImageSize == 0 && d.Augment != "none" {
		c.bad("data.image_size", "", "must be above 0 for data.augment = %q", d.Augment)
	}
	if d.Channels != 3 && slices.Contains(encoded, d.Kind) {
		c.bad("data.channels", "", "must be 3 for data.kind = %q: images are read in colour", d.Kind)
	}
	if d.EvalResize != 0 && d.EvalResize < d.ImageSize {
		c.bad("data.eval_resize_pixels", "", "must not be below data.image_size = %d, got %d", d.ImageSize, d.EvalResize)
	}
	if d.Kind == "idx" {
		for _, s := range []struct{ key, v string }{{"data.train_split", d.TrainSplit}, {"data.eval_split", d.EvalSplit}} {
			if s.v != "train" && s.v != "test" && s.v != "val" {
				c.bad(s.key, "train or test", "unknown split %q of an idx data set", s.v)
			}
		}
	}
	if d.TrainSplit == "" {
		c.bad("data.train_split", "", "is empty")
	}
	if d.EvalSplit == "" && c.r.Eval.Enabled && d.Kind != "synthetic" {
		c.bad("data.eval_split", "set it, or set eval.enabled = false", "is empty")
	}
	c.interval("data.crop_area", d.CropArea, 1)
	c.interval("data.crop_ratio", d.CropRatio, math.Inf(1))
	for _, p := range []struct {
		key string
		v   []float64
	}{{"data.mean", d.Mean}, {"data.std", d.Std}} {
		if len(p.v) != d.Channels && (d.Channels == 1 || d.Channels == 3) {
			c.bad(p.key, "", "needs one number for each of the %d channels, got %d", d.Channels, len(p.v))
		}
	}
	for _, s := range d.Std {
		if !(s > 0) {
			c.bad("data.std", "", "must be above 0, got %g", s)
			break
		}
	}
	c.pixelScale("data.mean", d.Mean)
	c.pixelScale("data.std", d.Std)
}

// pixelScale rejects numbers given for pixels from 0 to 255: pixels are 0 to 1, so neither their mean nor their standard deviation exceeds 1.
func (c *checker) pixelScale(key string, v []float64) {
	for _, x := range v {
		if x <= 1 {
			continue
		}
		scaled := make([]string, len(v))
		for i, y := range v {
			scaled[i] = strconv.FormatFloat(y/255, 'g', 3, 64)
		}
		c.bad(key, fmt.Sprintf("pixel values range from 0 to 1; if these are for 0 to 255, use [%s]", strings.Join(scaled, ", ")), "must be at most 1, got %g", x)
		return
	}
}

// interval checks a pair of smallest and largest value.
func (c *checker) interval(key string, v []float64, limit float64) {
	if len(v) != 2 || !(v[0] > 0) || v[1] < v[0] || v[1] > limit {
		hint := "0 < smallest <= largest"
		if !math.IsInf(limit, 1) {
			hint += fmt.Sprintf(" <= %g", limit)
		}
		c.bad(key, hint, "must be two numbers, the smallest and the largest, got %v", v)
	}
}

func (c *checker) text() {
	if c.r.Data.Kind == "text" && c.r.Text.Tokenizer == "" {
		c.bad("text.tokenizer", `for example tokenizer = "tokenizer.json", or the bundled "stories260k"`, "is required for data.kind = \"text\"")
	}
}

func (c *checker) lossScale() {
	if t := &c.r.Train; t.ScaleMin > t.ScaleInit {
		c.bad("train.loss_scale_min", "", "must not be above train.loss_scale_init = %g, got %g", t.ScaleInit, t.ScaleMin)
	}
}

func (c *checker) compress() {
	if n := c.r.Comm.CompressBlock; n > 0 && n&(n-1) != 0 {
		c.bad("comm.compress_block", "", "must be a power of two, got %d", n)
	}
	if c.r.Comm.Compress == "int8" && c.r.Train.Device == "npu" {
		c.bad("comm.compress", "use f16 or bf16, to which the device casts itself, or none",
			"int8 encodes in the memory of the host, and gradients of an NPU are in its own")
	}
}

func (c *checker) optim() {
	o := &c.r.Optim
	if o.Name == "sgd" && o.Nesterov && (o.Momentum == 0 || o.Dampening != 0) {
		c.bad("optim.nesterov", "", "requires momentum and no dampening, got momentum %g, dampening %g", o.Momentum, o.Dampening)
	}
	if c.r.optimizer().needsEps && o.Eps == 0 {
		c.bad("optim.eps", "", "must be above 0 for %s", o.Name)
	}
	if m := &c.r.Model; m.InitPartial && m.InitFrom == "" {
		c.bad("model.init_partial", "set model.init_from, or remove this key", "requires model.init_from")
	}
}

func (c *checker) schedule() {
	s := &c.r.Schedule
	c.one("schedule.warmup_steps", "schedule.warmup_epochs")
	n := c.one("schedule.milestones_steps", "schedule.milestones_epochs")
	if s.Kind == "step" && n == 0 {
		c.bad("schedule.milestones_epochs", "for example milestones_epochs = [30, 60, 80]", "is required for schedule.kind = \"step\"")
	}
	if !rising(s.MilestonesSteps) {
		c.bad("schedule.milestones_steps", "", "must be above 0 and increasing, got %v", s.MilestonesSteps)
	}
	if !rising(s.MilestonesEpochs) {
		c.bad("schedule.milestones_epochs", "", "must be above 0 and increasing, got %v", s.MilestonesEpochs)
	}
}

func (c *checker) monitor() {
	e, k := &c.r.Eval, &c.r.Checkpoint
	if e.Monitor == "" {
		c.bad("eval.monitor", `for example "loss" or "top1"`, "is empty")
	}
	for key, on := range map[string]bool{"checkpoint.keep_best": k.KeepBest, "eval.patience": e.Patience > 0, "schedule.kind": c.r.Schedule.Kind == "plateau"} {
		if on && !e.Enabled {
			c.bad(key, "set eval.enabled = true", "requires evaluations")
		} else if on && key != "checkpoint.keep_best" && e.EveryEpochs+e.EverySteps == 0 {
			c.bad(key, "set eval.every_epochs or eval.every_steps", "requires evaluations during the run")
		}
	}
	if k.KeepBest && !k.Enabled {
		c.bad("checkpoint.keep_best", "set checkpoint.enabled = true", "requires checkpoints")
	}
	if c.r.Schedule.Kind == "plateau" && c.r.Schedule.Gamma >= 1 {
		c.bad("schedule.gamma", "", "must be below 1 for schedule.kind = \"plateau\", got %g", c.r.Schedule.Gamma)
	}
}

func rising[T int | float64](v []T) bool {
	for i, x := range v {
		if x <= 0 || i > 0 && x <= v[i-1] {
			return false
		}
	}
	return true
}

func (c *checker) checkpoint() {
	c.one("eval.every_epochs", "eval.every_steps")
	c.one("checkpoint.every_epochs", "checkpoint.every_steps")
	k := &c.r.Checkpoint
	if k.Resume == "" {
		c.bad("checkpoint.resume", `"auto", "none" or the path of a checkpoint`, "is empty")
	}
	if k.Enabled && k.Dir == "" {
		c.bad("checkpoint.dir", "", "is empty")
	}
	if !k.Enabled && k.EveryEpochs+k.EverySteps > 0 {
		c.bad("checkpoint.enabled", "", "is false, but a checkpoint interval is set")
	}
	if e := &c.r.Eval; !e.Enabled && e.EveryEpochs+e.EverySteps > 0 {
		c.bad("eval.enabled", "", "is false, but an evaluation interval is set")
	}
}
