//go:build cgo && linux

package acl

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/acl/cann"
	"github.com/gotrain/gotrain/npu/acl/lower"
)

// launch is a kernel with its memory: calls with executors that CANN prepared, and the tensors, scalars and arrays that these refer to.
type launch struct {
	kernel  *kernel
	seq     *cann.Sequence
	objects []cann.Object
	keep    []npu.Buffer
	gone    bool // for the thread: the kernel was closed

	// What the host must know at each launch, for the thread only.
	mirrors  []*mirror
	settings []setting
	choices  []choice
}

// Kernel returns the kernel that was bound.
func (l *launch) Kernel() npu.Kernel { return l.kernel }

// Bind checks the arguments, and prepares the calls for their addresses.
func (k *kernel) Bind(args []npu.Ptr, workspace npu.Ptr) (npu.Launch, error) {
	l := &launch{kernel: k}
	b, err := k.place(args, workspace, l)
	if err == nil {
		err = k.constants(b)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %s: bind: %w", k.dev.name, k.label, err)
	}
	err = k.dev.thread.do(context.Background(), func() error {
		err := l.prepare(b)
		if err != nil {
			return errors.Join(err, l.drop())
		}
		k.mu.Lock()
		k.launches = append(k.launches, l)
		k.mu.Unlock()
		return nil
	})
	if err != nil {
		return nil, k.dev.wrap("bind", err)
	}
	return l, nil
}

// binding is where the memory of a program is.
type binding struct {
	in, out, temp, fixed []cann.Addr
	ws                   cann.Addr // of operators
}

func (b *binding) at(r lower.Ref) cann.Addr {
	return [...][]cann.Addr{lower.In: b.in, lower.Out: b.out, lower.Temp: b.temp, lower.Fixed: b.fixed}[r.Space][r.Index]
}

// place finds the addresses of arguments and temporaries.
func (k *kernel) place(args []npu.Ptr, workspace npu.Ptr, l *launch) (*binding, error) {
	if len(args) != len(k.bytes) {
		return nil, fmt.Errorf("%d arguments for %d inputs and %d outputs", len(args), len(k.op.In), len(k.op.Out))
	}
	b := &binding{}
	var scratch cann.Addr
	if n := k.Workspace(); n > 0 {
		p, err := k.dev.address(workspace, n)
		if err != nil {
			return nil, fmt.Errorf("workspace of %d bytes: %w", n, err)
		}
		if p%64 != 0 {
			return nil, fmt.Errorf("workspace at offset %d is not aligned to 64 bytes", workspace.Off)
		}
		scratch = p
		l.keep = append(l.keep, workspace.Buf)
	}
	for i, p := range args {
		in := i < len(k.op.In)
		what, at := "input", i
		if !in {
			what, at = "output", i-len(k.op.In)
		}
		var addr cann.Addr
		switch {
		case p.IsNil() && !in && at < len(k.prog.Spare) && k.prog.Spare[at].Bytes > 0:
			addr = scratch + cann.Addr(k.prog.Spare[at].Offset)
		default:
			var err error
			if addr, err = k.dev.address(p, k.bytes[i]); err != nil {
				return nil, fmt.Errorf("%s %d, %s: %w", what, at, desc(k.op, i), err)
			}
			if addr%32 != 0 && k.bytes[i] > 0 {
				return nil, fmt.Errorf("%s %d, %s, at offset %d is not aligned to 32 bytes", what, at, desc(k.op, i), p.Off)
			}
			l.keep = append(l.keep, p.Buf)
		}
		if in {
			b.in = append(b.in, addr)
		} else {
			b.out = append(b.out, addr)
		}
	}
	for _, t := range k.prog.Temps {
		b.temp = append(b.temp, scratch+cann.Addr(t.Offset))
	}
	b.ws = scratch + cann.Addr(k.prog.Scratch)
	return b, nil
}

// constants finds the constants of the program on the device, or puts them there.
func (k *kernel) constants(b *binding) error {
	for _, c := range k.prog.Consts {
		buf, err := k.dev.constant(c)
		if err != nil {
			return fmt.Errorf("constant %s: %w", c.Key, err)
		}
		b.fixed = append(b.fixed, cann.Addr(buf.piece.addr()))
	}
	return nil
}

