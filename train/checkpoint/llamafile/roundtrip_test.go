package llamafile

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/graph/models/llama"
	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
)

// Every format to every format, bit for bit.
func TestRoundTrips(t *testing.T) {
	for name, c := range toys {
		m := toy(c, 7)
		for _, first := range Formats() {
			if first == Llama2C && speaksBin(c) != nil {
				continue
			}
			a := reopen(t, m, first, Options{})
			same(t, name+" "+first, m, a)
			for _, second := range Formats() {
				if second == Llama2C && speaksBin(c) != nil {
					continue
				}
				same(t, name+" "+first+" "+second, m, reopen(t, a, second, Options{Shard: 3000}))
			}
		}
		if speaksBin(c) == nil {
			same(t, name+" v1", m, open(t, writeFile(t, filepath.Join(t.TempDir(), "m.bin"), bin1(t, m))))
		}
	}
}

// A head wider than dim/heads, which config.json allows.
func TestHeadDim(t *testing.T) {
	c := toys["gqa"]
	c.HeadDim = 6
	m := toy(c, 1)
	same(t, "hf", m, reopen(t, m, HF, Options{}))
	for _, format := range []string{Meta, Llama2C} {
		if _, err := Export(t.Context(), m, format, filepath.Join(t.TempDir(), "x"), Options{}); err == nil ||
			!strings.Contains(err.Error(), "8 heads of") {
			t.Errorf("%s: %v", format, err)
		}
	}
}

