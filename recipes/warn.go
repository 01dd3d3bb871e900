package recipes

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// suspicions lists settings that are allowed but look like mistakes.
func (r *Recipe) suspicions() []string {
	var out []string
	warn := func(key, format string, a ...any) {
		s := key + ": " + fmt.Sprintf(format, a...)
		if at, ok := r.origin.at[key]; ok && at.line > 0 {
			s = fmt.Sprintf("%s:%d: %s", at.file, at.line, s)
		}
		out = append(out, s)
	}
	for _, key := range sortedKeys(r.origin.at) {
		if why := r.unused(key); why != "" {
			warn(key, "has no effect %s", why)
		}
	}
	o, s := &r.Optim, &r.Schedule
	batch := r.GlobalBatch(r.Train.Ranks)
	lr := o.PeakLR(batch)
	if o.LRScaling != "none" && lr > 1.5*o.LR && s.WarmupSteps == 0 && s.WarmupEpochs == 0 {
		warn("schedule.warmup_epochs", "the learning rate is scaled up to %.3g for a global batch of %d without warm-up, which often diverges", lr, batch)
	}
	rule := r.optimizer()
	if rule.highLR > 0 && lr > rule.highLR {
		warn("optim.lr", "a peak learning rate of %.3g is unusually high for %s", lr, o.Name)
	}
	if o.WeightDecay > rule.highDecay {
		warn("optim.weight_decay", "%g is unusually high for %s", o.WeightDecay, o.Name)
	}
	if r.Train.Batch < 4 && r.family().BatchNorm {
		warn("train.batch_per_rank", "batch norm over %d samples is very noisy", r.Train.Batch)
	}
	if _, set := r.origin.at["train.max_bad_steps"]; set && r.Train.ClipNorm == 0 && r.Train.DType != "f16" && r.matters("train.max_bad_steps") {
		warn("train.max_bad_steps", "has no effect without train.clip_norm or train.dtype = \"f16\"")
	}
	if r.Model.LabelSmoothing > 0.3 {
		warn("model.label_smoothing", "%g is unusually high; 0.1 is typical", r.Model.LabelSmoothing)
	}
	if d := &r.Data; d.Kind == "csv" && !r.Eval.Enabled && r.has("data.train_split") && !r.has("data.eval_split") && d.TrainSplit != d.EvalSplit {
		warn("data.eval_split", "not set, so all rows of %s are for training; to hold rows out, set it to the same file, which has a split column, or set "+
			"data.eval_fraction too", d.TrainSplit)
	}
	long := r.Run.Epochs > 20 || r.Run.Steps > 2000
	if c := &r.Checkpoint; long && (!c.Enabled || c.EveryEpochs+c.EverySteps == 0) {
		warn("checkpoint.every_epochs", "a long run without intermediate checkpoints: a crash loses everything")
	}
	if long && r.Log.Trace {
		warn("log.trace", "the trace of a long run is a very large file")
	}
	if n := r.Run.Steps; n > 0 && s.WarmupSteps >= n {
		warn("schedule.warmup_steps", "the run of %d steps ends during warm-up", n)
	}
	if e := r.Run.Epochs; e > 0 && s.WarmupEpochs >= e {
		warn("schedule.warmup_epochs", "the run of %g epochs ends during warm-up", e)
	}
	if s.Kind == "step" && r.Run.Epochs > 0 && len(s.MilestonesEpochs) > 0 && s.MilestonesEpochs[len(s.MilestonesEpochs)-1] >= r.Run.Epochs {
		warn("schedule.milestones_epochs", "not all of %v come before the end of the run (%g epochs)", s.MilestonesEpochs, r.Run.Epochs)
	}
	return out
}

