package graph

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/gotrain/gotrain/graph/plan"
	"github.com/gotrain/gotrain/npu"
)

// FirstNonFinite runs the forward pass again on the inputs that are there, one step at a time, and names the first step that makes an infinite or
// undefined number, or an input or parameter that holds one already; "" where none does. It is for the message of a run that ends: it is slow, and
// it updates running statistics once more. Memory that the host cannot reach is not looked at.
func (p *Program) FirstNonFinite(ctx context.Context, s npu.Stream) (string, error) {
	for i := range p.plan.Tensors {
		t := &p.plan.Tensors[i]
		if t.Role != plan.Temp && p.bad(plan.ID(i)) {
			return fmt.Sprintf("%s %q", t.Role, t.Name), nil
		}
	}
	end := p.forwardEnd()
	si := 0
	for _, seg := range p.write {
		for i := range seg.batch {
			if err := s.Run(seg.batch[i : i+1]); err != nil {
				return "", err
			}
			if at, err := p.look(ctx, s, si, end); at != "" || err != nil || si >= end {
				return at, err
			}
			si++
		}
		if seg.host != nil {
			if err := s.Do(seg.host); err != nil {
				return "", err
			}
			if at, err := p.look(ctx, s, si, end); at != "" || err != nil || si >= end {
				return at, err
			}
			si++
		}
	}
	return "", nil
}

// look waits for step si and looks at its outputs.
func (p *Program) look(ctx context.Context, s npu.Stream, si, end int) (string, error) {
	if err := s.Sync(ctx); err != nil || si > end {
		return "", err
	}
	st := &p.plan.Steps[si]
	for j, o := range st.Out {
		if o != plan.None && p.bad(o) {
			return fmt.Sprintf("output %d of %s %q (step %d of the program)", j, st.Op.Kind, st.Name, si), nil
		}
	}
	return "", nil
}

// bad says whether a float tensor holds something that is not finite.
func (p *Program) bad(id plan.ID) bool {
	if p.ptr[id].IsNil() {
		return false
	}
	b := p.host(id, false)
	switch p.plan.Tensors[id].Desc.DType {
	case npu.F32:
		for ; len(b) >= 4; b = b[4:] {
			if v := float64(math.Float32frombits(binary.NativeEndian.Uint32(b))); math.IsNaN(v) || math.IsInf(v, 0) {
				return true
			}
		}
	case npu.F16:
		for ; len(b) >= 2; b = b[2:] {
			if binary.NativeEndian.Uint16(b)&0x7c00 == 0x7c00 {
				return true
			}
		}
	case npu.BF16:
		for ; len(b) >= 2; b = b[2:] {
			if binary.NativeEndian.Uint16(b)&0x7f80 == 0x7f80 {
				return true
			}
		}
	}
	return false
}
