package tune

import (
	"fmt"
	"time"

	"github.com/gotrain/gotrain/npu"
)

// runner is an op that is ready to run, with the conversions that a network would have to make around it.
type runner struct {
	times int // executions in a round
	best  time.Duration

	kernels  []npu.Kernel
	places   [][]int64 // of the arguments of each kernel, in bytes from the start of the buffer
	scratch  int64     // place of the workspace
	size     int64     // of the buffer
	launches []npu.Launch
}

const align = 256

// prepare compiles an op. Its concrete layouts are those in which a network has pictures; where the algorithm wants others, it pays for conversions. Weights
// are converted for nearly every kernel, whatever the algorithm, because they lie as the gradient's kernel writes them; so they do not count.
func prepare(dev npu.Device, op npu.Op) (*runner, error) {
	want, err := dev.Choose(op)
	if err != nil {
		return nil, err
	}
	r := &runner{}
	var before, after []npu.Op
	var beforeAt, afterAt [][]int64
	var mine []int64
	for i := range len(op.In) + len(op.Out) {
		has, wants := arg(op, i), arg(want, i)
		at, err := r.place(dev, wants)
		if err != nil {
			return nil, err
		}
		mine = append(mine, at)
		if has.Layout == npu.Any || has.Layout == wants.Layout || i == weights(op) {
			continue
		}
		other, err := r.place(dev, has)
		if err != nil {
			return nil, err
		}
		if i < len(op.In) {
			before, beforeAt = append(before, convert(has, wants)), append(beforeAt, []int64{other, at})
		} else {
			after, afterAt = append(after, convert(wants, has)), append(afterAt, []int64{at, other})
		}
	}
	ops := append(append(before, want), after...)
	r.places = append(append(beforeAt, mine), afterAt...)
	need := int64(0)
	for _, o := range ops {
		k, err := dev.Compile(o)
		if err != nil {
			return nil, err
		}
		r.kernels = append(r.kernels, k)
		need = max(need, k.Workspace())
	}
	r.scratch = r.size
	r.size += need
	return r, nil
}

func convert(from, to npu.Desc) npu.Op {
	return npu.Op{Kind: npu.Convert, Attrs: npu.Attrs{"dtype": to.DType.String()}, In: []npu.Desc{from}, Out: []npu.Desc{to}}
}

// place reserves memory for a tensor.
func (r *runner) place(dev npu.Device, d npu.Desc) (at int64, err error) {
	n, err := dev.Bytes(d)
	at = r.size
	r.size += (n + align - 1) / align * align
	return at, err
}

// bind gives the kernels their memory.
func (r *runner) bind(buf npu.Buffer) error {
	r.launches = nil
	for i, k := range r.kernels {
		var args []npu.Ptr
		for _, at := range r.places[i] {
			args = append(args, npu.Ptr{Buf: buf, Off: at})
		}
		ws := npu.Ptr{}
		if k.Workspace() > 0 {
			ws = npu.Ptr{Buf: buf, Off: r.scratch}
		}
		l, err := k.Bind(args, ws)
		if err != nil {
			return fmt.Errorf("bind: %w", err)
		}
		r.launches = append(r.launches, l)
	}
	return nil
}