// ReadRows returns part of what Read does, also from files with permuted rows.
func TestReadRows(t *testing.T) {
	m := reopen(t, toy(toys["gqa"], 2), Meta, Options{})
	const name = "model.layers.1.self_attn.q_proj.weight"
	all := read(t, m, name)
	part := make([]float32, 3*32)
	for first := 0; first+3 <= 32; first++ {
		must(t, m.ReadRows(name, first, part))
		for i, v := range part {
			if v != all[first*32+i] {
				t.Fatalf("rows from %d on differ", first)
			}
		}
	}
	for what, err := range map[string]error{"beyond": m.ReadRows(name, 30, part), "before": m.ReadRows(name, -1, part),
		"half a row": m.ReadRows(name, 0,
			part[:33]),
		"no such": m.Read("x", part), "size": m.Read(name, part)} {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	must(t, m.Close())
	must(t, m.Close())
	if err := m.Read(name, all); err == nil {
		t.Error("a closed model is read")
	}
}

func TestExportRefuses(t *testing.T) {
	m := toy(toys["mha"], 1)
	third := toy(toys["third"], 1)
	dir := t.TempDir()
	home := filepath.Join(dir, "home")
	writeFile(t, filepath.Join(home, "letters.txt"), []byte("dear"))
	file := writeFile(t, filepath.Join(dir, "file.bin"), []byte("old"))
	big := toy(toys["mha"], 1)
	big.tensors["model.norm.weight"].raw[3] = 0x7e // about 1e38
	for want, try := range map[string]struct {
		m      Model
		format string
		dest   string
		o      Options
	}{
		"it already exists\nhint: choose another path, or use --force": {m, Llama2C, file, Options{}},
		"letters.txt, which no export writes":                          {m, HF, home, Options{Force: true}},
		"is not an export":                                             {m, HF, file, Options{Force: true}},
		`unknown format "gguf"`:                                        {m, "gguf", dir + "/a", Options{}},
		"llama2.c stores F32, not BF16":                                {m, Llama2C, dir + "/a", Options{DType: safetensors.BF16}},
		"weights cannot be stored as I8":                               {m, HF, dir + "/a", Options{DType: safetensors.I8}},
		"always rotates with theta 10000":                              {third, Llama2C, dir + "/a", Options{}},
		"context of 99 exceeds":                                        {m, HF, dir + "/a", Options{Context: 99}},
		"no such file":                                                 {m, HF, dir + "/a", Options{Files: []string{dir + "/none"}}},
		"contains no tokenizer":                                        {m, HF, dir + "/a", Options{Files: []string{home}}},
		"cannot include a tokenizer":                                   {m, Llama2C, dir + "/a.bin", Options{Files: []string{file}}},
		"two files are called config.json":                             {m, HF, dir + "/a", Options{Files: []string{writeFile(t, dir+"/c/config.json", nil)}}},
		"e+38 is too large for F16":                                    {big, HF, dir + "/a", Options{DType: safetensors.F16}},
	} {
		if _, err := Export(t.Context(), try.m, try.format, try.dest, try.o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Export(ctx, m, HF, dir+"/a", Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	left, _ := os.ReadDir(dir)
	if len(left) != 3 { // c, file.bin, home
		t.Errorf("something was left behind: %v", left)
	}
}

// With force, an export replaces an earlier export, and may read from it.
func TestExportForce(t *testing.T) {
	dest := filepath.Join(t.TempDir(), "out")
	m := toy(toys["mha"], 1)
	tok := writeFile(t, filepath.Join(t.TempDir(), "tokenizer.json"), []byte("{}"))
	_, err := Export(t.Context(), m, HF, dest, Options{Files: []string{filepath.Dir(tok)}})
	must(t, err)
	a := open(t, dest)
	seen := int64(0)
	r, err := Export(t.Context(), a, Meta, dest, Options{Force: true, Context: 8, Progress: func(done, total int64) {
		if done <= seen || done > total || total != 4*m.cfg.Params() {
			t.Errorf("progress %d of %d after %d", done, total, seen)
		}
		seen = done
	}})
	must(t, err)
	if seen != 4*m.cfg.Params() || r.Tensors != 21 || r.Params != m.cfg.Params() || strings.Join(r.Files, " ") != "model.safetensors params.json" ||
		len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "shortened from 16 to 8") {
		t.Errorf("report %+v, progress %d", r, seen)
	}
	if b := open(t, dest); b.Format() != "meta" || b.Config().Context != 8 {
		t.Errorf("%s %+v", b.Format(), b.Config())
	}
	if left, _ := os.ReadDir(filepath.Dir(dest)); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
	bin := filepath.Join(t.TempDir(), "m.bin")
	for range 2 {
		_, err = Export(t.Context(), m, Llama2C, bin, Options{Force: true})
		must(t, err)
	}
}

func TestShards(t *testing.T) {
	dest := filepath.Join(t.TempDir(), "out")
	m := toy(toys["mha"], 1)
	r, err := Export(t.Context(), m, HF, dest, Options{Shard: 4000, DType: safetensors.BF16})
	must(t, err)
	var index struct {
		Metadata struct {
			Total int64 `json:"total_size"`
		} `json:"metadata"`
		Map map[string]string `json:"weight_map"`
	}
	raw, err := os.ReadFile(filepath.Join(dest, safetensors.IndexName))
	must(t, err)
	must(t, json.Unmarshal(raw, &index))
	if len(index.Map) != 21 || index.Metadata.Total != 2*m.cfg.Params() || len(r.Files) < 5 || index.Map[headName] != r.Files[len(r.Files)-4] {
		t.Errorf("index %+v, files %q", index, r.Files)
	}
	for _, f := range r.Files {
		if st, err := os.Stat(filepath.Join(dest, f)); err != nil || st.Size() > 4000+3000 {
			t.Errorf("%s: %v", f, err)
		}
	}
	if m := open(t, dest); m.DType(embedName) != safetensors.BF16 || m.Format() != "hf" {
		t.Errorf("%s %s", m.Format(), m.DType(embedName))
	}
}

// A gotrain checkpoint: canonical names in model.safetensors, a manifest, and optionally config.json.
func TestCheckpointFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "step-1")
	m := toy(toys["gqa"], 5)
	_, err := Export(t.Context(), m, HF, dir, Options{})
	must(t, err)
	must(t, os.Remove(filepath.Join(dir, ConfigFile)))
	writeFile(t, filepath.Join(dir, manifestFile), []byte("{}"))
	if _, err := Open(dir); !errors.Is(err, ErrNoConfig) {
		t.Errorf("without a configuration: %v", err)
	}
	given, err := OpenWith(dir, &m.cfg)
	must(t, err)
	defer given.Close()
	same(t, "given", m, given)

	c, err := ConfigFromFile(dir, llama.Config{Heads: 8, Theta: 1e4, NormEps: 1e-5, Context: 20, BOS: 1, EOS: 2})
	must(t, err)
	if c != m.cfg {
		t.Errorf("from shapes: %+v, want %+v", c, m.cfg)
	}
	if c, err = ConfigFromFile(dir, llama.Config{HeadDim: 4, Theta: 1e4, NormEps: 1e-5, Context: 20, BOS: 1, EOS: 2}); err != nil || c != m.cfg {
		t.Errorf("from shapes and the width of a head: %+v, %v", c, err)
	}
	_, err = ConfigFromFile(dir, llama.Config{})
	for _, want := range []string{"heads", "theta", "norm_eps", "context"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %s", err, want)
		}
	}
	if _, err = ConfigFromFile(dir, llama.Config{Heads: 8, Theta: 1e4, NormEps: 1e-5, Context: 20, KVHeads: 8}); err == nil ||
		!strings.Contains(err.Error(), "kv_heads is given as 8, but the shapes give 2") {
		t.Errorf("%v", err)
	}
	must(t, WriteConfig(dir, c, safetensors.F32))
	n := open(t, dir)
	if _, err := OpenWith(dir, &llama.Config{Dim: 5}); err == nil || !strings.Contains(err.Error(), "but the given configuration is") {
		t.Errorf("a configuration that disagrees: %v", err)
	}
	if n.Format() != "gotrain" {
		t.Errorf("format %s", n.Format())
	}
	same(t, "written", m, n)
}