// unused explains why a key that was set has no effect, or returns "".
func (r *Recipe) unused(key string) string {
	for _, u := range []struct {
		value string
		what  string
		uses  map[string][]string // by value: the keys that only these values use
	}{
		{r.Optim.Name, "optim.name", usedBy()},
		{r.Model.Name, "model.name", familyKeys()},
		{r.Model.Loss, "model.loss", map[string][]string{"bce": {"model.bce_threshold", "model.bce_sum_classes"}}},
		{r.Optim.LRScaling, "optim.lr_scaling", map[string][]string{"linear": {"optim.lr_batch"}, "sqrt": {"optim.lr_batch"}}},
		{r.Train.DType, "train.dtype", map[string][]string{"f16": append([]string{"train.loss_scale"}, dynamicKeys...)}},
		{fmt.Sprint(r.Train.LossScale), "train.loss_scale", map[string][]string{"0": dynamicKeys}},
		{r.Comm.Compress, "comm.compress", map[string][]string{"f16": {"comm.compress_warmup_steps"}, "bf16": {"comm.compress_warmup_steps"},
			"int8": {"comm.compress_warmup_steps", "comm.compress_block", "comm.compress_error_feedback"}}},
		{r.Schedule.Kind, "schedule.kind", map[string][]string{
			"linear": {"schedule.min_lr_ratio"}, "cosine": {"schedule.min_lr_ratio"}, "wsd": {"schedule.min_lr_ratio", "schedule.decay_fraction"},
			"step":    {"schedule.milestones_steps", "schedule.milestones_epochs", "schedule.gamma"},
			"plateau": {"schedule.min_lr_ratio", "schedule.gamma", "schedule.plateau_patience"},
		}},
		{r.Data.Augment, "data.augment", map[string][]string{
			"random_resized_crop": {"data.flip_probability", "data.crop_area", "data.crop_ratio"}, "pad_crop": {"data.flip_probability", "data.pad_pixels"},
		}},
		{fmt.Sprint(r.Optim.EMADecay > 0), "optim.ema_decay > 0", map[string][]string{"true": {"optim.ema_warmup"}}},
		{fmt.Sprint(r.Eval.Patience > 0 || r.Checkpoint.KeepBest || r.Schedule.Kind == "plateau"),
			"eval.patience, checkpoint.keep_best or schedule.kind = \"plateau\"",
			map[string][]string{"true": {"eval.monitor", "eval.monitor_mode", "eval.min_delta"}}},
		{r.Data.Policy, "data.policy", map[string][]string{"randaugment": randAugmentKeys}},
		{fmt.Sprint(r.Data.EraseProb > 0), "data.erasing_probability above 0", map[string][]string{"true": {"data.erasing_fill", "data.erasing_area"}}},
		{fmt.Sprint(r.Data.mixes()), "data.mixup or data.cutmix above 0", map[string][]string{"true": {"data.mix_probability"}}},
		{fmt.Sprint(r.Data.Mixup > 0 && r.Data.Cutmix > 0), "data.mixup and data.cutmix above 0", map[string][]string{"true": {"data.cutmix_share"}}},
		{r.Data.BadFiles, "data.bad_files", map[string][]string{"skip": {"data.bad_file_limit"}}},
		{r.Data.Kind, "data.kind", map[string][]string{
			"synthetic":   {"data.synthetic_samples", "data.synthetic_eval_samples", "text.sequence"},
			"imagefolder": append(slices.Clone(encodedKeys), pixelKeys...),
			"csv":         append(append([]string{"data.path_column", "data.label_column", "data.split_column", "data.eval_fraction"}, encodedKeys...), pixelKeys...),
			"webdataset":  append(append([]string{"data.label_column"}, encodedKeys...), pixelKeys...),
			"idx":         append([]string{"data.root", "data.train_split", "data.eval_split", "data.eval_resize_pixels", "data.balanced"}, pixelKeys...),
			"text":        append([]string{"data.root", "data.train_split", "data.eval_split"}, keysOf("text")...),
			"tokens":      {"data.root", "data.train_split", "data.eval_split", "text.tokenizer", "text.sequence", "text.documents_apart"},
			"packed":      append([]string{"data.root", "data.train_split", "data.eval_split", "data.eval_resize_pixels", "data.packed_size"}, pixelKeys...),
		}},
		{fmt.Sprint(r.Eval.Enabled), "eval.enabled", map[string][]string{"true": {"eval.every_epochs", "eval.every_steps", "eval.batch_per_rank", "eval.monitor",
			"eval.monitor_mode", "eval.min_delta"}}},
		{fmt.Sprint(r.Checkpoint.Enabled), "checkpoint.enabled", map[string][]string{
			"true": {"checkpoint.dir", "checkpoint.every_epochs", "checkpoint.every_steps", "checkpoint.keep_last"},
		}},
	} {
		if slices.Contains(u.uses[u.value], key) {
			continue
		}
		for _, keys := range u.uses {
			if slices.Contains(keys, key) && r.matters(key) {
				if u.value == "false" && strings.Contains(u.what, " ") { // a condition, not a key
					return "without " + u.what
				}
				return fmt.Sprintf("with %s = %s", u.what, quoteWord(u.value))
			}
		}
	}
	return ""
}

// Keys that some kinds of data share.
var (
	randAugmentKeys = []string{"data.randaugment_ops", "data.randaugment_magnitude", "data.randaugment_std", "data.randaugment_probability",
		"data.randaugment_space"}
	encodedKeys = []string{"data.root", "data.train_split", "data.eval_split", "data.decoder", "data.exif_orientation", "data.max_megapixels",
		"data.eval_resize_pixels", "data.balanced"}
	pixelKeys = append([]string{"data.policy", "data.color_jitter", "data.erasing_probability", "data.erasing_fill", "data.erasing_area"},
		randAugmentKeys...)
)

// mixes reports whether samples are mixed in pairs.
func (d *Data) mixes() bool { return d.Mixup > 0 || d.Cutmix > 0 }

// keysOf lists the keys of a section.
func keysOf(name string) (keys []string) {
	for _, s := range schema() {
		for _, f := range s.fields {
			if s.name == name {
				keys = append(keys, f.key())
			}
		}
	}
	return keys
}

// matters reports whether a key's value differs from the one it would have if it had not been set; a resolved recipe sets every key.
func (r *Recipe) matters(key string) bool {
	without := r.clone()
	delete(without.origin.at, key)
	f := byKey()[key]
	f.in(without).Set(f.in(Default()))
	without.resolve()
	return !reflect.DeepEqual(f.in(r).Interface(), f.in(without).Interface())
}

func quoteWord(s string) string {
	if _, err := strconv.ParseFloat(s, 64); err == nil || s == "true" || s == "false" {
		return s
	}
	return fmt.Sprintf("%q", s)
}
