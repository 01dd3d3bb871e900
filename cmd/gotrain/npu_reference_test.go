//go:build cgo && linux

package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
)

const storiesReference = "../../graph/models/llama/testdata/stories260k"

// referenceShard writes the tokens of PyTorch's run as a shard, and returns its losses.
func referenceShard(t *testing.T, f *safetensors.File) (dir string, losses []float64) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(storiesReference, "reference.json"))
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		Finetune struct {
			Losses []float64 `json:"losses"`
		} `json:"finetune"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatal(err)
	}
	ids, err := f.Bytes("finetune.ids")
	if err != nil {
		t.Fatal(err)
	}
	out := make([]byte, 1024)
	for i, v := range []uint32{20240520, 1, uint32(len(ids) / 4)} {
		binary.LittleEndian.PutUint32(out[4*i:], v)
	}
	for i := 0; i < len(ids); i += 4 {
		out = append(out, ids[i], ids[i+1])
	}
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "train_000.bin"), out, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir, r.Finetune.Losses
}

// Forty steps of AdamW from a real model's weights on one and two NPUs, against PyTorch in float64, with the bounds of the same test of the cpu device: 2e-6
// of a loss, and 2e-5 of the largest weight after 40 steps.
func TestNPUFinetuneEqualsPyTorch(t *testing.T) {
	ref, err := safetensors.Open(filepath.Join(storiesReference, "reference.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ref.Close() })
	shard, losses := referenceShard(t, ref)
	want := map[int]float64{}
	for i, l := range losses {
		want[i+1] = l
	}
	for _, c := range []struct {
		ranks        int
		version, soc string
	}{{1, "8.1", "A2"}, {2, "9.0", "A3"}} {
		t.Run(fmt.Sprint(c.ranks), func(t *testing.T) {
			dir := t.TempDir()
			withNPUs(t, c.version, "FAKE_CANN_SOC="+c.soc, "FAKE_CANN_DEVICES=2").run(c.ranks, finetune("npu", dir, c.ranks, 40, "data.kind=tokens", "data.root="+shard,
				"data.shuffle=false", "text.tokenizer=", "text.documents_apart=false", "schedule.kind=constant", "schedule.warmup_steps=0")...)
			near(t, "PyTorch", lossesOf(t, dir), want, 40, 2e-6)
			got, err := safetensors.Open(filepath.Join(dir, "checkpoints", "step-00000040", "model.safetensors"))
			if err != nil {
				t.Fatal(err)
			}
			defer got.Close()
			compared := 0
			for _, x := range ref.Tensors() {
				name, ok := strings.CutPrefix(x.Name, "finetune.after.")
				if !ok {
					continue
				}
				compared++
				a, err1 := got.Float32s(name)
				b, err2 := ref.Float32s(x.Name)
				if err1 != nil || err2 != nil || len(a) != len(b) {
					t.Fatal(err1, err2, len(a), len(b))
				}
				top, worst := 0.0, 0.0
				for i := range b {
					top = max(top, math.Abs(float64(b[i])))
					worst = max(worst, math.Abs(float64(a[i])-float64(b[i])))
				}
				if !(worst <= 2e-5*top) {
					t.Errorf("%s after 40 steps differs by %g of its largest", name, worst/top)
				}
			}
			if compared != 3 {
				t.Errorf("%d tensors compared", compared)
			}
		})
	}
}
