//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"fmt"
	"unsafe"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/cpu/dnnl"
	"github.com/gotrain/gotrain/npu/cpu/kern"
)

// winogradMaker computes 3x3 convolutions of stride 1 in f32 and bf16 by Winograd's algorithm (arXiv 1509.09308), where the op names it: the transforms are
// kernels of package kern, the products are the library's. docs/benchmarks.md has the gain by shape.
//
// All three kinds read and write weights in the order [3 3 In Out]. They are transformed in each launch, next to the products that use them: a plan that kept
// the transformed weights between the passes would hold four times the weights, and the data gradient needs them transposed and turned around anyway.
var winogradMaker = maker{choose: chooseWinograd, build: buildWinograd}

// maxWinogradScratch limits the workspace in bytes.
const maxWinogradScratch = 256 << 20

var _ npu.Algorithmic = (*Device)(nil)

// winograd returns the convolution for a size of tile, or errNotMine.
func (d *Device) winograd(c conv, f winogradForm) (*kern.Winograd, error) {
	k, pad := c.w.Shape, c.win.Pad
	plain := c.groups == 1 && k[2] == 3 && k[3] == 3 && c.win.Stride == [2]int{1, 1} && c.win.Dilation == [2]int{1, 1}
	if d.lib == nil || !plain || max(pad[0], pad[1], pad[2], pad[3]) > 2 || min(c.x.Shape.Elems(), c.y.Shape.Elems(), c.w.Shape.Elems()) == 0 {
		return nil, errNotMine
	}
	if f.tile == 0 || !d.winogradTypes(c, f) {
		return nil, errNotMine
	}
	factors := npu.F32
	if f.narrow {
		factors = c.x.DType
	}
	w := &kern.Winograd{Tile: f.tile, Factors: factors, In: k[1], Out: k[0], X: c.x, Y: c.y, Top: pad[0], Left: pad[1], Relu: c.relu, Threads: d.threads,
		Scratch: maxWinogradScratch}
	switch c.kind {
	case npu.Conv2DBwdData:
		w.In, w.Out, w.X, w.Y, w.Top, w.Left, w.Flip = k[0], k[1], c.y, c.x, 2-pad[0], 2-pad[1], true
	case npu.Conv2DBwdWeights:
		w.Grad = true
	}
	if err := w.Plan(); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotMine, err)
	}
	return w, nil
}

// winogradTypes reports whether there are kernels for the types: all float32, or all bf16 but the weight gradient. The processor must have bf16 products where
// they are wanted; small tiles would hardly save anything without.
func (d *Device) winogradTypes(c conv, f winogradForm) bool {
	t := c.x.DType
	switch {
	case c.y.DType != t:
		return false
	case c.kind == npu.Conv2DBwdWeights && c.w.DType != npu.F32, c.kind != npu.Conv2DBwdWeights && c.w.DType != t:
		return false
	}
	return t == npu.F32 && f != winogradForms[npu.Winograd4BF16] || t == npu.BF16 && (!f.narrow || d.nativeBF16())
}

// winogradForm is the size of tiles, and whether products have factors of the pictures' type even if that is bf16.
type winogradForm struct {
	tile   int
	narrow bool
}

var winogradForms = map[string]winogradForm{npu.Winograd4: {4, false}, npu.Winograd4BF16: {4, true}, npu.Winograd2: {2, true}}

// winogradLayouts are the layouts of x and y.
func (d *Device) winogradLayouts(c conv) (x, y npu.Layout) {
	l := d.convLayouts(c)[0]
	for i := range l {
		if l[i] == npu.Plain {
			l[i] = NHWC
		}
	}
	return l[0], l[1]
}

// winogradWeights is the layout of weights: 3 3 In Out.
func (d *Device) winogradWeights(c conv) (npu.Layout, error) {
	in, out := int64(c.w.Shape[1]), int64(c.w.Shape[0])
	m, err := d.lib.Strided(dnnlTypes[c.w.DType], dims(c.w.Shape), []int64{1, out, 3 * in * out, in * out})
	if err != nil {
		return "", err
	}
	return d.weightLayout(c.w, m, 1)
}

// Algorithms implements npu.Algorithmic.
func (d *Device) Algorithms(op npu.Op) []string {
	list := []string{npu.Direct}
	switch op.Kind {
	case npu.Conv2D, npu.Conv2DBwdData, npu.Conv2DBwdWeights:
	default:
		return list
	}
	c := d.parseConv(op)
	c.x.Layout, c.y.Layout = d.winogradLayouts(c)
	for _, name := range []string{npu.Winograd4, npu.Winograd2, npu.Winograd4BF16} {
		if _, err := d.winograd(c, winogradForms[name]); err == nil {
			list = append(list, name)
		}
	}
	if _, err := d.pairs(c); err == nil {
		list = append(list, npu.Pairs)
	}
	return list
}

// Form implements tune.Formed. It tells how a convolution by Winograd's algorithm divides its work, which changes with the number of pictures. It is "" for
// the library's kernels.
func (d *Device) Form(op npu.Op) string {
	form, ok := winogradForms[op.Attrs.Str(npu.AttrAlgorithm)]
	if !ok {
		return ""
	}
	c := d.parseConv(op)
	c.x.Layout, c.y.Layout = d.winogradLayouts(c)
	w, err := d.winograd(c, form)
	if err != nil {
		return ""
	}
	return w.Form()
}

