package train

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/graph"
)

// Layers are numbered as in timm.
func TestLayersEqualTimm(t *testing.T) {
	raw, err := os.ReadFile("testdata/layers.json")
	if err != nil {
		t.Fatal(err)
	}
	var file map[string]json.RawMessage
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	for _, model := range []string{"resnet18", "resnet50", "deit_tiny_patch16_224"} {
		var params [][2]any
		if err := json.Unmarshal(file[model], &params); err != nil || len(params) < 60 {
			t.Fatalf("%s: %d parameters: %v", model, len(params), err)
		}
		var names []string
		for _, p := range params {
			names = append(names, p[0].(string))
		}
		of := layersOf(names)
		for _, p := range params {
			if of[p[0].(string)] != int(p[1].(float64)) {
				t.Errorf("%s: %s is layer %d, want %v", model, p[0], of[p[0].(string)], p[1])
			}
		}
	}
	of := layersOf([]string{"embed.weight", "layers.0.w", "layers.1.w", "layers.10.w", "model.norm.weight", "output.weight"})
	if of["embed.weight"] != 4 || of["layers.0.w"] != 3 || of["layers.10.w"] != 1 || of["model.norm.weight"] != 0 {
		t.Errorf("a Llama: %v", of)
	}
	if of := layersOf([]string{"fc1.weight", "fc2.weight"}); of["fc1.weight"] != of["fc2.weight"] {
		t.Errorf("no numbers: %v", of)
	}
}

// layered is three layers with a number, a stem and a head.
func layered(b *graph.Builder, in Inputs) Outputs {
	x := b.Flatten(in["image"])
	for _, name := range []string{"stem", "blocks.0.fc", "blocks.1.fc"} {
		n := 8
		if name == "stem" {
			n = x.Shape()[1]
		}
		x = b.Relu(b.Linear(x, b.Param(name+".weight", []int{8, n}, graph.KaimingNormal(graph.FanOut)), b.Param(name+".bias", []int{8}, graph.Zeros())))
	}
	loss, n := b.CrossEntropy(b.Linear(x, b.Param("head.weight", []int{4, 8}, graph.KaimingNormal(graph.FanOut)), nil), in["label"])
	return Outputs{Loss: loss, Count: n}
}

// A step of plain SGD moves each layer by its factor, on any number of ranks, besides the factors of groups.
func TestLayerDecay(t *testing.T) {
	moved := func(ranks int, opts ...Option) map[string]float64 {
		t.Helper()
		out := map[string]float64{}
		var before, after map[string][]float32
		for steps, to := range map[int]*map[string][]float32{1: &after} {
			dir := t.TempDir()
			runRanks(t, ranks, func(int) []Option {
				return append(small(t, dir, steps), append(opts, WithModel(layered), WithCheckpoints(dir, 0), WithClipNorm(0), func(c *Config) {
					c.Optim.Momentum, c.Eval, c.OnStep = 0, nil, nil
					c.Optim.Groups[0].WeightDecay = 0
				})...)
			})
			*to = tensorsOf(t, dir, stepName(steps), "model.safetensors")
		}
		dir := t.TempDir() // a rate that is as good as none shows where the weights began
		runRanks(t, ranks, func(int) []Option {
			return append(small(t, dir, 1), WithModel(layered), WithCheckpoints(dir, 0), WithLR(1e-30), func(c *Config) { c.Eval = nil })
		})
		before = tensorsOf(t, dir, stepName(1), "model.safetensors")
		for name, v := range after {
			for i, x := range v {
				out[name] += math.Abs(float64(x - before[name][i]))
			}
		}
		return out
	}
	head := ParamGroup{Name: "head", Match: under("head."), LRFactor: 3}
	for _, ranks := range []int{1, 2} {
		plain := moved(ranks)
		got := moved(ranks, func(c *Config) { c.LayerDecay = 0.5 }, WithGroups(head))
		for name, want := range map[string]float64{"stem.weight": 1.0 / 8, "blocks.0.fc.weight": 1.0 / 4, "blocks.0.fc.bias": 1.0 / 4, "blocks.1.fc.weight": 0.5,
			"head.weight": 3} {
			if r := got[name] / plain[name]; math.Abs(r-want) > 1e-3*want {
				t.Errorf("%d ranks: %s moved by %g of what it moves without decay, want %g", ranks, name, r, want)
			}
		}
	}
}

func TestLayerDecayFaults(t *testing.T) {
	_, err := New(append(small(t, "", 3), func(c *Config) { c.LayerDecay = 1.5 })...)
	if err == nil || !strings.Contains(err.Error(), "layer-wise decay") {
		t.Error(err)
	}
}
