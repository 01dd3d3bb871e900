package assemble

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/graph/models/vit"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
)

// A vision transformer starts from a checkpoint of pictures of another size with other classes: positions are resized, the classifier starts anew, and
// everything else is taken as it is.
func TestVisionTransformerStartsFromOthers(t *testing.T) {
	run := func(dir string, set ...string) *safetensors.Set {
		r, err := recipes.Open("vit-tiny", append([]string{"run.output_dir=" + dir, "run.epochs=0", "run.steps=1", "checkpoint.every_epochs=0", "eval.every_epochs=0",
			"eval.enabled=false", "train.ranks=1", "train.batch_per_rank=2", "train.device=ref", "optim.lr=1e-12", "data.kind=synthetic", "data.augment=none",
			"data.root=", "data.channels=1", "vit.depth=1", "model.drop_path=0.1"}, set...)...)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Config(t.Context(), r, rank(1))
		if err != nil {
			t.Fatal(err)
		}
		tr, err := train.New(train.WithConfig(c))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tr.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(dir, "checkpoints", "step-*", "model.safetensors"))
		if err != nil || len(files) != 1 {
			t.Fatal(files, err)
		}
		f, err := safetensors.OpenSet(files[0])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	first, second := t.TempDir(), t.TempDir()
	from := run(first, "data.image_size=12", "model.classes=7")
	to := run(second, "data.image_size=20", "model.classes=3", "model.init_from="+first, "model.init_partial=true", "run.seed=99")
	for _, name := range to.Names() {
		if strings.HasPrefix(name, "head.") {
			continue
		}
		got, err := to.Float32s(name)
		want, failed := from.Float32s(name)
		if err != nil || failed != nil {
			t.Fatal(err, failed)
		}
		if name == "pos_embed" {
			want = vit.Adapt(name, npu.Shape{1, 10, 64}, npu.Shape{1, 26, 64})(want)
		}
		if len(got) != len(want) {
			t.Fatalf("%s: %d values, want %d", name, len(got), len(want))
		}
		for i := range want {
			if math.Abs(float64(got[i]-want[i])) > 1e-6 {
				t.Errorf("%s[%d] is %g, want %g", name, i, got[i], want[i])
				break
			}
		}
	}
}
