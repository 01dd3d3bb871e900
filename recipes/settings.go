package recipes

import (
	"slices"
	"strings"
)

// freeKeys do not affect what is learned, only how and where it is computed. model.init_from is not one of them, although a resumed run no longer needs it.
var freeKeys = []string{
	"run.name",
	"run.output_dir",
	"model.init_help",
	"data.root",
	"data.shared",
	"data.workers_per_rank",
	"data.decoder",
	"data.max_megapixels",
	"train.ranks",
	"train.threads_per_rank",
	"train.pin_cpus",
	"train.grace_seconds",
	"train.device",
	"train.device_options",
	"comm.transport",
	"comm.topology",
	"comm.interface",
	"comm.port_range",
	"comm.streams",
	"comm.heartbeat_seconds",
	"comm.start_timeout_seconds",
	"train.bucket_mb",
	"train.conv_algorithm",
	"train.first_bucket_mb",
	"train.collective_timeout_seconds",
	"train.long_work_seconds",
	"train.state_check_every_steps",
	"train.recompute",
	"train.memory_limit_mb",
	"model.init_ignore",
	"model.init_partial",
	"text.tokenizer",
}

// dynamicKeys configure dynamic loss scaling.
var dynamicKeys = []string{
	"train.loss_scale_init", "train.loss_scale_growth_interval", "train.loss_scale_growth_factor", "train.loss_scale_backoff_factor", "train.loss_scale_min",
}

// scaled reports whether a key configures loss scaling, which only f16 uses. Checkpoints of other runs do not store such keys.
func scaled(key string) bool { return key == "train.loss_scale" || slices.Contains(dynamicKeys, key) }

// compressed reports whether a key has an effect only on gradients that travel compressed. Checkpoints of other runs do not store such keys.
func compressed(key string) bool { return strings.HasPrefix(key, "comm.compress") }

// laterKeys affect what is learned, but did not exist in older versions: a checkpoint stores them only where they differ from their default.
var laterKeys = []string{"model.freeze", "optim.group", "optim.ema_decay", "optim.ema_warmup", "optim.layer_decay", "schedule.plateau_patience",
	"model.loss", "model.bce_threshold", "model.bce_sum_classes", "model.class_weights", "model.class_weighting",
	"optim.trust_clip", "optim.always_adapt", "model.drop_path"}

// later reports whether a key is one of laterKeys or augmentKeys and has its default.
func (r *Recipe) later(f *field) bool {
	return (slices.Contains(laterKeys, f.key()) || slices.Contains(augmentKeys, f.key())) && literal(f.in(r)) == defaults()[f.key()]
}

// Settings returns the keys that determine what is learned, with their values. A checkpoint stores them so that a resumed run can report what has changed.
func (r *Recipe) Settings() map[string]string {
	out := map[string]string{}
	for _, s := range schema() {
		if s.name == "log" || s.name == "eval" || s.name == "checkpoint" || !r.writes(s) {
			continue
		}
		for _, f := range s.fields {
			key := f.key()
			idle := r.Train.DType != "f16" && scaled(key) || r.Comm.Compress == "none" && compressed(key) || r.later(f)
			if !slices.Contains(freeKeys, key) && !idle {
				out[key] = literal(f.in(r))
			}
		}
	}
	return out
}
