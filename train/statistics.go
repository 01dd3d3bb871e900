package train

import (
	"context"
	"fmt"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/train/data"
)

// statistics are the running statistics of all ranks. They differ, because each rank saw different samples: a resumed run must restore each rank's
// own to be bit-equal; evaluation and export use their mean, as timm's --dist-bn reduce does.
type statistics struct {
	mean  map[string][]byte // by name of the state
	ranks map[string][]byte // by rankState, on rank 0; nil for a single rank
}

// ownStatistics reads running statistics of this rank, one state after the other.
func (t *Trainer) ownStatistics(ctx context.Context, of []tensor) ([]byte, error) {
	var mine []byte
	for _, s := range of {
		at := len(mine)
		mine = append(mine, make([]byte, s.desc.PlainBytes())...)
		if err := t.mover.Out(ctx, mine[at:], s.at, s.desc); err != nil {
			return nil, err
		}
	}
	return mine, nil
}

// gather computes the mean of running statistics over all ranks. With each, rank 0 also gets those of every rank, for a checkpoint.
func (t *Trainer) gather(ctx context.Context, states []tensor, each bool) (statistics, error) {
	w := t.comm.Size()
	out := statistics{mean: map[string][]byte{}}
	mine, err := t.ownStatistics(ctx, states)
	if err != nil || len(mine) == 0 {
		return out, err
	}
	sum := make([]float64, len(mine)/4)
	for i, v := range data.F32(mine) {
		sum[i] = float64(v)
	}
	if w > 1 {
		ctx, cancel := t.patient(ctx)
		defer cancel()
		if err := comm.Wait(ctx)(t.comm.AllReduce(ctx, comm.HostOf(sum), comm.Sum)); err != nil {
			return out, t.collected("the mean of the running statistics", err)
		}
	}
	var all [][]byte
	if each && w > 1 {
		if all, err = t.toFirst(ctx, "running statistics", mine); err != nil {
			return out, err
		}
		out.ranks = map[string][]byte{}
	}
	at := int64(0)
	for _, s := range states {
		n := s.desc.PlainBytes()
		for r, b := range all {
			out.ranks[rankState(r, s.name)] = b[at:][:n:n]
		}
		mean := make([]float32, n/4)
		for j := range mean {
			mean[j] = float32(sum[at/4+int64(j)] / float64(w))
		}
		out.mean[s.name] = floatBytes(mean)
		at += n
	}
	return out, nil
}

// shareStatistics gives the evaluation network the mean of all ranks' running statistics, so that every rank evaluates the same model.
func (t *Trainer) shareStatistics(ctx context.Context) error {
	st, err := t.gather(ctx, t.statesOf(t.evaluatedModel()), false)
	if err != nil {
		return err
	}
	for i, s := range t.eval.prog.States() {
		if err := t.mover.In(ctx, t.evalStates[i], s.Desc, st.mean[s.Name]); err != nil {
			return err
		}
	}
	return nil
}

// rankState names the running statistic of a rank in a checkpoint, and rankAverage its average.
func rankState(rank int, name string) string   { return fmt.Sprintf("rank%d/%s", rank, name) }
func rankAverage(rank int, name string) string { return fmt.Sprintf("rank%d/ema/%s", rank, name) }

// RankFile holds, in a checkpoint of several ranks, each rank's own running statistics; the model file has their mean.
const RankFile = "ranks.safetensors"
