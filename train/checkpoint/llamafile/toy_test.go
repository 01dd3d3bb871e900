package llamafile

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gotrain/gotrain/graph/models/llama"
	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
)

const stories = "../../../recipes/data/stories260k"

// toys are small models of every kind: many or grouped heads, tied or not, odd sizes.
var toys = map[string]llama.Config{
	"mha": {Dim: 24, Hidden: 20, Layers: 2, Heads: 3, KVHeads: 3, Vocab: 11, Context: 16, Theta: 1e4, NormEps: 1e-5, BOS: 1, EOS: 2},
	"gqa": {Dim: 32, Hidden: 36, Layers: 3, Heads: 8, KVHeads: 2, Vocab: 13, Context: 20, Theta: 1e4, NormEps: 1e-5, Tied: true, BOS: 1, EOS: 2},
	"mqa": {Dim: 16, Hidden: 50, Layers: 1, Heads: 4, KVHeads: 1, Vocab: 7, Context: 9, Theta: 1e4, NormEps: 1e-5, BOS: 1, EOS: 2},
	"third": {
		Dim:     32,
		Hidden:  64,
		Layers:  2,
		Heads:   4,
		KVHeads: 2,
		Vocab:   300,
		Context: 1 << 17,
		Theta:   5e5,
		NormEps: 1e-5,
		BOS:     128000,
		EOS:     128001,
		Scaling: llama.Scaling{Factor: 32, LowFreq: 1, HighFreq: 4, Original: 8192},
	},
}

// toy is a Model in memory, with random weights.
func toy(c llama.Config, seed uint64) *model {
	r := rand.New(rand.NewPCG(seed, 1))
	m := &model{cfg: c, format: "toy", names: Names(c), tensors: map[string]tensor{}}
	for _, p := range params(c) {
		var raw []byte
		for range count(p.shape) {
			v := float32(r.NormFloat64()) * 0.4
			if len(p.shape) == 1 {
				v++
			}
			raw, _ = safetensors.AppendFloat32s(raw, []float32{v}, safetensors.F32)
		}
		m.tensors[p.name] = tensor{shape: p.shape, dtype: safetensors.F32, raw: raw}
	}
	return m
}

// export writes a model to a new folder and opens what was written.
func reopen(t testing.TB, m Model, format string, opts Options) Model {
	t.Helper()
	dest := filepath.Join(t.TempDir(), "out")
	_, err := Export(t.Context(), m, format, dest, opts)
	must(t, err)
	n, err := Open(dest)
	must(t, err)
	t.Cleanup(func() { n.Close() })
	return n
}

// same checks that two models are bit-equal, including the configuration.
func same(t testing.TB, what string, a, b Model) {
	t.Helper()
	if a.Config() != b.Config() {
		t.Errorf("%s: configuration %+v, want %+v", what, b.Config(), a.Config())
	}
	if !slices.Equal(a.Names(), b.Names()) {
		t.Fatalf("%s: names %q, want %q", what, b.Names(), a.Names())
	}
	for _, name := range a.Names() {
		if !slices.Equal(read(t, a, name), read(t, b, name)) {
			t.Errorf("%s: %s differs", what, name)
		}
	}
}

// bin1 is version 1 of llama2.c's file, written naively from canonical weights: whole tensors, one after the other.
func bin1(t testing.TB, m Model) []byte {
	c := m.Config()
	le := binary.LittleEndian
	raw := le.AppendUint32(le.AppendUint32(nil, 0x616b3432), 1)
	for _, v := range []int{c.Dim, c.Hidden, c.Layers, c.Heads, c.KVHeads, c.Vocab, c.Context} {
		raw = le.AppendUint32(raw, uint32(v))
	}
	tied := byte(0)
	if c.Tied {
		tied = 1
	}
	raw = append(raw, tied)
	raw = append(raw, make([]byte, 256-len(raw))...)
	put := func(name string) {
		x := read(t, m, name)
		if h := map[string]int{"self_attn.q_proj.weight": c.Heads, "self_attn.k_proj.weight": c.KVHeads}[trimLayer(name)]; h > 0 {
			y := make([]float32, len(x))
			must(t, Unpermute(y, x, h, c.Head()))
			x = y
		}
		raw, _ = safetensors.AppendFloat32s(raw, x, safetensors.F32)
	}
	each := func(part string) {
		for l := range c.Layers {
			put("model.layers." + string(rune('0'+l)) + "." + part)
		}
	}
	each("input_layernorm.weight")
	each("post_attention_layernorm.weight")
	put("model.norm.weight")
	put(embedName)
	for _, part := range []string{"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
		"mlp.gate_proj", "mlp.down_proj",
		"mlp.up_proj"} {
		each(part + ".weight")
	}
	if !c.Tied {
		put(headName)
	}
	return raw
}

func trimLayer(name string) string {
	if len(name) > 15 && name[:13] == "model.layers." {
		return name[15:]
	}
	return name
}

func writeFile(t testing.TB, path string, raw []byte) string {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o777))
	must(t, os.WriteFile(path, raw, 0o644))
	return path
}

func open(t testing.TB, path string) Model {
	t.Helper()
	m, err := Open(path)
	must(t, err)
	t.Cleanup(func() { m.Close() })
	return m
}
