package llamafile

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
)

// folder writes a toy in Hugging Face's form, and lets change modify the tensors and the configuration.
func folder(t *testing.T, change func(tensors map[string][]int, config map[string]any)) string {
	t.Helper()
	m := toy(toys["gqa"], 1)
	shapes := map[string][]int{}
	for _, p := range params(m.cfg) {
		shapes[p.name] = p.shape
	}
	raw, err := EncodeConfig(m.cfg, safetensors.F32)
	must(t, err)
	var config map[string]any
	must(t, json.Unmarshal(raw, &config))
	change(shapes, config)
	raw, err = json.Marshal(config)
	must(t, err)
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, ConfigFile), raw)
	header, at := map[string]any{}, 0
	for name, s := range shapes {
		dtype, size := "F32", 4
		if strings.HasPrefix(name, "int.") {
			name, dtype = strings.TrimPrefix(name, "int."), "I32"
		}
		header[name] = map[string]any{"dtype": dtype, "shape": s, "data_offsets": []int{at, at + size*count(s)}}
		at += size * count(s)
	}
	raw, err = json.Marshal(header)
	must(t, err)
	file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(raw))), raw...)
	data := make([]byte, at)
	for i := range data {
		data[i] = byte(i / 1000)
	}
	writeFile(t, filepath.Join(dir, "model.safetensors"), append(file, data...))
	return dir
}

