package llamafile

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/gotrain/gotrain/graph/models/llama"
	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
)

// reference is PyTorch's result in float64 for stories260k, stored as float32: 1e-5 for logits up to 20 is the rounding of storage.
func reference(t *testing.T) (ids []int, logits [][]float64) {
	f, err := safetensors.Open("testdata/reference.safetensors")
	must(t, err)
	defer f.Close()
	raw, err := f.Bytes("input_ids")
	must(t, err)
	for i := 0; i < len(raw); i += 4 {
		ids = append(ids, int(raw[i])|int(raw[i+1])<<8)
	}
	flat, err := f.Float32s("logits")
	must(t, err)
	for s := range ids {
		row := make([]float64, 512)
		for i := range row {
			row[i] = float64(flat[s*512+i])
		}
		logits = append(logits, row)
	}
	return ids, logits
}

const bound = 1e-5

// The real model, grouped heads, gives PyTorch's logits through every format.
func TestLogitsOfTheRealModel(t *testing.T) {
	ids, want := reference(t)
	hf := open(t, stories)
	if c, _ := llama.Named("stories260k"); hf.Config() != c {
		t.Errorf("configuration %+v, want %+v", hf.Config(), c)
	}
	v1 := open(t, writeFile(t, filepath.Join(t.TempDir(), "v1.bin"), bin1(t, hf)))
	for what, m := range map[string]Model{
		"hf": hf, "hf written": reopen(t, hf, HF, Options{}), "sharded": reopen(t, hf, HF, Options{Shard: 300_000}), "meta": reopen(t, hf, Meta, Options{}),
		"llama2c": reopen(t, hf, Llama2C, Options{}), "llama2c v1": v1,
	} {
		if got := worst(of(t, m).logits(ids), want); got > bound {
			t.Errorf("%s: logits differ by %g, more than %g", what, got, bound)
		}
		same(t, what, hf, m)
	}
	// The test must be able to fail: with the other pairing, and with half the heads permuted, the logits are far off.
	wrong := of(t, hf)
	wrong.interleaved = true
	if got := worst(wrong.logits(ids), want); got < 1 {
		t.Errorf("the wrong pairing differs by %g only: the test proves nothing", got)
	}
	for what, dt := range map[string]safetensors.DType{"bf16": safetensors.BF16, "f16": safetensors.F16} {
		limit := map[string]float64{"bf16": 0.5, "f16": 0.05}[what] // 2^-9 and 2^-12 of each weight, through 5 layers, on logits up to 20
		if got := worst(of(t, reopen(t, hf, HF, Options{DType: dt})).logits(ids), want); got > limit || got == 0 {
			t.Errorf("%s: logits differ by %g, limit %g", what, got, limit)
		}
	}
}

// The file written for llama2.c equals the author's byte for byte, except for the rotary tables, where libraries round differently.
func TestLlama2CIsThePublishedFile(t *testing.T) {
	dest := filepath.Join(t.TempDir(), "stories260K.bin")
	_, err := Export(t.Context(), open(t, stories), Llama2C, dest, Options{})
	must(t, err)
	raw, err := os.ReadFile(dest)
	must(t, err)
	tables := 4 * 512 * 8
	weights := raw[:len(raw)-tables]
	sum := sha256.Sum256(weights)
	const published = "340685034718160b936c5502a60a6da5c636afa1c53db33cefd0476ba3731205"
	if got := hex.EncodeToString(sum[:]); len(raw) != 1056540 || got != published {
		t.Errorf("%d bytes, sha256 %s without the tables, want 1056540 and %s", len(raw), got, published)
	}
}

// Toy weights, with many heads and grouped ones, give the same logits in Meta's order with neighbours rotated as in Hugging Face's with halves
// rotated: Meta's and llama2.c's files are read here without this package's permutation.
func TestLogitsOfBothPairings(t *testing.T) {
	ids := []int{1, 5, 0, 3, 6, 2, 4, 4, 1}
	for _, name := range []string{"mha", "gqa", "mqa"} {
		m := toy(toys[name], 3)
		want := of(t, m).logits(ids)
		dir := filepath.Join(t.TempDir(), "meta")
		_, err := Export(t.Context(), m, Meta, dir, Options{})
		must(t, err)
		f, err := safetensors.Open(filepath.Join(dir, "model.safetensors"))
		must(t, err)
		metaName := map[string]string{}
		for _, p := range params(m.cfg) {
			metaName[p.name] = p.meta
		}
		raw := twin{cfg: m.cfg, interleaved: true, weight: func(name string) []float64 {
			x, err := f.Float32s(metaName[name])
			must(t, err)
			return widen(x)
		}}
		if got := worst(raw.logits(ids), want); got > 1e-9 { // both in float64, summed in another order
			t.Errorf("%s: Meta's order differs by %g", name, got)
		}
		f.Close()
		for _, format := range Formats() {
			if got := worst(of(t, reopen(t, m, format, Options{})).logits(ids), want); got != 0 {
				t.Errorf("%s through %s: logits differ by %g", name, format, got)
			}
		}
	}
}

func widen(x []float32) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}

func TestPermuteAndBack(t *testing.T) {
	x := []float32{0, 1, 2, 3, 4, 5, 6, 7} // two heads of 4, one column: neighbours (0,1) (2,3) become halves
	y, z := make([]float32, 8), make([]float32, 8)
	must(t, Permute(y, x, 2, 4))
	for i, v := range []float32{0, 2, 1, 3, 4, 6, 5, 7} {
		if y[i] != v {
			t.Fatalf("permuted to %v", y)
		}
	}
	must(t, Unpermute(z, y, 2, 4))
	for i := range x {
		if z[i] != x[i] {
			t.Fatalf("comes back as %v", z)
		}
	}
	for _, bad := range [][3]int{{2, 3, 8}, {0, 4, 8}, {3, 4, 8}, {2, 4, 7}} {
		if Permute(make([]float32, bad[2]), x, bad[0], bad[1]) == nil {
			t.Errorf("%v is accepted", bad)
		}
	}
}

func TestTableTheta(t *testing.T) {
	for _, theta := range []float64{1e4, 1e6, 5e5} {
		c := toys["mha"]
		c.Theta = theta
		var raw []byte
		must(t, writeTables(sink{&raw}, c))
		if got, err := tableTheta(raw, c); err != nil || got != theta {
			t.Errorf("theta %g is read as %g, %v", theta, got, err)
		}
	}
	c := toys["mha"]
	if got, err := tableTheta(make([]byte, 4*c.Context*c.Head()), c); err != nil || got != 1e4 {
		t.Errorf("tables of zeros: %g, %v", got, err)
	}
	if got, err := tableTheta([]byte(string(make([]byte, 32))+string(fill(4*c.Context*c.Head()-32))), c); err == nil {
		t.Errorf("tables of noise: theta %g", got)
	}
}

type sink struct{ b *[]byte }

func (s sink) Write(p []byte) (int, error) { *s.b = append(*s.b, p...); return len(p), nil }

func fill(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(math.Float32bits(0.37) >> (8 * (i % 4)))
	}
	return b
}
