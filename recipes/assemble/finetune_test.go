package assemble

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/shm"
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
	"github.com/gotrain/gotrain/train/telemetry"
)

// reference is what PyTorch computed in float64; see graph/models/llama/testdata.
type reference struct {
	Finetune struct {
		Losses []float64 `json:"losses"`
		Norms  []float64 `json:"grad_norms_before_clip"`
	} `json:"finetune"`
	tensors *safetensors.File
}

func readReference(t *testing.T) *reference {
	t.Helper()
	dir := filepath.FromSlash("../../graph/models/llama/testdata/stories260k")
	raw, err := os.ReadFile(filepath.Join(dir, "reference.json"))
	if err != nil {
		t.Fatal(err)
	}
	r := &reference{}
	if err := json.Unmarshal(raw, r); err != nil {
		t.Fatal(err)
	}
	if r.tensors, err = safetensors.Open(filepath.Join(dir, "reference.safetensors")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.tensors.Close() })
	return r
}

// shard writes the tokens of the reference run as a shard.
func (r *reference) shard(t *testing.T) (dir string) {
	t.Helper()
	raw, err := r.tensors.Bytes("finetune.ids")
	if err != nil {
		t.Fatal(err)
	}
	out := make([]byte, 1024)
	for i, v := range []uint32{20240520, 1, uint32(len(raw) / 4)} {
		binary.LittleEndian.PutUint32(out[4*i:], v)
	}
	for i := 0; i < len(raw); i += 4 {
		out = append(out, raw[i], raw[i+1])
	}
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "train_000.bin"), out, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// steps records losses and norms, and calls stop after a number of steps.
type steps struct {
	losses, norms []float64
	after         int
	stop          func()
}

func (s *steps) Emit(e telemetry.Event) error {
	if x, ok := e.(telemetry.Step); ok {
		s.losses, s.norms = append(s.losses, x.Loss.X), append(s.norms, x.Norm.X)
		if len(s.losses) == s.after {
			s.stop()
		}
	}
	return nil
}
func (s *steps) Close() error { return nil }

