//go:build cgo && linux

package acl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/acl/abi"
	"github.com/gotrain/gotrain/npu/acl/cann"
	"github.com/gotrain/gotrain/npu/acl/lower"
)

// compiled is an op as a program, with what CANN said about it. Kernels of equal ops share it.
type compiled struct {
	prog      *lower.Program
	label     string
	bytes     []int64 // of each argument
	workspace int64   // the most that a call of it wants
}

// kernel implements npu.Kernel.
type kernel struct {
	*compiled
	dev *Device
	op  npu.Op

	mu       sync.Mutex
	launches []*launch
}

var _ npu.Kernel = (*kernel)(nil)

func (k *kernel) Op() npu.Op { return k.op }

// Impl names the operators, such as "aclnn:Mm+Cast".
func (k *kernel) Impl() string {
	var l []string
	for i, c := range k.prog.Calls {
		if i == 3 && len(k.prog.Calls) > 4 {
			l = append(l, fmt.Sprintf("%d more", len(k.prog.Calls)-i))
			break
		}
		l = append(l, c.Op)
	}
	return "aclnn:" + strings.Join(l, "+")
}

// Workspace is the memory of temporaries and, behind it, of the operators' own workspace.
func (k *kernel) Workspace() int64 { return k.prog.Scratch + k.workspace }

// Has reports whether the kind with these attributes can be compiled here.
func (d *Device) Has(kind string, attrs npu.Attrs) bool { return lower.Has(kind, attrs, d.caps) }

// Choose returns the op with plain layouts, but for a few that only this device understands.
func (d *Device) Choose(op npu.Op) (npu.Op, error) {
	if err := d.alive(); err != nil {
		return npu.Op{}, err
	}
	got, err := lower.Choose(op, d.caps)
	if err != nil {
		return npu.Op{}, fmt.Errorf("%s: choose: %w", d.name, err)
	}
	return got, nil
}

// Bytes is the size of a tensor.
func (d *Device) Bytes(t npu.Desc) (int64, error) {
	n, err := lower.Bytes(t)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", d.name, err)
	}
	return n, nil
}

// Compile lowers the op and asks CANN for the workspace of each call.
func (d *Device) Compile(op npu.Op) (npu.Kernel, error) {
	if err := d.alive(); err != nil {
		return nil, err
	}
	op = op.Clone()
	k := &kernel{dev: d, op: op}
	label := op.String()
	d.mu.Lock()
	k.compiled = d.compiled[label]
	d.mu.Unlock()
	if k.compiled == nil {
		c, err := d.prepare(op, label)
		if err != nil {
			return nil, fmt.Errorf("%s: compile: %w", d.name, err)
		}
		k.compiled = c
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, fmt.Errorf("%s: %w", d.name, errClosed)
	}
	d.compiled[label] = k.compiled
	d.kernels[k] = true
	return k, nil
}

func (d *Device) prepare(op npu.Op, label string) (*compiled, error) {
	prog, err := lower.Lower(op, d.caps)
	if err != nil {
		return nil, err
	}
	c := &compiled{prog: prog, label: label}
	for i := range len(op.In) + len(op.Out) {
		n, err := lower.Bytes(desc(op, i))
		if err != nil {
			return nil, fmt.Errorf("%s: argument %d: %w", label, i, err)
		}
		c.bytes = append(c.bytes, n)
	}
	err = d.thread.do(context.Background(), func() (err error) {
		c.workspace, err = d.measure(c, len(op.In))
		return err
	})
	return c, err
}

// measure calls the first phase of each call, at addresses that stand for those of Bind. It runs on the thread.
func (d *Device) measure(c *compiled, inputs int) (int64, error) {
	// Apart from each other as separate buffers are; the first phase only describes the work.
	const start, apart = 1 << 44, 1 << 36
	at := func(r lower.Ref) cann.Addr {
		n := [...]int{lower.In: 0, lower.Out: inputs, lower.Temp: 256, lower.Fixed: 512}[r.Space] + r.Index
		return start + cann.Addr(n)*apart
	}
	l := &launch{kernel: &kernel{compiled: c, dev: d}}
	err := l.build(c.prog.Calls, at)
	var most int64
	for i := 0; err == nil && i < l.seq.Len(); i++ {
		var n int64
		if n, _, err = l.seq.Prepare(i); err != nil {
			err = l.explain(i, err)
		}
		most = max(most, n)
	}
	return roundUp(most, alignment), errors.Join(err, l.drop())
}

// desc is the description of argument i: inputs, then outputs.
func desc(op npu.Op, i int) npu.Desc {
	if i < len(op.In) {
		return op.In[i]
	}
	return op.Out[i-len(op.In)]
}

// signature is a call of C with the names of its arguments, to which CANN's texts refer.
func (k *kernel) signature(name string) string {
	row, ok := abi.Find(name)
	if !ok {
		return "aclnn" + name
	}
	var l []string
	for _, a := range row.Args {
		l = append(l, a.Name)
	}
	return "aclnn" + name + "(" + strings.Join(l, ", ") + ")"
}

// Close destroys the executors of all launches that were bound; idempotent.
func (k *kernel) Close() error {
	k.dev.mu.Lock()
	delete(k.dev.kernels, k)
	k.dev.mu.Unlock()
	err := k.dev.thread.clean(k.drop)
	if errors.Is(err, errClosed) {
		return nil
	}
	if err != nil {
		return k.dev.wrap("close of "+k.label, err)
	}
	return nil
}

// drop runs on the thread.
func (k *kernel) drop() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	var errs []error
	for _, l := range k.launches {
		errs = append(errs, l.drop())
	}
	k.launches = nil
	return errors.Join(errs...)
}
