package nputest

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/kind"
)

// deviceCall is one call on the device.
type deviceCall struct {
	*run
	call Call
	want [][]byte // by tensor

	op      npu.Op // with the layouts that the device chose
	args    []operand
	work    span
	kernels []npu.Kernel // to be closed
	main    npu.Launch
}

// operand is an argument in the arena.
type operand struct {
	name    string
	tensor  int
	desc    npu.Desc // as the kernel wants it
	at      span
	plain   span       // where the plain form lies; at itself where desc is plain
	convert npu.Kernel // between plain and desc; nil where desc is plain
	work    span       // the workspace of convert
	out     bool
	unused  bool // bound to nil
	inPlace bool // an output in the memory of an input
	opaque  bool
}

func (d *deviceCall) close() error {
	var errs []error
	for _, k := range d.kernels {
		errs = append(errs, k.Close())
	}
	return errors.Join(errs...)
}

func (d *deviceCall) do(op npu.Op) error {
	if err := d.prepare(op); err != nil {
		return err
	}
	if err := d.bind(); err != nil {
		return err
	}
	before, err := d.fill()
	if err != nil {
		return err
	}
	first, err := d.once(before)
	if err != nil {
		return err
	}
	if err := d.compare(first); err != nil {
		return err
	}
	// A bound launch can be enqueued any number of times; package ddp relies on equal bits.
	copy(d.arena.image, before)
	if err := d.arena.up(d.ctx); err != nil {
		return err
	}
	second, err := d.once(before)
	if err != nil {
		return fmt.Errorf("second run: %w", err)
	}
	if d.o.Loose {
		return d.compare(second)
	}
	for i, b := range second {
		if !bytes.Equal(b, first[i]) {
			return fmt.Errorf("%s has other bits in a second run", d.args[i].name)
		}
	}
	return nil
}

// prepare chooses layouts, compiles, and lays the arena out.
func (d *deviceCall) prepare(op npu.Op) (err error) {
	for j, t := range d.call.In {
		if k, ok := d.opaque[t]; ok {
			op.In[j] = k.desc
		}
	}
	if d.op, err = d.arena.dev.Choose(op); err != nil {
		return err
	}
	if len(d.op.In) != len(op.In) || len(d.op.Out) != len(op.Out) {
		return fmt.Errorf("choose made another op of it: %s", d.op)
	}
	k, err := d.arena.dev.Compile(d.op)
	if err != nil {
		return err
	}
	d.kernels = append(d.kernels, k)
	d.r.Impl = append(d.r.Impl, k.Impl())
	d.arena.used = 0
	for j, t := range d.call.In {
		x := operand{name: fmt.Sprint("input ", j), tensor: t, desc: d.op.In[j]}
		if kept, ok := d.opaque[t]; ok {
			if x.opaque = true; kept.desc.Layout != x.desc.Layout {
				return fmt.Errorf("%s is wanted in the layout %q, but was made in %q", x.name, x.desc.Layout, kept.desc.Layout)
			}
		}
		if err := d.add(x); err != nil {
			return err
		}
	}
	for j, t := range d.call.Out {
		x := operand{name: fmt.Sprint("output ", j), tensor: t, desc: d.op.Out[j], out: true}
		x.opaque = x.desc.Layout != npu.Plain && saves(op, j)
		for _, n := range d.call.Nil {
			x.unused = x.unused || n == j
		}
		for _, p := range d.call.InPlace {
			if in := d.args[p[1]]; p[0] == j && in.desc.Equal(x.desc) {
				x.inPlace, x.at, x.plain = true, in.at, in.plain
			}
		}
		if err := d.add(x); err != nil {
			return err
		}
	}
	d.work = d.arena.take(k.Workspace())
	return d.arena.reserve()
}

// saves reports whether output j is one that a device may keep in a form of its own.
func saves(op npu.Op, j int) bool {
	k, err := kind.Lookup(op.Kind)
	return err == nil && k.Saves(op.Attrs, j)
}

// add places an argument, with the conversion that it needs.
func (d *deviceCall) add(x operand) error {
	want := d.c.Tensors[x.tensor].Desc
	if !x.desc.Shape.Equal(want.Shape) || x.desc.DType != want.DType {
		return fmt.Errorf("choose made %s of %s, %s", x.desc, x.name, want)
	}
	if !x.inPlace {
		n, err := d.arena.dev.Bytes(x.desc)
		if err != nil {
			return err
		}
		x.at = d.arena.take(n)
		x.plain = x.at
	}
	if x.desc.Layout != npu.Plain && !x.opaque && !x.unused {
		plain := x.desc.With(npu.Plain)
		x.plain = d.arena.take(plain.PlainBytes())
		op := npu.Op{Kind: npu.Convert, In: []npu.Desc{plain}, Out: []npu.Desc{x.desc}}
		if x.out {
			op.In, op.Out = op.Out, op.In
		}
		var err error
		if x.convert, err = d.arena.dev.Compile(op); err != nil {
			return fmt.Errorf("%s: %w", x.name, err)
		}
		d.kernels = append(d.kernels, x.convert)
		x.work = d.arena.take(x.convert.Workspace())
	}
	d.args = append(d.args, x)
	return nil
}

