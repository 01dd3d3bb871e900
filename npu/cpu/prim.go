//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"fmt"
	"strings"
	"unsafe"

	"github.com/gotrain/gotrain/npu/cpu/dnnl"
)

// prim is a body that consists of one primitive of the library.
type prim struct {
	code    *dnnl.Prim
	args    []primArg // one for each argument of the op
	scratch *dnnl.MD  // nil if none
	spill   int64     // workspace for unused outputs, after the scratch memory
}

// primArg maps an argument of the op to one of the primitive. id 0: the primitive does not have it.
type primArg struct {
	id int
	md *dnnl.MD
}

// newPrim generates the code.
func newPrim(pd *dnnl.PD, args ...primArg) (*prim, error) {
	code, err := pd.Create()
	if err != nil {
		return nil, notMine(err)
	}
	p := &prim{code: code, args: args}
	if pd.Scratch() > 0 {
		p.scratch = pd.MD(dnnl.ScratchpadMD, 0)
	}
	return p, nil
}

func (p *prim) impl() string { return "dnnl:" + p.code.PD().Impl() }

func (p *prim) scratchBytes() int64 {
	if p.scratch == nil {
		return 0
	}
	return (p.scratch.Bytes() + 63) &^ 63
}

func (p *prim) workspace() int64 { return p.scratchBytes() + p.spill }

func (p *prim) bind(ptrs []unsafe.Pointer, ws unsafe.Pointer) (runner, error) {
	var args []dnnl.Arg
	for i, a := range p.args {
		if a.id == 0 {
			continue
		}
		at := ptrs[i]
		if at == nil { // required by the primitive, unused by the caller
			if p.spill < a.md.Bytes() {
				return nil, fmt.Errorf("argument %d has no memory", i)
			}
			at = unsafe.Add(ws, p.scratchBytes())
		}
		args = append(args, dnnl.Arg{ID: a.id, MD: a.md, Ptr: at})
	}
	if p.scratch != nil {
		args = append(args, dnnl.Arg{ID: dnnl.ArgScratchpad, MD: p.scratch, Ptr: ws})
	}
	e, err := p.code.Bind(args)
	if err != nil {
		return nil, err
	}
	return &primRun{e}, nil
}

// primRun is a primitive with its memory.
type primRun struct{ exec *dnnl.Exec }

func (r *primRun) command() (fn, self unsafe.Pointer) { return r.exec.Command() }
func (r *primRun) fault(status int) error             { return r.exec.Status(status) }
func (r *primRun) run() error                         { panic("cpu: a primitive runs as a command") }

// rank orders implementations: 2 generated code, 1 gemm-based, 0 the library's plain loops.
func rank(pd *dnnl.PD) int {
	switch name := pd.Impl(); {
	case strings.Contains(name, "ref"):
		return 0
	case strings.HasPrefix(name, "gemm"):
		return 1
	}
	return 2
}
