package train

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/train/data"
)

// statistics are the running statistics of all ranks. They differ, since each rank saw other samples: a run that goes on must find each
// rank's own, or it would not be bit-equal; evaluation and export use their mean, as timm's --dist-bn reduce does.
type statistics struct {
	mean  map[string][]byte // by state
	ranks map[string][]byte // by rankState; nil for a single rank
}

// gather brings the running statistics of all ranks to all ranks.
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

// tell sends a short text from rank 0 to all.
func (t *Trainer) tell(ctx context.Context, text string) (string, error) {
	if len(text) > telling {
		return "", fmt.Errorf("train: %q is too long to be told to the other ranks", text)
	}
	_, text, err := t.broadcast(ctx, 0, 0, text)
	return text, err
}

// reason tells all ranks what one of them failed at, with its exit code. Its own error is mine on that rank.
func (t *Trainer) reason(ctx context.Context, rank int, mine error) (error, error) {
	text := ""
	if mine != nil {
		text = mine.Error()
	}
	code, text, err := t.broadcast(ctx, rank, launch.ExitCode(mine), text[:min(len(text), telling)])
	if err != nil {
		return nil, err
	}
	out := launch.WithCode(code, errors.New(text))
	if t.comm.Rank() != rank {
		out = launch.WithBlame(out, rank)
	}
	return out, nil
}

// telling is the length of the longest text that one rank tells the others.
const telling = 4096

// broadcast sends a small number and a text from one rank to all.
func (t *Trainer) broadcast(ctx context.Context, from, code int, text string) (int, string, error) {
	b := make([]byte, 4+telling)
	if t.comm.Rank() == from {
		binary.LittleEndian.PutUint16(b, uint16(code))
		binary.LittleEndian.PutUint16(b[2:], uint16(len(text)))
		copy(b[4:], text)
	}
	ctx, cancel := t.patient(ctx)
	defer cancel()
	if err := comm.Wait(ctx)(t.comm.Broadcast(ctx, comm.Host(b, npu.U8), from)); err != nil {
		return 0, "", fmt.Errorf("train: rank %d: %w", t.comm.Rank(), err)
	}
	n := int(binary.LittleEndian.Uint16(b[2:]))
	return int(binary.LittleEndian.Uint16(b)), string(b[4:][:n]), nil
}
