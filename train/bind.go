package train

import (
	"fmt"
	"slices"

	"github.com/gotrain/gotrain/internal/amount"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/optim"
)

// bind allocates memory and binds both programs and the optimizer to it.
func (t *Trainer) bind() error {
	ws := t.train.prog.Weights()
	slots := map[int]slot{}
	grads := make([]npu.Ptr, len(ws))
	var bytes []int64
	for k, b := range t.eng.Buckets() {
		bytes = append(bytes, b.Bytes)
		for _, pl := range b.Places {
			w := t.order[pl.Param]
			slots[w], grads[w] = slot{k, pl.Offset}, t.eng.Grad(pl.Param).Ptr
		}
	}
	var err error
	if t.store, err = newStore(t.dev, t.train.prog, slots, bytes); err != nil {
		return err
	}
	need := t.train.prog.Scratch()
	if t.eval != nil {
		need = max(need, t.eval.prog.Scratch())
	}
	if t.scratch, err = t.dev.Alloc(need); err != nil {
		return fmt.Errorf("train: %s of activations on %s: %w\nhint: use a smaller batch, or bf16", amount.Bytes(need), t.dev.Info().Name, err)
	}
	t.train.prog.Group(t.groups(t.eng.Plan()))
	mem, err := t.memory(t.train)
	if err != nil {
		return err
	}
	mem.Grads = grads
	if err := t.train.prog.Bind(mem); err != nil {
		return err
	}
	if err := t.train.wire(t.dev, &t.pinned, t.cfg.Data.Fields(), t.cfg.Accumulate); err != nil {
		return err
	}
	if err := t.openOptimizer(bytes); err != nil { // before the evaluation network, which may use the averages that it keeps
		return err
	}
	if t.eval != nil {
		mem, err := t.memory(t.eval)
		if err != nil {
			return err
		}
		for i, s := range t.eval.prog.States() {
			if mem.States[i], err = t.store.alloc(t.dev, s.Bytes, s.Name); err != nil {
				return err
			}
		}
		t.evalStates = mem.States
		if err := t.eval.prog.Bind(mem); err != nil {
			return err
		}
		if err := t.eval.wire(t.dev, &t.pinned, t.cfg.Eval.Fields(), 1); err != nil {
			return err
		}
		if t.each != nil {
			if err := t.each.wire(t.eval, &t.pinned, t.cfg.Eval.Fields()); err != nil {
				return err
			}
		}
	}
	numbers, err := t.pinned.alloc(8 * int64(1+t.cfg.Accumulate))
	if err != nil {
		return err
	}
	t.hostScale, t.hostSeed = numbers[:4], numbers[8:]
	return nil
}

func (t *Trainer) openOptimizer(bytes []int64) (err error) {
	var segs []optim.Segment
	for k, b := range t.eng.Buckets() {
		s := optim.Segment{Name: fmt.Sprintf("bucket %d", k), Grad: b.Mem.Ptr, Elems: bytes[k] / 4}
		for _, pl := range b.Places {
			p := t.eng.Plan().Params[pl.Param]
			s.Tensors = append(s.Tensors, optim.Tensor{Name: p.Name, Off: pl.Offset / 4, Elems: p.Elems, Group: p.Group})
		}
		slices.SortFunc(s.Tensors, func(a, b optim.Tensor) int { return int(a.Off - b.Off) })
		w := t.order[b.Places[0].Param]
		s.Weight = t.store.weights[w].At(-b.Places[0].Offset)
		segs = append(segs, s)
	}
	if s, ok := t.averagedSegment(); ok {
		segs = append(segs, s)
	}
	t.opt, err = optim.New(t.dev, t.cfg.Optim, segs)
	return err
}