// together runs a recipe on ranks within this process; stopAfter, if not 0, steps it is asked to stop.
func together(t *testing.T, ranks, stopAfter int, name string, sets []string) *steps {
	t.Helper()
	comms := []comm.Communicator{nil}
	if ranks > 1 {
		var err error
		if comms, err = shm.NewLocal(ranks); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	errs, out := make([]error, ranks), &steps{after: stopAfter}
	for i := range ranks {
		wg.Go(func() {
			id := rank(ranks)
			id.Rank, id.LocalRank, id.Comm, id.Threads = i, i, comms[i], 1
			cfg, err := Config(t.Context(), recipe(t, name, sets...), id)
			if err == nil {
				if i == 0 {
					cfg.Sinks = []telemetry.Sink{out}
				}
				var tr *train.Trainer
				if tr, err = train.New(train.WithConfig(cfg)); err == nil {
					if i == 0 {
						out.stop = tr.Stop
					}
					_, err = tr.Run(context.Background())
				}
			}
			errs[i] = err
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil && !errors.Is(err, train.ErrStopped) {
		t.Fatal(err)
	}
	return out
}

// Forty steps of AdamW from a real model's weights, step by step against PyTorch, whatever the division of the batch. The bounds are ten times what
// float32 was seen to differ from float64: 2e-6 of a loss, 2e-5 of a norm, and 2e-5 of the largest for the weights after 40 steps.
func TestFinetuneEqualsPyTorch(t *testing.T) {
	ref := readReference(t)
	dir := ref.shard(t)
	for _, c := range []struct{ ranks, batch, accumulate int }{{1, 4, 1}, {2, 2, 1}, {1, 2, 2}, {2, 1, 2}} {
		t.Run(fmt.Sprintf("%d ranks x %d x %d", c.ranks, c.batch, c.accumulate), func(t *testing.T) {
			out := t.TempDir()
			got := together(t, c.ranks, 0, "llama-finetune", []string{
				"run.epochs=0", "run.steps=40", "run.output_dir=" + out, "data.kind=tokens", "data.root=" + dir, "data.shuffle=false", "text.tokenizer=",
				"text.sequence=64", "text.documents_apart=false",
				fmt.Sprint(
					"train.batch_per_rank=",
					c.batch,
				), fmt.Sprint("train.accumulate_steps=", c.accumulate), "train.first_bucket_mb=0.1", "train.bucket_mb=0.3",
				"schedule.kind=constant", "schedule.warmup_steps=0", "eval.enabled=false", "eval.every_steps=0",
			})
			if len(got.losses) != 40 {
				t.Fatalf("%d steps", len(got.losses))
			}
			worst, worstNorm := 0.0, 0.0
			for i, want := range ref.Finetune.Losses {
				worst = max(worst, math.Abs(got.losses[i]/want-1))
				worstNorm = max(worstNorm, math.Abs(got.norms[i]/ref.Finetune.Norms[i]-1))
			}
			t.Logf("losses differ by %.1e, norms by %.1e", worst, worstNorm)
			if worst > 2e-6 || worstNorm > 2e-5 {
				t.Errorf("losses differ by %g, norms by %g; last loss %g, want %g", worst, worstNorm, got.losses[39], ref.Finetune.Losses[39])
			}
			saved, err := safetensors.Open(filepath.Join(out, "checkpoints", "step-00000040", "model.safetensors"))
			if err != nil {
				t.Fatal(err)
			}
			defer saved.Close()
			ref.after(t, saved)
		})
	}
}

// after compares the weights that the reference keeps.
func (r *reference) after(t *testing.T, saved *safetensors.File) {
	t.Helper()
	n := 0
	for _, x := range r.tensors.Tensors() {
		name, ok := strings.CutPrefix(x.Name, "finetune.after.")
		if !ok {
			continue
		}
		n++
		want, err := r.tensors.Float32s(x.Name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := saved.Float32s(name)
		if err != nil {
			t.Fatal(err)
		}
		top, worst := 0.0, 0.0
		for i := range want {
			top = max(top, math.Abs(float64(want[i])))
			worst = max(worst, math.Abs(float64(got[i])-float64(want[i])))
		}
		if worst > 2e-5*top {
			t.Errorf("%s after 40 steps differs by %g of its largest", name, worst/top)
		}
	}
	if n != 3 {
		t.Errorf("%d tensors compared", n)
	}
}

// A run stopped in the middle of an epoch and resumed is bit-identical to one that was never stopped: losses, norms and weights. Paragraphs
// are documents here, so sequences hold several, and layers are computed again.
func TestLlamaGoesOnBitEqual(t *testing.T) {
	text := shortText(t)
	run := func(out string, stopAfter int) *steps {
		return together(t, 2, stopAfter, "llama-tiny", []string{
			"run.steps=12", "run.output_dir=" + out, "data.root=" + text, "text.separator=blank", "text.sequence=32", "train.batch_per_rank=3",
			"train.accumulate_steps=2", "train.recompute=layer",
			"llama.layers=2", "llama.dim=64", "llama.hidden=96", "schedule.warmup_steps=4", "eval.every_steps=5", "checkpoint.every_steps=0", "checkpoint.enabled=true",
		})
	}
	whole, parts := t.TempDir(), t.TempDir()
	want := run(whole, 0)
	first := run(parts, 5)
	rest := run(parts, 0)
	if len(want.losses) != 12 || len(first.losses) < 5 || len(first.losses) > 6 || len(first.losses)+len(rest.losses) != 12 {
		t.Fatalf("%d steps, and %d and %d", len(want.losses), len(first.losses), len(rest.losses))
	}
	if got := append(first.losses, rest.losses...); !slices.Equal(got, want.losses) {
		t.Errorf("losses\n%v\nwant\n%v", got, want.losses)
	}
	if got := append(first.norms, rest.norms...); !slices.Equal(got, want.norms) {
		t.Errorf("norms\n%v\nwant\n%v", got, want.norms)
	}
	if want.losses[11] > want.losses[0]-0.5 {
		t.Errorf("nothing is learned: %v", want.losses)
	}
	for _, file := range []string{"model.safetensors", "optimizer.safetensors", "config.json", "tok512.bin"} {
		read := func(dir string) []byte {
			raw, err := os.ReadFile(filepath.Join(dir, "checkpoints", "step-00000012", file))
			if err != nil {
				t.Fatal(err)
			}
			return raw
		}
		if !bytes.Equal(read(whole), read(parts)) {
			t.Errorf("%s differs", file)
		}
	}
}
