package optim

import "github.com/gotrain/gotrain/npu"

// StateTensor is the state that belongs to one parameter, for checkpoints. Its memory has the layout of the parameter.
type StateTensor struct {
	Kind    string // "momentum", "exp_avg", "exp_avg_sq"
	Param   string // name of the parameter
	Segment int
	Ptr     npu.Ptr
	Elems   int64
	DType   npu.DType // F32
}

// Name is the name in a checkpoint: kind/parameter.
func (t StateTensor) Name() string { return t.Kind + "/" + t.Param }

// State lists the state of every parameter, by segment, kind and place. To continue from a checkpoint, write all of them, and
// Averages, and call SetCount.
func (o *Optimizer) State() []StateTensor {
	var out []StateTensor
	for i := range o.segs {
		s := &o.segs[i]
		if s.Grad.IsNil() {
			continue
		}
		for k, kind := range o.cfg.States() {
			for _, t := range s.Tensors {
				out = append(out, StateTensor{kind, t.Name, i, s.state[k].At(4 * t.Off), t.Elems, npu.F32})
			}
		}
	}
	return out
}
