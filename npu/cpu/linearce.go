//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"fmt"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/cpu/dnnl"
	"github.com/gotrain/gotrain/npu/cpu/kern"
)

// linearCEMaker computes cross-entropy and its linear layer together, with the library's products on tiles of the logits: some rows by some classes, small
// enough for the second-level cache. [kern.LinearCE] documents the work on a tile.
//
// The forward kind keeps nothing of a tile. The gradient with known lse recomputes each tile. The combined kind, used in training, computes it once and
// keeps its exponentials, in the type of x, for all classes of the rows until their sum is known.
//
// Without bf16 instructions the products are float32: rows of x and a tile of w are copied to float32 before use, and the exponentials are kept in float32.
var linearCEMaker = maker{choose: chooseLinearCE, build: buildLinearCE, widens: true}

// Size of a tile, and the memory limit for the exponentials: more rows at a time mean fewer passes over dw, which is V·D.
var (
	ceRows = 1024
	ceCols = 512
)

func (c *linearCE) budget() int64 { return max(64<<20, int64(c.v)*int64(c.dim)) }

// linearCE builds the steps of an op.
type linearCE struct {
	d         *Device
	kind      string
	t         npu.DType // of x and w
	p         npu.DType // of the products' operands
	n, v, dim int
	ignore    int
	seq       *sequence
	products  map[string]*prim
	err       error
}

func (d *Device) parseLinearCE(op npu.Op) (*linearCE, error) {
	x, w := op.In[0], op.In[1]
	c := &linearCE{d: d, kind: op.Kind, t: x.DType, n: x.Shape[0], v: w.Shape[0], dim: x.Shape[1], ignore: op.Attrs.Int("ignore_index", -100)}
	if c.p = c.t; !d.nativeBF16() {
		c.p = npu.F32
	}
	if (c.t != npu.F32 && c.t != npu.BF16) || w.DType != c.t || c.n == 0 || c.v == 0 || c.dim == 0 {
		return nil, errNotMine
	}
	for i := 3; i < len(op.In)+len(op.Out); i++ {
		want := npu.F32
		if o, in := arg(op, i); !in && len(o.Shape) == 2 && i < len(op.In)+len(op.Out)-1 {
			want = c.t // dx
		}
		if o, _ := arg(op, i); o.DType != want {
			return nil, errNotMine
		}
	}
	c.seq, c.products = &sequence{}, map[string]*prim{}
	return c, nil
}

func chooseLinearCE(d *Device, op npu.Op) (npu.Op, error) {
	c, err := d.parseLinearCE(op)
	if err != nil {
		return op, err
	}
	// Both versions of the library have the products for every type that they compute in.
	if c.product("logits", min(c.n, ceRows), min(c.v, ceCols), false); c.err != nil {
		return op, c.err
	}
	return allPlain(op), nil
}

func buildLinearCE(d *Device, op npu.Op) (body, error) {
	if !isPlain(op) {
		return nil, errNotMine
	}
	c, err := d.parseLinearCE(op)
	if err != nil {
		return nil, err
	}
	c.kern(kern.LinearCE{Type: c.p, Rows: c.n, Ignore: c.ignore}.Labels(c.v), place{arg: 2})
	switch c.kind {
	case npu.LinearCrossEntropyBwd:
		c.backward()
	default:
		c.forward(c.kind == npu.LinearCrossEntropyGrad)
	}
	return c.seq, c.err
}

// room reserves intermediate memory.
func (c *linearCE) room(elems int, t npu.DType) place {
	p := place{arg: -1, off: c.seq.temp}
	c.seq.temp += (int64(elems)*int64(t.Size()) + 63) &^ 63
	return p
}

// at is the place of an element of the tensor that begins at p.
func at(p place, elem int, t npu.DType) place {
	if p.off >= 0 {
		p.off += int64(elem) * int64(t.Size())
	}
	return p
}

func (c *linearCE) kern(call *kern.Call, args ...place) {
	c.seq.steps = append(c.seq.steps, step{body: kernBody{call}, args: args})
}

