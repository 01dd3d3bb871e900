package graph

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/gotrain/gotrain/graph/plan"
	"github.com/gotrain/gotrain/npu"
)

// FirstNonFinite runs the forward pass again on the inputs that are there, one step at a time, and names the first step that makes an infinite or
// undefined number, or an input or parameter that holds one already; "" where none does. It is for the message of a run that ends: it is slow, and
// it updates running statistics once more.
func (p *Program) FirstNonFinite(ctx context.Context, s npu.Stream) (at string, err error) {
	copies := npu.NewCopier(p.dev, s)
	defer func() { err = errors.Join(err, copies.Close()) }()
	for i := range p.plan.Tensors {
		t := &p.plan.Tensors[i]
		if t.Role == plan.Temp {
			continue
		}
		if bad, err := p.bad(ctx, copies, plan.ID(i)); err != nil || bad {
			return fmt.Sprintf("%s %q", t.Role, t.Name), err
		}
	}
	end := p.forwardEnd()
	si := 0
	for _, seg := range p.write {
		for i := range seg.batch {
			if err := s.Run(seg.batch[i : i+1]); err != nil {
				return "", err
			}
			if at, err := p.look(ctx, s, copies, si, end); at != "" || err != nil || si >= end {
				return at, err
			}
			si++
		}
		if seg.host != nil {
			if err := s.Do(seg.host); err != nil {
				return "", err
			}
			if at, err := p.look(ctx, s, copies, si, end); at != "" || err != nil || si >= end {
				return at, err
			}
			si++
		}
	}
	return "", nil
}

// look waits for step si and looks at its outputs.
func (p *Program) look(ctx context.Context, s npu.Stream, copies *npu.Copier, si, end int) (string, error) {
	if err := s.Sync(ctx); err != nil || si > end {
		return "", err
	}
	st := &p.plan.Steps[si]
	for j, o := range st.Out {
		if o == plan.None {
			continue
		}
		if bad, err := p.bad(ctx, copies, o); err != nil || bad {
			return fmt.Sprintf("output %d of %s %q (step %d of the program)", j, st.Op.Kind, st.Name, si), err
		}
	}
	return "", nil
}

// bad says whether a float tensor holds something that is not finite. Memory that the host cannot access is copied out, piece by piece.
func (p *Program) bad(ctx context.Context, copies *npu.Copier, id plan.ID) (bool, error) {
	t := p.plan.Tensors[id].Desc.DType
	if p.ptr[id].IsNil() || !t.IsFloat() {
		return false, nil
	}
	if b := p.host(id, false); b != nil {
		return nonFinite(t, b), nil
	}
	err := copies.Each(ctx, p.ptr[id], p.plan.Tensors[id].Bytes, func(piece []byte) error {
		if nonFinite(t, piece) {
			return errFound
		}
		return nil
	})
	if errors.Is(err, errFound) {
		return true, nil
	}
	return false, err
}

// errFound ends a search.
var errFound = errors.New("found")

// nonFinite tests the exponents of all elements.
func nonFinite(t npu.DType, b []byte) bool {
	switch t {
	case npu.F32:
		for ; len(b) >= 4; b = b[4:] {
			if binary.NativeEndian.Uint32(b)&0x7f800000 == 0x7f800000 {
				return true
			}
		}
	case npu.F64:
		for ; len(b) >= 8; b = b[8:] {
			if binary.NativeEndian.Uint64(b)>>52&0x7ff == 0x7ff {
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
