package recipes

import (
	"fmt"
	"strings"
)

// aliases maps names used by other systems to our keys.
var aliases = map[string]string{
	"batch_size": "train.batch_per_rank", "micro_batch": "train.batch_per_rank", "global_batch": "train.batch_per_rank",
	"gradient_accumulation": "train.accumulate_steps", "gradient_accumulation_steps": "train.accumulate_steps", "accumulation": "train.accumulate_steps",
	"learning_rate": "optim.lr", "base_lr": "optim.lr", "wd": "optim.weight_decay", "optimizer": "optim.name",
	"world_size": "train.ranks", "num_gpus": "train.ranks", "nproc_per_node": "train.ranks", "precision": "train.dtype", "amp": "train.dtype",
	"gradient_checkpointing": "train.recompute", "activation_checkpointing": "train.recompute", "memory_limit": "train.memory_limit_mb", "seq_len": "text.sequence",
	"sequence_length": "text.sequence", "block_size": "text.sequence",
	"max_seq_len": "llama.context", "hidden_size": "llama.dim", "intermediate_size": "llama.hidden", "num_hidden_layers": "llama.layers",
	"num_attention_heads": "llama.heads",
	"num_key_value_heads": "llama.kv_heads", "vocab_size": "llama.vocab", "max_position_embeddings": "llama.context", "rms_norm_eps": "llama.norm_eps",
	"n_layers": "llama.layers", "n_heads": "llama.heads",
	"max_grad_norm": "train.clip_norm", "grad_clip": "train.clip_norm", "gradient_clipping": "train.clip_norm",
	"num_workers": "data.workers_per_rank", "dataset": "data.kind", "num_classes": "model.classes", "pretrained": "model.init_from",
	"max_steps": "run.steps", "num_epochs": "run.epochs", "output": "run.output_dir", "save_every": "checkpoint.every_steps", "resume_from": "checkpoint.resume",
	"hccl_topology": "comm.topology", "hccl_grad_compress": "comm.compress", "hccl_timeout": "train.collective_timeout_seconds", "backend": "comm.transport", "grad_compress": "comm.compress", "compression": "comm.compress", "gradient_compression": "comm.compress",
	"nproc": "train.ranks", "npu_count": "train.ranks", "network_interface": "comm.interface", "bucket_cap_mb": "train.bucket_mb",
	"layer_decay": "optim.layer_decay", "layer_wise_decay": "optim.layer_decay", "ema": "optim.ema_decay", "model_ema": "optim.ema_decay", "model_ema_decay": "optim.ema_decay", "early_stopping": "eval.patience", "early_stopping_patience": "eval.patience", "save_best": "checkpoint.keep_best",
	"best_metric": "eval.monitor", "metric_for_best_model": "eval.monitor", "load_best_model": "checkpoint.keep_best", "frozen": "model.freeze",
	"param_groups": "optim.group", "groups": "optim.group",
	"scheduler": "schedule.kind", "lr_scheduler": "schedule.kind", "warmup": "schedule.warmup_epochs", "log_interval": "log.every_steps",
}

// sectionAliases does the same for sections.
var sectionAliases = map[string]string{
	"optimizer": "optim", "lr_schedule": "schedule", "scheduler": "schedule", "dataset": "data", "training": "train", "trainer": "train",
	"logging": "log", "checkpoints": "checkpoint", "ckpt": "checkpoint", "validation": "eval", "network": "model",
	"communication": "comm", "distributed": "comm", "ddp": "comm", "hccl": "comm",
}

// unknownSection explains what to do about a top-level name that is not a section.
func unknownSection(name string, value any) Problem {
	p := Problem{Key: name, Msg: "unknown section"}
	if w, ok := launcherWord(name); ok {
		w.Key = name
		return w
	}
	if _, isTable := value.(map[string]any); value != nil && !isTable {
		// A key without its section.
		var homes []string
		for _, s := range schema() {
			if byKey()[s.name+"."+name] != nil {
				homes = append(homes, "["+s.name+"]")
				p.meant = s.name + "." + name
			}
		}
		if len(homes) > 0 {
			p.Msg, p.Hint = "unknown key at the top level", "it belongs in "+strings.Join(homes, " or ")
			return p
		}
		if k := aliases[name]; k != "" {
			p.Msg, p.Hint, p.meant = "unknown key at the top level", "did you mean "+k+"?", k
			return p
		}
	}
	var names []string
	for _, s := range schema() {
		names = append(names, s.name)
	}
	s := sectionAliases[name]
	if s == "" {
		s = nearest(name, names)
	}
	if s != "" {
		p.Hint = fmt.Sprintf("did you mean [%s]?", s)
	} else {
		p.Hint = "sections are " + strings.Join(names, ", ")
	}
	return p
}

// unknownKey guesses what was meant by a key that the section does not have: the nearest key of this section, a key of another section with the
// same name, the name that another system uses, or the nearest key elsewhere.
func unknownKey(name, key string) Problem {
	p := Problem{Key: name + "." + key, Msg: "unknown key"}
	if w, ok := launcherWord(key); ok {
		w.Key = p.Key
		return w
	}
	var here []string
	for _, f := range sectionOf(name).fields {
		here = append(here, f.name)
	}
	if s := nearest(key, here); s != "" {
		p.meant, p.Hint = name+"."+s, fmt.Sprintf("did you mean %q?", s)
		return p
	}
	best, at := aliases[key], 1<<30
	for _, s := range schema() {
		for _, f := range s.fields {
			if f.name == key {
				best, at = f.key(), 0
			} else if d := distance(key, f.name); best == "" && d < at && close(d, key) {
				best, at = f.key(), d
			}
		}
	}
	if best != "" {
		p.meant, p.Hint = best, fmt.Sprintf("did you mean %s?", best)
	} else {
		p.Hint = "keys of [" + name + "]: " + strings.Join(here, ", ")
	}
	return p
}

// nearest is the candidate most likely meant by s, or "".
func nearest(s string, candidates []string) string {
	best, at := "", 1<<30
	for _, c := range candidates {
		d := distance(s, c)
		// A partial name is a common mistake: "clip" for "clip_norm", "batch_size" for "batch_per_rank".
		if d > 2 && len(s) >= 3 && (strings.HasPrefix(c, s+"_") || strings.HasSuffix(c, "_"+s)) {
			d = 2
		}
		if d < at && (close(d, s) || d == 2 && len(s) >= 3) {
			best, at = c, d
		}
	}
	if best == "" {
		if head, _, ok := strings.Cut(s, "_"); ok && len(head) >= 3 {
			for _, c := range candidates {
				if strings.HasPrefix(c, head+"_") {
					return c
				}
			}
		}
	}
	return best
}

// close reports whether a distance is small enough for a name of this length.
func close(d int, s string) bool { return d <= max(1, len(s)/3) }

// distance is the number of insertions, deletions, substitutions and transpositions of neighbours (Damerau 1964, optimal string alignment).
func distance(a, b string) int {
	prev2, prev := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], prev2[j-2]+1)
			}
		}
		prev2, prev = prev, row
	}
	return prev[len(b)]
}