// matmul adds a product as a step: "logits" x wᵀ, "dx" e w, "dw" eᵀ x.
func (c *linearCE) matmul(what string, rows, cols int, add bool, a, b, y place) {
	if p := c.product(what, rows, cols, add); c.err == nil {
		c.seq.steps = append(c.seq.steps, step{body: p, args: []place{a, b, y}})
	}
}

func (c *linearCE) product(what string, rows, cols int, add bool) *prim {
	key := fmt.Sprint(what, rows, cols, add)
	if c.err == nil && c.products[key] == nil {
		c.products[key], c.err = c.newProduct(what, int64(rows), int64(cols), add)
	}
	return c.products[key]
}

func (c *linearCE) newProduct(what string, rows, cols int64, add bool) (*prim, error) {
	dim := int64(c.dim)
	type matrix struct {
		t        dnnl.DType
		dims, st []int64
	}
	t := dnnlTypes[c.p]
	m := map[string][3]matrix{
		"logits": {{t, []int64{rows, dim}, nil}, {t, []int64{dim, cols}, []int64{1, dim}}, {dnnl.F32, []int64{rows, cols}, nil}},
		"dx":     {{t, []int64{rows, cols}, nil}, {t, []int64{cols, dim}, nil}, {dnnl.F32, []int64{rows, dim}, nil}},
		"dw":     {{t, []int64{cols, rows}, []int64{1, cols}}, {t, []int64{rows, dim}, nil}, {dnnl.F32, []int64{cols, dim}, nil}},
	}[what]
	var mds [3]*dnnl.MD
	for i, x := range m {
		var err error
		if mds[i], err = c.d.lib.Strided(x.t, x.dims, x.st); err != nil {
			return nil, err
		}
	}
	make := func() (*dnnl.PD, error) { return c.d.lib.MatMul(mds[0], mds[1], nil, mds[2], c.d.threads) }
	if add {
		make = func() (*dnnl.PD, error) { return c.d.lib.MatMulAdd(mds[0], mds[1], mds[2], c.d.threads) }
	}
	pd, err := make()
	if err != nil {
		return nil, notMine(err)
	}
	return newPrim(pd, primArg{dnnl.ArgSrc, mds[0]}, primArg{dnnl.ArgWeights, mds[1]}, primArg{dnnl.ArgDst, mds[2]})
}

// each calls fn for parts of at most size elements.
func each(n, size int, fn func(at, n int)) {
	for i := 0; i < n; i += size {
		fn(i, min(size, n-i))
	}
}

