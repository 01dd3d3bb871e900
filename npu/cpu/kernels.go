//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"unsafe"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/cpu/kern"
)

// kernMaker executes ops by the C kernels of package kern.
var kernMaker = maker{
	choose: func(d *Device, op npu.Op) (npu.Op, error) {
		for _, l := range d.actLayouts(op) {
			withLayout(&op, l)
			if _, ok := kern.Prepare(op); ok {
				return op, nil
			}
		}
		return op, errNotMine
	},
	build: func(_ *Device, op npu.Op) (body, error) {
		call, ok := kern.Prepare(op)
		if !ok {
			return nil, errNotMine
		}
		return kernBody{call}, nil
	},
}

// actLayouts lists the layouts that the four-dimensional tensors of an op may have in common, best first: the one that most of them
// come in (a tie goes to the later, which in a gradient belongs to the forward), else the one that convolutions like.
func (d *Device) actLayouts(op npu.Op) []npu.Layout {
	var best npu.Layout = npu.Any
	votes := map[npu.Layout]int{}
	four := false
	for i := range len(op.In) + len(op.Out) {
		t, in := arg(op, i)
		four = four || len(t.Shape) == 4
		if len(t.Shape) != 4 || t.Layout == npu.Any {
			continue
		}
		if in || len(votes) == 0 { // the wish for an output counts where no input says anything
			if votes[t.Layout]++; best == npu.Any || votes[t.Layout] >= votes[best] {
				best = t.Layout
			}
		}
	}
	if !four {
		return []npu.Layout{npu.Plain}
	}
	if best == npu.Any {
		best = d.prefer(npu.F32)
		if t, _ := arg(op, 0); t.DType == npu.BF16 {
			best = d.prefer(npu.BF16)
		}
	}
	return []npu.Layout{best, NHWC, NChw16c, npu.Plain}
}

// withLayout gives four-dimensional tensors the layout and all others the plain one.
func withLayout(op *npu.Op, l npu.Layout) {
	set := func(ds []npu.Desc) {
		for i := range ds {
			ds[i].Layout = npu.Plain
			if len(ds[i].Shape) == 4 {
				ds[i].Layout = l
			}
		}
	}
	set(op.In)
	set(op.Out)
}

type kernBody struct{ call *kern.Call }

func (b kernBody) impl() string     { return b.call.Impl() }
func (b kernBody) workspace() int64 { return b.call.Workspace() }

func (b kernBody) bind(args []unsafe.Pointer, ws unsafe.Pointer) (runner, error) {
	return kernRun{b.call.Bind(args, ws, 0)}, nil
}

type kernRun struct{ cmd *kern.Cmd }

func (r kernRun) command() (fn, self unsafe.Pointer) { return r.cmd.Command() }
func (r kernRun) fault(int) error                    { return r.cmd.Err() }
func (r kernRun) run() error                         { return r.cmd.Run(0) }
