package train

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/optim"
)

// productsIn runs ranks in bf16 on devices of these names and returns the products of each.
func productsIn(t *testing.T, devices []string, more ...Option) (got []npu.Products, err error) {
	t.Helper()
	got = make([]npu.Products, len(devices))
	_, errs := together(t, len(devices), func(r int) []Option {
		return append([]Option{WithModel(bnNet), WithData(images(t, 50), 6), WithSteps(4), WithLR(0.01), WithDevice("multiplier-"+devices[r], 1),
			WithOptimizer(optim.Default(optim.SGD, 0)), func(c *Config) { c.Compute = npu.BF16 }}, more...)
	}, func(tr *Trainer, r, _ int) { got[r], _ = tr.dev.(npu.Multiplier).Products() })
	return got, errors.Join(errs...)
}

// All ranks compute as rank 0 finds faster, except those of which the device has no choice; in float32 nothing is agreed.
func TestRankZeroDecidesTheProducts(t *testing.T) {
	for _, c := range []struct {
		devices []string
		want    []npu.Products
	}{
		{[]string{"f32", "native"}, []npu.Products{"f32", "f32"}},
		{[]string{"native", "f32"}, []npu.Products{"native", "native"}},
		{[]string{"f32", ""}, []npu.Products{"f32", ""}},
		{[]string{"", "native"}, []npu.Products{"", "native"}},
	} {
		got, err := productsIn(t, c.devices)
		if err != nil || got[0] != c.want[0] || got[1] != c.want[1] {
			t.Errorf("%v: %v, %v", c.devices, got, err)
		}
	}
	got, err := productsIn(t, []string{"f32", "native"}, func(c *Config) { c.Compute = npu.F32 })
	if err != nil || got[0] != "f32" || got[1] != "native" {
		t.Errorf("in f32: %v, %v", got, err)
	}
}

// A run that is resumed computes as before, also on a processor that prefers the other way; a checkpoint of an earlier version was native. An option decides.
func TestProductsAreKept(t *testing.T) {
	dir := t.TempDir()
	run := func(device string, steps int, more ...Option) npu.Products {
		t.Helper()
		got, err := productsIn(t, []string{device}, append([]Option{WithSteps(steps), WithCheckpoints(dir, 2), func(c *Config) { c.Resume = true }}, more...)...)
		if err != nil {
			t.Fatal(err)
		}
		return got[0]
	}
	if got := run("f32", 2); got != npu.WideProducts {
		t.Errorf("at first: %s", got)
	}
	if got := run("native", 4); got != npu.WideProducts {
		t.Errorf("resumed: %s", got)
	}
	option := func(c *Config) { c.Options = map[string]string{"bf16": "native"} }
	if got := run("f32", 6, option); got != npu.NativeProducts {
		t.Errorf("with the option: %s", got)
	}
	if got := run("f32", 8); got != npu.NativeProducts {
		t.Errorf("resumed after it: %s", got)
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*", "state.json"))
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	for _, path := range paths { // as an earlier version wrote them
		text, err := os.ReadFile(path)
		var st map[string]any
		if err = errors.Join(err, json.Unmarshal(text, &st)); err != nil {
			t.Fatal(err)
		}
		if k, _ := st["kernels"].(map[string]any); k["products"] != "native" && k["products"] != "f32" {
			t.Errorf("%s has kernels %v", path, k)
		}
	}
	if p := formerProducts(nil); p != npu.NativeProducts {
		t.Errorf("without a choice: %s", p)
	}
}