func (d *Device) constant(c lower.Const) (*buffer, error) {
	d.constMu.Lock()
	defer d.constMu.Unlock()
	d.mu.Lock()
	have := d.consts[c.Key]
	d.mu.Unlock()
	if have != nil {
		return have, nil
	}
	data := c.Make()
	if int64(len(data)) != c.Bytes {
		return nil, fmt.Errorf("%d bytes, want %d", len(data), c.Bytes)
	}
	buf, err := d.alloc(c.Bytes)
	if err != nil {
		return nil, err
	}
	d.serviceMu.Lock()
	defer d.serviceMu.Unlock()
	err = errors.Join(d.service.CopyIn(npu.Ptr{Buf: buf}, data), d.service.Sync(context.Background()))
	if err != nil {
		return nil, errors.Join(err, buf.Free())
	}
	d.mu.Lock()
	d.consts[c.Key] = buf
	d.mu.Unlock()
	return buf, nil
}

// prepare makes the calls of a launch. It runs on the thread.
func (l *launch) prepare(b *binding) error {
	var calls []lower.Call
	for _, c := range l.kernel.prog.Calls {
		if holds(c.If, b) {
			calls = append(calls, c)
		}
	}
	l.look(b)
	if err := l.build(calls, b.at); err != nil {
		return err
	}
	l.seq.Workspace(b.ws, l.kernel.workspace)
	for i, c := range calls {
		var n int64
		var err error
		if c.OfHost() {
			n, err = l.seq.Measure(i)
		} else {
			n, _, err = l.seq.Prepare(i)
		}
		if err != nil {
			return l.explain(i, err)
		}
		if n > l.kernel.workspace {
			return l.explain(i, fmt.Errorf("it wants a workspace of %d bytes here and of at most %d when it was compiled", n, l.kernel.workspace))
		}
	}
	return nil
}

// holds reports whether a call is part of the launch.
func holds(c *lower.Cond, b *binding) bool {
	if c == nil {
		return true
	}
	at := b.at(c.Mem)
	return slices.ContainsFunc(c.Others, func(o lower.Ref) bool { return b.at(o) == at }) == c.Shared
}

// build makes the sequence with its objects, at the addresses that at gives.
func (l *launch) build(calls []lower.Call, at func(lower.Ref) cann.Addr) error {
	l.seq = l.kernel.dev.lib.NewSequence(len(calls))
	if l.kernel.dev.opts.fresh {
		l.seq.Fresh()
	}
	for _, c := range calls {
		args := make([]cann.Arg, len(c.Args))
		for i, a := range c.Args {
			v, err := l.arg(a, at)
			if err != nil {
				return fmt.Errorf("%s: argument %d of %s: %w", l.kernel.label, i, l.kernel.signature(c.Op), err)
			}
			args[i] = v
		}
		if err := l.seq.Add(c.Op, args); err != nil {
			return fmt.Errorf("%s: %w", l.kernel.label, err)
		}
		l.hosted(c)
	}
	return nil
}

// arg makes an argument. Objects are the launch's from then on.
func (l *launch) arg(a lower.Arg, at func(lower.Ref) cann.Addr) (cann.Arg, error) {
	if a.Null {
		return cann.Arg{}, nil
	}
	lib := l.kernel.dev.lib
	var o cann.Object
	var err error
	switch a.Code {
	case "T", "To":
		o, err = lib.Tensor(view(a.Tensor, at))
	case "TL", "TLo":
		views := make([]cann.View, len(a.List))
		for i, t := range a.List {
			views[i] = view(t, at)
		}
		o, err = lib.Tensors(views)
	case "S":
		o, err = lib.Scalar(int32(a.Scalar.DType), a.Scalar.Value)
	case "IA":
		o, err = lib.Ints(a.Ints)
	case "FA":
		o, err = lib.Floats(a.Floats)
	case "BA":
		o, err = lib.Bools(a.Bools)
	case "str":
		o = lib.Text(a.Str)
	default:
		return cann.Arg{Int: a.Int, Float: a.Float}, nil
	}
	if err != nil {
		return cann.Arg{}, err
	}
	l.objects = append(l.objects, o)
	return cann.Arg{Object: o}, nil
}

func view(t lower.Tensor, at func(lower.Ref) cann.Addr) cann.View {
	return cann.View{DType: int32(t.DType), Format: int32(t.Format), Dims: t.Dims, Strides: t.Strides, Offset: t.Offset, Storage: t.Storage, Base: at(t.Base)}
}

// drop destroys executors and then what they refer to. It runs on the thread.
func (l *launch) drop() error {
	l.gone = true
	for _, m := range l.mirrors {
		l.kernel.dev.unmirror(m)
	}
	l.mirrors = nil
	if l.seq == nil {
		return nil
	}
	errs := []error{l.seq.Close()}
	for _, o := range l.objects {
		errs = append(errs, l.kernel.dev.lib.Destroy(o))
	}
	l.objects, l.keep = nil, nil
	return errors.Join(errs...)
}
