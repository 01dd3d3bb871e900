package train

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/gotrain/gotrain/ddp"
	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/train/data"
)

// perplexity is the name of the exponential of the mean loss, where that is a negative log-likelihood.
const perplexity = "perplexity"

// evaluate runs the held-out samples once, each exactly once over all ranks, and divides sums by counts. Batches that are short, or
// empty on a rank that has nothing left, carry labels that do not count. It reports whether somebody asked to stop meanwhile; the
// result is nil then.
func (t *Trainer) evaluate(ctx context.Context) (out map[string]float64, stop bool, err error) {
	begin := time.Now()
	p := t.eval
	if err := t.held.Seek(data.State{}); err != nil {
		return nil, false, err
	}
	if err := t.shareStatistics(ctx); err != nil {
		return nil, false, err
	}
	var mine sums
	for {
		b, err := t.held.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, false, fmt.Errorf("train: rank %d: evaluation after step %d: %w", t.comm.Rank(), t.step, err)
		}
		if err := t.evalBatch(ctx, b, &mine); err != nil {
			return nil, false, err
		}
		// All ranks have the same number of batches, so they can also stop together.
		v, err := t.eng.Agree(ctx, ddp.Vote{Stop: t.stop.Load()})
		if err != nil || len(v.Stop) > 0 {
			return nil, len(v.Stop) > 0, err
		}
	}
	v, err := t.eng.Agree(ctx, ddp.Vote{Count: mine.count, LossSum: mine.loss, Sums: append([]float64{}, mine.metrics...)})
	if err != nil {
		return nil, false, err
	}
	if v.Count == 0 {
		return nil, false, fmt.Errorf("train: evaluation counted no item of %s", t.cfg.Eval.Name())
	}
	out = map[string]float64{"loss": v.LossSum / v.Count, "items": v.Count}
	if p.net.items.Likelihood {
		out[perplexity] = math.Exp(out["loss"])
	}
	for i, name := range p.net.metrics {
		if i < len(v.Sums) {
			out[name] = v.Sums[i] / v.Count
		}
	}
	t.lastEv, t.evaluated = out, t.step
	t.emitEval(out, time.Since(begin))
	return out, false, nil
}

func (t *Trainer) evalBatch(ctx context.Context, b *data.Batch, to *sums) error {
	defer b.Release()
	p := t.eval
	if b.Valid == 0 {
		return nil // this rank has nothing left; the others still do
	}
	if err := p.whole(b); err != nil {
		return err
	}
	if err := p.copyIn(t.stream, b); err != nil {
		return err
	}
	err := p.prog.Run(t.stream, false, func(group int) error {
		if group == graph.Forward {
			return p.copyOut(t.stream, 0)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := t.stream.Sync(ctx); err != nil { // host waits for device: sums of the batch
		return t.where(err)
	}
	p.add(to, 0, b.Valid)
	return nil
}