// forward adds the steps of loss, count and lse, and of the gradients if grad.
func (c *linearCE) forward(grad bool) {
	none := place{off: -1}
	rows, cols := min(ceRows, c.n), min(ceCols, c.v)
	x, w, labels, dloss, out := place{arg: 0}, place{arg: 1}, place{arg: 2}, none, 3
	if grad {
		dloss, out = place{arg: 3}, 4
		rows = min(rows, max(64, int(c.budget()/int64(c.v*c.p.Size()))/64*64))
	}
	lse, dx, dw := place{arg: out + 2}, place{arg: out + 3}, place{arg: out + 4}
	tile := c.room(rows*cols, npu.F32)
	top, sum, hitLogit, loss := c.room(rows, npu.F32), c.room(rows, npu.F64), c.room(rows, npu.F32), c.room(c.n, npu.F64)
	xw, ww := c.wideRoom(rows), c.wideRoom(cols)
	e, tops, acc, xs, whole, hit := none, none, none, none, none, none
	if grad {
		e, tops, acc = c.room(rows*c.v, c.p), c.room(rows*((c.v+cols-1)/cols), npu.F32), c.room(rows*c.dim, npu.F32)
		xs, whole, hit = c.room(rows*c.dim, c.p), c.room(rows, npu.F32), c.room(rows, npu.F32)
	}
	each(c.n, rows, func(r0, r int) {
		k := kern.LinearCE{Type: c.p, Rows: r, D: c.dim, Ignore: c.ignore}
		xr, lr := c.wide(x, r0, r, xw), at(labels, r0, npu.I32)
		each(c.v, cols, func(v0, n int) {
			wt, et, tt := c.wide(w, v0, n, ww), at(e, r*v0, c.p), at(tops, v0/cols*rows, npu.F32)
			c.matmul("logits", r, n, false, xr, wt, tile)
			c.kern(k.Tile(v0, n, v0 == 0), tile, lr, top, sum, hitLogit, et, tt, acc)
			if grad {
				c.matmul("dx", r, n, v0 > 0, et, wt, acc)
			}
		})
		c.kern(k.End(), lr, top, sum, hitLogit, dloss, at(lse, r0, npu.F32), at(loss, r0, npu.F64), whole, hit)
		if !grad {
			return
		}
		k.Type = c.t
		c.kern(k.DX(), acc, w, lr, whole, hit, at(dx, r0*c.dim, c.t))
		k.Type = c.p
		each(c.v, cols, func(v0, n int) {
			et, tt := at(e, r*v0, c.p), at(tops, v0/cols*rows, npu.F32)
			c.kern(k.Scale(), xr, tt, top, whole, xs)
			c.matmul("dw", r, n, r0 > 0, et, xs, at(dw, v0*c.dim, npu.F32))
		})
		c.kern(k.Hits(), xr, lr, hit, dw)
	})
	c.kern(kern.LinearCE{Type: c.p, Rows: c.n, Ignore: c.ignore}.Loss(), labels, loss, place{arg: out}, place{arg: out + 1})
}

// backward adds the steps of dx and dw with known lse.
func (c *linearCE) backward() {
	rows, cols := min(ceRows, c.n), min(ceCols, c.v)
	x, w, labels, lse, dloss, dx, dw := place{arg: 0}, place{arg: 1}, place{arg: 2}, place{arg: 3}, place{arg: 4}, place{arg: 5}, place{arg: 6}
	tile, e, acc := c.room(rows*cols, npu.F32), c.room(rows*cols, c.p), c.room(rows*c.dim, npu.F32)
	xw, ww := c.wideRoom(rows), c.wideRoom(cols)
	each(c.n, rows, func(r0, r int) {
		k := kern.LinearCE{Type: c.p, Rows: r, D: c.dim, Ignore: c.ignore}
		xr, lr := c.wide(x, r0, r, xw), at(labels, r0, npu.I32)
		each(c.v, cols, func(v0, n int) {
			wt := c.wide(w, v0, n, ww)
			c.matmul("logits", r, n, false, xr, wt, tile)
			c.kern(k.Prob(v0, n), tile, lr, at(lse, r0, npu.F32), dloss, e)
			c.matmul("dx", r, n, v0 > 0, e, wt, acc)
			c.matmul("dw", r, n, r0 > 0, e, xr, at(dw, v0*c.dim, npu.F32))
		})
		c.convert(npu.F32, acc, c.t, at(dx, r0*c.dim, c.t), r*c.dim)
	})
}

// wideRoom reserves memory for rows of x or w in the type of the products, if that differs from theirs.
func (c *linearCE) wideRoom(rows int) place {
	if c.p == c.t {
		return place{off: -1}
	}
	return c.room(rows*c.dim, c.p)
}

// wide is the place of n rows of x or w, from row r on, in the type of the products: temp, after a step that converts them, if the types differ.
func (c *linearCE) wide(m place, r, n int, temp place) place {
	m = at(m, r*c.dim, c.t)
	if c.p == c.t {
		return m
	}
	c.convert(c.t, m, c.p, temp, n*c.dim)
	return temp
}

// convert adds a step that converts elements to another type.
func (c *linearCE) convert(from npu.DType, a place, to npu.DType, b place, elems int) {
	call, ok := kern.Prepare(npu.Op{Kind: npu.Convert, In: []npu.Desc{npu.D(from, elems)}, Out: []npu.Desc{npu.D(to, elems)}})
	if !ok {
		c.err = errNotMine
		return
	}
	c.kern(call, a, b)
}