func (d *deviceCall) bind() (err error) {
	var ptrs []npu.Ptr
	for _, x := range d.args {
		if x.unused {
			ptrs = append(ptrs, npu.Ptr{})
			continue
		}
		ptrs = append(ptrs, d.arena.ptr(x.at))
	}
	d.main, err = d.kernels[0].Bind(ptrs, d.arena.ptr(d.work))
	return err
}

// fill brings inputs to the device and NaN to the rest, and returns what the arena holds then.
func (d *deviceCall) fill() (before []byte, err error) {
	a := d.arena
	a.spoil(span{0, a.used})
	for _, x := range d.args {
		switch {
		case x.opaque && !x.out:
			copy(a.bytes(x.at), d.run.opaque[x.tensor].data)
		case !x.out || !x.inPlace && d.data[x.tensor] != nil: // a result that the call adds to
			copy(a.bytes(x.plain), d.data[x.tensor])
		}
	}
	if err := a.up(d.ctx); err != nil {
		return nil, err
	}
	for _, x := range d.args {
		if x.convert != nil && !x.out {
			if err := d.converted(x); err != nil {
				return nil, err
			}
		}
	}
	if err := a.down(d.ctx); err != nil {
		return nil, err
	}
	return bytes.Clone(a.image[:a.used]), nil
}

// converted runs the conversion of an argument.
func (d *deviceCall) converted(x operand) error {
	from, to := x.plain, x.at
	if x.out {
		from, to = to, from
	}
	l, err := x.convert.Bind([]npu.Ptr{d.arena.ptr(from), d.arena.ptr(to)}, d.arena.ptr(x.work))
	if err == nil {
		err = d.arena.launch(d.ctx, l)
	}
	if err != nil {
		return fmt.Errorf("%s: convert: %w", x.name, err)
	}
	return nil
}

// once runs the kernel, checks what it wrote to, and returns the results by argument: plain, or as they are if they are opaque.
func (d *deviceCall) once(before []byte) (results map[int][]byte, err error) {
	a := d.arena
	if err := a.launch(d.ctx, d.main); err != nil {
		return nil, err
	}
	if err := a.down(d.ctx); err != nil {
		return nil, err
	}
	mine, names := []span{d.work}, map[string]span{"the workspace": d.work}
	for _, x := range d.args {
		if names[x.name] = x.at; x.out && !x.unused {
			mine = append(mine, x.at)
		}
	}
	if at := a.changed(before, mine); at >= 0 {
		return nil, fmt.Errorf("%s was written to, byte %d of the arena", where(at, names), at)
	}
	results = map[int][]byte{}
	converts := false
	for i, x := range d.args {
		if !x.out || x.unused {
			continue
		}
		if x.convert == nil {
			results[i] = bytes.Clone(a.bytes(x.at))
			continue
		}
		if err := d.converted(x); err != nil {
			return nil, err
		}
		converts = true
	}
	if !converts {
		return results, nil
	}
	if err := a.down(d.ctx); err != nil {
		return nil, err
	}
	for i, x := range d.args {
		if x.out && x.convert != nil {
			results[i] = bytes.Clone(a.bytes(x.plain))
		}
	}
	return results, nil
}

// compare judges the results, and keeps those that only the device has.
func (d *deviceCall) compare(results map[int][]byte) error {
	if d.want == nil {
		return nil
	}
	for i, x := range d.args {
		got, ok := results[i]
		if !ok {
			continue
		}
		t := d.c.Tensors[x.tensor]
		if x.opaque {
			d.run.opaque[x.tensor] = kept{x.desc, got}
			continue
		}
		if t.Free || d.want[x.tensor] == nil {
			if t.Free { // the device's own answer goes on
				d.want[x.tensor] = got
			}
			continue
		}
		j := i - len(d.op.In)
		bound := Bound(d.op, j, d.c.DType)
		if d.o.Bound != nil {
			bound *= d.o.Bound(d.op, j)
		}
		worst, err := difference(t, got, d.want[x.tensor], bound)
		d.r.Worst = max(d.r.Worst, worst)
		if err != nil {
			return fmt.Errorf("%s by %s, %s: %w", d.op, d.kernels[0].Impl(), x.name, err)
		}
	}
	return nil
}
