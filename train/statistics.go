package train

import (
	"context"
	"fmt"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/train/data"
)

// statistics are the running statistics of all ranks. They differ, because each rank saw different samples: a resumed run must restore each rank's
// own to be bit-equal; evaluation and export use their mean, as timm's --dist-bn reduce does.
type statistics struct {
	mean  map[string][]byte // by name of the state
	ranks map[string][]byte // by rankState; nil for a single rank
}

// gather collects the running statistics of all ranks on all ranks.
func (t *Trainer) gather(ctx context.Context) (statistics, error) {
	w, states := t.comm.Size(), t.train.prog.States()
	var total int64
	for _, s := range states {
		total += s.Desc.PlainBytes()
	}
	out := statistics{mean: map[string][]byte{}}
	if total == 0 {
		return out, nil
	}
	mine, all := make([]byte, total), make([]byte, total*int64(w))
	at := int64(0)
	for i, s := range states {
		n := s.Desc.PlainBytes()
		if err := t.mover.Out(ctx, mine[at:at+n], t.store.states[i], s.Desc); err != nil {
			return out, err
		}
		at += n
	}
	if w == 1 {
		all = mine
	} else {
		ctx, cancel := t.patient(ctx)
		defer cancel()
		h, err := t.comm.AllGather(ctx, comm.Host(all, npu.F32), comm.Host(mine, npu.F32))
		if err == nil {
			err = h.Wait(ctx)
		}
		if err != nil {
			return out, fmt.Errorf("train: rank %d step %d: gathering running statistics: %w", t.comm.Rank(), t.step, err)
		}
		out.ranks = map[string][]byte{}
	}
	at = 0
	for _, s := range states {
		n := s.Desc.PlainBytes()
		sum := make([]float64, n/4)
		for r := range w {
			part := all[total*int64(r)+at:][:n:n]
			for j, v := range data.F32(part) {
				sum[j] += float64(v)
			}
			if w > 1 {
				out.ranks[rankState(r, s.Name)] = part
			}
		}
		mean := make([]float32, len(sum))
		for j, v := range sum {
			mean[j] = float32(v / float64(w))
		}
		out.mean[s.Name] = floatBytes(mean)
		at += n
	}
	return out, nil
}

// shareStatistics gives the evaluation network the mean of all ranks' running statistics, so that every rank evaluates the same model.
func (t *Trainer) shareStatistics(ctx context.Context) error {
	st, err := t.gather(ctx)
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

// rankState names the running statistic of a rank in a checkpoint.
func rankState(rank int, name string) string { return fmt.Sprintf("rank%d/%s", rank, name) }

// RankFile holds, in a checkpoint of several ranks, each rank's own running statistics; the model file has their mean.
const RankFile = "ranks.safetensors"
