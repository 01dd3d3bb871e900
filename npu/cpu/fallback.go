//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"unsafe"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/ref"
)

// goMaker executes any op with package ref, in plain layouts.
var goMaker = maker{
	choose: func(_ *Device, op npu.Op) (npu.Op, error) { return allPlain(op), nil },
	build: func(_ *Device, op npu.Op) (body, error) {
		if !isPlain(op) {
			return nil, errNotMine
		}
		return goBody{op}, nil
	},
}

type goBody struct{ op npu.Op }

func (b goBody) impl() string     { return "go:" + b.op.Kind }
func (b goBody) workspace() int64 { return 0 }

func (b goBody) bind(ptrs []unsafe.Pointer, _ unsafe.Pointer) (runner, error) {
	r := &goRun{op: b.op, args: make([][]byte, len(ptrs))}
	for i, p := range ptrs {
		if p != nil {
			t, _ := arg(b.op, i)
			r.args[i] = unsafe.Slice((*byte)(p), t.PlainBytes())
		}
	}
	return r, nil
}

type goRun struct {
	op   npu.Op
	args [][]byte
}

func (r *goRun) command() (fn, self unsafe.Pointer) { return nil, nil }
func (r *goRun) fault(int) error                    { return nil }
func (r *goRun) run() error                         { return ref.Run(r.op, r.args) }