func chooseWinograd(d *Device, op npu.Op) (npu.Op, error) {
	c := d.parseConv(op)
	lx, ly := d.winogradLayouts(c)
	lw, err := d.winogradWeights(c)
	if err != nil {
		return op, err
	}
	setLayouts(op, lx, lw, ly)
	return op, nil
}

func buildWinograd(d *Device, op npu.Op) (body, error) {
	c := d.parseConv(op)
	if l, err := d.winogradWeights(c); err != nil || l != c.w.Layout {
		return nil, errNotMine
	}
	w, err := d.winograd(c, winogradForms[op.Attrs.Str(npu.AttrAlgorithm)])
	if err != nil {
		return nil, err
	}
	b := &winogradBody{call: w.Call(), parts: w.Parts(), list: w.Products(), prims: map[kern.WinogradProduct]*prim{}}
	b.args = []int{0, 1, 2, 3}
	switch {
	case op.Kind == npu.Conv2DBwdData:
		b.args = []int{0, 1, -1, 2}
	case op.Kind == npu.Conv2D && !c.bias:
		b.args = []int{0, 1, -1, 2}
	case op.Kind == npu.Conv2DBwdWeights && !c.bias:
		b.args = []int{0, 1, 2, -1}
	}
	threads := d.threads
	if w.Parts() > 1 { // products run inside the threads of the command
		threads = 1
	}
	for _, p := range b.list {
		if p.M == 0 {
			continue
		}
		if b.prims[shapeOf(p)] == nil {
			if b.prims[shapeOf(p)], err = d.winogradProduct(p, dnnlTypes[w.Factors], threads); err != nil {
				return nil, err
			}
		}
		b.scratch = max(b.scratch, b.prims[shapeOf(p)].workspace())
	}
	return b, nil
}

// shapeOf is a product without its place.
func shapeOf(p kern.WinogradProduct) kern.WinogradProduct {
	p.A, p.B, p.C = 0, 0, 0
	return p
}

func (d *Device) winogradProduct(p kern.WinogradProduct, t dnnl.DType, threads int) (*prim, error) {
	n, m, k, cols := int64(p.Batch), int64(p.M), int64(p.K), int64(p.N)
	strides := []int64{m * k, k, 1}
	if p.TransA {
		strides = []int64{m * k, 1, m}
	}
	a, err := d.lib.Strided(t, []int64{n, m, k}, strides)
	if err != nil {
		return nil, err
	}
	b, err := d.lib.Strided(t, []int64{n, k, cols}, nil)
	if err != nil {
		return nil, err
	}
	y, err := d.lib.Strided(dnnl.F32, []int64{n, m, cols}, nil)
	if err != nil {
		return nil, err
	}
	make := func() (*dnnl.PD, error) { return d.lib.MatMul(a, b, nil, y, threads) }
	if p.Add {
		make = func() (*dnnl.PD, error) { return d.lib.MatMulAdd(a, b, y, threads) }
	}
	pd, err := make()
	if err != nil {
		return nil, notMine(err)
	}
	return newPrim(pd, primArg{dnnl.ArgSrc, a}, primArg{dnnl.ArgWeights, b}, primArg{dnnl.ArgDst, y})
}

// winogradBody is a command of package kern with the products that it runs.
type winogradBody struct {
	call    *kern.Call
	args    []int // the op's arguments in the command's order, -1: none
	parts   int
	list    []kern.WinogradProduct
	prims   map[kern.WinogradProduct]*prim // by shape
	scratch int64                          // of a product, behind the command's workspace, for each that may run at a time
}

func (b *winogradBody) impl() string {
	name := b.call.Impl()
	for _, p := range b.list {
		if p.M > 0 {
			return name + "+dnnl:" + b.prims[shapeOf(p)].code.PD().Impl()
		}
	}
	return name
}

func (b *winogradBody) workspace() int64 { return b.call.Workspace() + int64(b.parts)*b.scratch }

func (b *winogradBody) bind(ptrs []unsafe.Pointer, ws unsafe.Pointer) (runner, error) {
	args := make([]unsafe.Pointer, len(b.args))
	for i, from := range b.args {
		if from >= 0 && from < len(ptrs) {
			args[i] = ptrs[from]
		}
	}
	cmd, err := b.call.Bind(args, ws, 0)
	if err != nil {
		return nil, err
	}
	r := &winogradRun{kernRun: kernRun{cmd}}
	for i, p := range b.list {
		if p.M == 0 {
			continue
		}
		scratch := unsafe.Add(ws, b.call.Workspace()+int64(i*b.parts/len(b.list))*b.scratch)
		x, err := b.prims[shapeOf(p)].bind([]unsafe.Pointer{unsafe.Add(ws, p.A), unsafe.Add(ws, p.B), unsafe.Add(ws, p.C)}, scratch)
		if err != nil {
			return nil, err
		}
		r.products = append(r.products, x)
		fn, self := x.command()
		cmd.SetProduct(i, fn, self)
	}
	return r, nil
}

// winogradRun keeps the products of a command.
type winogradRun struct {
	kernRun
	products []runner
}
