//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"unsafe"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/cpu/kern"
)

// kernMaker executes ops with the C kernels of package kern.
var kernMaker = maker{
	choose: func(d *Device, op npu.Op) (npu.Op, error) {
		if op.Kind == npu.Convert { // changing layouts is its purpose
			op = convertLayouts(op)
			if _, ok := kern.Prepare(op); !ok {
				return op, errNotMine
			}
			return op, nil
		}
		for _, l := range d.actLayouts(op) {
			withLayout(&op, l)
			if _, ok := kern.Prepare(op); ok {
				return op, nil
			}
		}
		return op, errNotMine
	},
	build: func(d *Device, op npu.Op) (body, error) {
		call, ok := kern.Prepare(op)
		if !ok {
			return nil, errNotMine
		}
		call.ForThreads(d.threads)
		return kernBody{call}, nil
	},
}

type kernBody struct{ call *kern.Call }

func (b kernBody) impl() string     { return b.call.Impl() }
func (b kernBody) workspace() int64 { return b.call.Workspace() }

func (b kernBody) bind(args []unsafe.Pointer, ws unsafe.Pointer) (runner, error) {
	cmd, err := b.call.Bind(args, ws, 0)
	if err != nil {
		return nil, err
	}
	return kernRun{cmd}, nil
}

type kernRun struct{ cmd *kern.Cmd }

func (r kernRun) command() (fn, self unsafe.Pointer) { return r.cmd.Command() }
func (r kernRun) fault(int) error                    { return r.cmd.Err() }
func (r kernRun) run() error                         { return r.cmd.Run(0) }