func TestTensorsThatDoNotFit(t *testing.T) {
	for want, change := range map[string]func(map[string][]int, map[string]any){
		"tensor model.norm.weight is missing": func(s map[string][]int, _ map[string]any) { delete(s, "model.norm.weight") },
		"tensor model.norm.weight has shape [33], but the configuration requires [32]": func(s map[string][]int,
			_ map[string]any) {
			s["model.norm.weight"] = []int{33}
		},
		"tensor model.layers.0.self_attn.q_proj.bias does not belong to this Llama": func(s map[string][]int,
			_ map[string]any) {
			s["model.layers.0.self_attn.q_proj.bias"] = []int{32}
		},
		"30 tensors are too few for 99 layers": func(s map[string][]int,
			c map[string]any) {
			s["a"] = []int{1}
			c["num_hidden_layers"] = 99
		},
		"model.layers.2.mlp.down":                   func(s map[string][]int, c map[string]any) { c["num_hidden_layers"] = 2 },
		"lm_head.weight is missing":                 func(s map[string][]int, c map[string]any) { c["tie_word_embeddings"] = false },
		"lm_head.weight differs from the embedding": func(s map[string][]int, _ map[string]any) { s[headName] = []int{13, 32} },
		"model.norm.weight is I32": func(s map[string][]int, _ map[string]any) {
			s["int.model.norm.weight"] = s["model.norm.weight"]
			delete(s, "model.norm.weight")
		},
		"and 26 more": func(s map[string][]int, c map[string]any) { c["hidden_size"] = 40 },
		"neither model.embed_tokens.weight nor tok_embed": func(s map[string][]int, _ map[string]any) { delete(s, embedName) },
		`config.json: model_type is "qwen2"`:              func(_ map[string][]int, c map[string]any) { c["model_type"] = "qwen2" },
	} {
		dir := folder(t, change)
		if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	ok := folder(t, func(s map[string][]int, _ map[string]any) {
		s["model.layers.0.self_attn.rotary_emb.inv_freq"] = []int{2}
	})
	open(t, ok)
}

func TestOpenNothing(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{
		filepath.Join(dir, "none"): "no such file",
		filepath.Dir(writeFile(t, filepath.Join(dir, "old", "pytorch_model-00001-of-00002.bin"), nil)): "it is a pickle",
		dir: "x.pth: it is a pickle",
		writeFile(t, filepath.Join(dir, "x.pth"), []byte("PK")):                                    "it is a pickle",
		writeFile(t, filepath.Join(dir, "x.bin"), []byte("PK")):                                    "2 bytes are less than a llama2.c header",
		writeFile(t, filepath.Join(dir, "x.txt"), []byte(strings.Repeat("once upon a time ", 20))): "read as a header of llama2.c",
		writeFile(t, filepath.Join(dir, "sub", "x.safetensors"), []byte("once upon a time")):       "safetensors",
	} {
		_, err := Open(path)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	if _, err := Open(filepath.Join(dir, "x.bin")); !errors.Is(err, ErrNotLlama) {
		t.Errorf("%v", err)
	}
}

// v0 is a toy in version 0.
func v0(t testing.TB, name string) []byte {
	dest := filepath.Join(t.TempDir(), "m.bin")
	_, err := Export(t.Context(), toy(toys[name], 1), Llama2C, dest, Options{})
	must(t, err)
	raw, err := os.ReadFile(dest)
	must(t, err)
	return raw
}

func TestHostileBins(t *testing.T) {
	old, v1 := v0(t, "gqa"), bin1(t, toy(toys["gqa"], 1))
	put := func(raw []byte, at int, v int32) []byte {
		out := append([]byte{}, raw...)
		binary.LittleEndian.PutUint32(out[at:], uint32(v))
		return out
	}
	for what, c := range map[string]struct {
		raw  []byte
		want string
	}{
		"cut":             {old[:len(old)-1], "truncated"},
		"cut v1":          {v1[:300], "truncated"},
		"half a header":   {v1[:100], "less than the header of 256"},
		"longer":          {append(append([]byte{}, old...), 0), "trailing data"},
		"version":         {put(v1, 4, 7), "version 7"},
		"negative":        {put(old, 0, -64), "dim is -64"},
		"layers":          {put(old, 8, math.MaxInt32), "but the limit is"},
		"vocabulary":      {put(old, 20, math.MinInt32), "but the limit is"},
		"zero":            {put(old, 12, 0), "heads is 0"},
		"overflow":        {put(put(put(old, 0, 1<<28), 4, 1<<28), 8, 1<<16), "not possible"},
		"heads":           {put(old, 16, 3), "8 heads do not divide among 3"},
		"shared flag":     {put(v1, 36, 5), "shared-classifier flag is 5"},
		"untied":          {put(old, 20, -13), "implies a file of"},
		"group of 0":      {put(put(v1, 4, 2), 37, 0), "groups of 0"},
		"v2 of no v2":     {put(put(v1, 4, 2), 37, 4), "implies a file of"},
		"negative group":  {put(put(v1, 4, 2), 37, -4), "groups of -4"},
		"gotrain's theta": {put(old, len(old)-8, 1), ""},
	} {
		_, err := fromBin(c.raw)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
	}
}

// bin2 quantises as version 2 of llama2.c's exporters do, with the scales behind each tensor or all at the end.
func bin2(t testing.TB, m *model, group int, apart bool) []byte {
	raw := append([]byte{}, bin1(t, m)[:256]...)
	binary.LittleEndian.PutUint32(raw[4:], 2)
	binary.LittleEndian.PutUint32(raw[37:], uint32(group))
	v1 := bin1(t, m)[256:]
	var last []byte
	for _, r := range runs(m.cfg, 1) {
		b := v1[:4*r.count]
		v1 = v1[4*r.count:]
		if strings.HasSuffix(r.name, "norm.weight") {
			raw = append(raw, b...)
			continue
		}
		x := make([]float32, r.count)
		must(t, safetensors.DecodeFloat32s(x, b, safetensors.F32))
		var scales []byte
		for g := 0; g < len(x); g += group {
			top := float32(0)
			for _, v := range x[g : g+group] {
				top = max(top, float32(math.Abs(float64(v))))
			}
			for _, v := range x[g : g+group] {
				raw = append(raw, byte(int8(math.RoundToEven(float64(v/(top/127))))))
			}
			scales = binary.LittleEndian.AppendUint32(scales, math.Float32bits(top/127))
		}
		if apart {
			last = append(last, scales...)
		} else {
			raw = append(raw, scales...)
		}
	}
	return append(raw, last...)
}

// Either placement of the scales is found, and every value is within half a step of its group.
func TestQuantised(t *testing.T) {
	for _, name := range []string{"mha", "gqa"} {
		m := toy(toys[name], 4)
		for _, apart := range []bool{false, true} {
			path := writeFile(t, filepath.Join(t.TempDir(), "q.bin"), bin2(t, m, 4, apart))
			q := open(t, path)
			if q.Config() != m.Config() || q.Format() != "llama2c v2" || q.DType(embedName) != safetensors.I8 {
				t.Fatalf("%s %+v", q.Format(), q.Config())
			}
			for _, p := range m.Names() {
				a, b := read(t, m, p), read(t, q, p)
				for i := range a {
					if d := math.Abs(float64(a[i] - b[i])); d > 2.0/254 { // the largest weight of a toy is below 2
						t.Fatalf("%s, apart %v: %s[%d] is %g, want %g", name, apart, p, i, b[i], a[i])
					}
				}
			}
			r, err := Export(t.Context(), q, HF, filepath.Join(t.TempDir(), "out"), Options{})
			if err != nil || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "quantised to int8") {
				t.Errorf("%+v, %v", r, err)
			}
		}
	}
}

// For any bytes, a file is rejected or every parameter can be read.
func FuzzBin(f *testing.F) {
	f.Add(v0(f, "mqa"))
	f.Add(bin1(f, toy(toys["mqa"], 1)))
	f.Add(bin2(f, toy(toys["mha"], 1), 4, true))
	f.Add(v0(f, "gqa")[:100])
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := fromBin(raw)
		if err != nil {
			return
		}
		n := 0
		for _, name := range m.Names() {
			n += len(read(t, m, name))
		}
		if int64(n) != m.cfg.Params() || n > len(raw) {
			t.Fatalf("%d values from %d bytes, %d parameters", n, len(raw), m.cfg.Params())
		}
	})
}
