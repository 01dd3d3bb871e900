package train

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/train/checkpoint"
)

// decideProducts is rank 0's choice of how products of bf16 are computed: as the options of the device say, as in the checkpoint that the run resumes from, so
// that it continues bit by bit, or as is faster on its processor. It is "" where nothing is bf16, or the device has no choice.
func (t *Trainer) decideProducts(ctx context.Context) (npu.Products, error) {
	m, ok := t.dev.(npu.Multiplier)
	if !ok || t.cfg.Compute != npu.BF16 {
		return "", nil
	}
	faster, fixed := m.Products()
	if faster == "" || fixed {
		return faster, nil
	}
	was, name, found, err := t.earlierKernels(ctx)
	if err != nil || !found || formerProducts(was) == faster {
		return faster, err
	}
	p := formerProducts(was)
	if !t.planning {
		slog.Info(fmt.Sprintf("products of bf16 are %s, as in the checkpoint %s; train.device_options = \"bf16=%s\" would be faster on this processor", p, name,
			faster))
	}
	return p, nil
}

// formerProducts tells how a checkpoint's run has computed products of bf16: by bf16 instructions, if it does not say.
func formerProducts(was *checkpoint.Kernels) npu.Products {
	if was == nil || was.Products == "" {
		return npu.NativeProducts
	}
	return npu.Products(was.Products)
}

// useProducts has the device compute products as rank 0 decided. A device without that choice keeps its own way.
func (t *Trainer) useProducts(p npu.Products) error {
	m, ok := t.dev.(npu.Multiplier)
	if !ok || p == "" {
		return nil
	}
	if mine, _ := m.Products(); mine == "" || mine == p {
		return nil
	}
	if err := m.UseProducts(p); err != nil {
		return fmt.Errorf("train: rank %d: products of bf16 as on rank 0: %w", t.comm.Rank(), err)
	}
	if t.cfg.PeakFLOPS == 0 {
		t.peak = t.dev.Info().Peak[t.cfg.Compute]
	}
	return nil
}
