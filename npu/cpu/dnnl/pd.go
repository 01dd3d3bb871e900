//go:build cgo && linux

package dnnl

// #include "lib.h"
import "C"

import (
	"runtime"
	"strings"
	"unsafe"
)

// What selects an argument's descriptor in PD.MD.
type What int

// The descriptors that a primitive has.
const (
	SrcMD         What = 129
	DiffSrcMD     What = 130
	WeightsMD     What = 131 // index 1 is the bias
	DiffWeightsMD What = 132
	DstMD         What = 133
	DiffDstMD     What = 134
	WorkspaceMD   What = 135
	ScratchpadMD  What = 136
)

// Argument numbers for Bind.
const (
	ArgSrc         = 1
	ArgDst         = 17
	ArgWeights     = 33
	ArgBias        = 41
	ArgWorkspace   = 64
	ArgScratchpad  = 80
	ArgDiffSrc     = 129
	ArgDiffDst     = 145
	ArgDiffWeights = 161
	ArgDiffBias    = 169
)

// Pooling algorithms.
const (
	PoolMax        = 0x1ff
	PoolAvgInclude = 0x2ff
	PoolAvgExclude = 0x3ff
)

// PD is the library's choice of an implementation. It is freed by the garbage collector.
type PD struct {
	lib     *Lib
	c       unsafe.Pointer
	threads int
	keep    any // referenced from C
}

// Window is the geometry of a convolution or pooling, each as {h, w}. A dilation of 1 means none.
type Window struct {
	Kernel, Stride, Dilation [2]int
	Pad                      [4]int // top, left, bottom, right
}

func (w Window) fill(s *C.gt_spec) {
	for i := range 2 {
		s.kernel[i] = C.int64_t(w.Kernel[i])
		s.strides[i] = C.int64_t(w.Stride[i])
		s.dilates[i] = C.int64_t(max(w.Dilation[i], 1) - 1)
		s.pad_l[i] = C.int64_t(w.Pad[i])
		s.pad_r[i] = C.int64_t(w.Pad[2+i])
	}
}

const (
	propTraining  = 64
	propInference = 96
	algDirect     = 1
	algSoftmax    = 0x30000
	algLogSoftmax = 0x30001
)

func (l *Lib) create(what string, s *C.gt_spec, threads int, hint *PD, mds ...*MD) (*PD, error) {
	s.threads = C.int(threads)
	if hint != nil {
		s.hint = hint.c
	}
	pd := &PD{lib: l, threads: threads, keep: hint}
	st := C.gt_pd(l.c, s, &pd.c)
	runtime.KeepAlive(mds)
	runtime.KeepAlive(hint)
	if st != 0 {
		return nil, statusErr(what, st)
	}
	runtime.SetFinalizer(pd, func(p *PD) { C.gt_pd_free(p.lib.c, p.c) })
	return pd, nil
}

func (m *MD) ptr() unsafe.Pointer {
	if m == nil {
		return nil
	}
	return m.c
}

// Conv describes a convolution: y = x * w (+ bias), then ReLU if requested. x, w, y may be Any. With groups, w has five
// dimensions, groups first. For the gradients X and Y, or W and Bias, describe the gradients.
type Conv struct {
	X, W, Bias, Y *MD
	Window
	Relu    bool
	Threads int
}

func (c Conv) spec(kind C.int) *C.gt_spec {
	s := &C.gt_spec{kind: kind, alg: algDirect, prop: propTraining, src: c.X.ptr(), weights: c.W.ptr(), bias: c.Bias.ptr(), dst: c.Y.ptr()}
	c.Window.fill(s)
	return s
}

// ConvForward computes y from x and w.
func (l *Lib) ConvForward(c Conv) (*PD, error) {
	s := c.spec(C.GT_CONV_FWD)
	if c.Relu {
		s.relu = 1
	}
	return l.create("convolution", s, c.Threads, nil, c.X, c.W, c.Bias, c.Y)
}

// ConvBackwardData computes the gradient of x from that of y and from w. hint is a forward convolution of the same shape.
func (l *Lib) ConvBackwardData(c Conv, hint *PD) (*PD, error) {
	return l.create("convolution gradient by data", c.spec(C.GT_CONV_BWD_DATA), c.Threads, hint, c.X, c.W, c.Y)
}

// ConvBackwardWeights computes the gradients of w (and bias) from x and the gradient of y.
func (l *Lib) ConvBackwardWeights(c Conv, hint *PD) (*PD, error) {
	return l.create("convolution gradient by weights", c.spec(C.GT_CONV_BWD_WEIGHTS), c.Threads, hint, c.X, c.W, c.Bias, c.Y)
}

// Pool describes pooling of x to y; for the gradient, X and Y are the gradients.
type Pool struct {
	X, Y *MD
	Window
	Alg       int  // PoolMax, PoolAvgInclude, PoolAvgExclude
	Inference bool // maximum without a workspace
	Threads   int
}

func (p Pool) spec(kind C.int) *C.gt_spec {
	s := &C.gt_spec{kind: kind, alg: C.int(p.Alg), prop: propTraining, src: p.X.ptr(), dst: p.Y.ptr()}
	if p.Inference {
		s.prop = propInference
	}
	p.Window.fill(s)
	return s
}

// PoolForward computes y from x.
func (l *Lib) PoolForward(p Pool) (*PD, error) {
	return l.create("pooling", p.spec(C.GT_POOL_FWD), p.Threads, nil, p.X, p.Y)
}

// PoolBackward computes the gradient of x from that of y and the forward's workspace.
func (l *Lib) PoolBackward(p Pool, hint *PD) (*PD, error) {
	return l.create("pooling gradient", p.spec(C.GT_POOL_BWD), p.Threads, hint, p.X, p.Y)
}

// Softmax describes softmax, or its logarithm, along one axis.
type Softmax struct {
	X, Y    *MD // for the gradient: dx, y
	DY      *MD // gradient only
	Axis    int
	Log     bool
	Threads int
}

func (s Softmax) alg() C.int {
	if s.Log {
		return algLogSoftmax
	}
	return algSoftmax
}

// SoftmaxForward computes y from x.
func (l *Lib) SoftmaxForward(s Softmax) (*PD, error) {
	sp := &C.gt_spec{kind: C.GT_SOFTMAX_FWD, alg: s.alg(), prop: propTraining, src: s.X.ptr(), dst: s.Y.ptr(), axis: C.int(s.Axis)}
	return l.create("softmax", sp, s.Threads, nil, s.X, s.Y)
}

// SoftmaxBackward computes dx from y and dy.
func (l *Lib) SoftmaxBackward(s Softmax, hint *PD) (*PD, error) {
	sp := &C.gt_spec{kind: C.GT_SOFTMAX_BWD, alg: s.alg(), src: s.X.ptr(), weights: s.DY.ptr(), dst: s.Y.ptr(), axis: C.int(s.Axis)}
	return l.create("softmax gradient", sp, s.Threads, hint, s.X, s.Y, s.DY)
}

// MatMul computes y = a b (+ bias); strides of a and b express transposes.
func (l *Lib) MatMul(a, b, bias, y *MD, threads int) (*PD, error) {
	return l.matmul(&C.gt_spec{kind: C.GT_MATMUL, src: a.ptr(), weights: b.ptr(), bias: bias.ptr(), dst: y.ptr()}, threads, a, b, bias, y)
}

// MatMulAdd computes y += a b.
func (l *Lib) MatMulAdd(a, b, y *MD, threads int) (*PD, error) {
	return l.matmul(&C.gt_spec{kind: C.GT_MATMUL, src: a.ptr(), weights: b.ptr(), dst: y.ptr(), sum: 1}, threads, a, b, nil, y)
}

func (l *Lib) matmul(s *C.gt_spec, threads int, a, b, bias, y *MD) (*PD, error) {
	pd, err := l.create("matmul", s, threads, nil, a, b, bias, y)
	for err == nil && l.brokenMatMul(a, pd.Impl()) {
		s.skip++
		pd, err = l.create("matmul", s, threads, nil, a, b, bias, y)
	}
	return pd, err
}

// brokenMatMul detects a bug of 2.6: its AMX kernel for bf16 hits an illegal instruction, or returns wrong results, with an inner dimension of 63 (about one
// shape in ten; no other dimension from 1 to 700 is affected, nor is 3.2).
func (l *Lib) brokenMatMul(a *MD, impl string) bool {
	if l.Major() != 2 || !strings.Contains(impl, "amx") {
		return false
	}
	in, err := a.Info()
	return err != nil || in.Dims[len(in.Dims)-1] == 63
}

// Reorder copies from one layout or type to another.
func (l *Lib) Reorder(from, to *MD, threads int) (*PD, error) {
	s := &C.gt_spec{kind: C.GT_REORDER, src: from.ptr(), dst: to.ptr()}
	return l.create("reorder", s, threads, nil, from, to)
}

// Impl names the implementation, such as "brgconv:avx512_core_amx_bf16".
func (p *PD) Impl() string {
	defer runtime.KeepAlive(p)
	return C.GoString(C.gt_pd_impl(p.lib.c, p.c))
}

// MD is the implementation's descriptor of an argument, or nil if it does not have the argument.
func (p *PD) MD(what What, index int) *MD {
	m := p.lib.wrap(C.gt_pd_md(p.lib.c, p.c, C.int(what), C.int(index)))
	runtime.KeepAlive(p)
	if m == nil {
		return nil
	}
	if in, err := m.Info(); err != nil || len(in.Dims) == 0 {
		return nil
	}
	return m
}

// Scratch is the size in bytes of the scratch memory that an execution needs.
func (p *PD) Scratch() int64 {
	defer runtime.KeepAlive(p)
	return int64(C.gt_pd_scratch(p.lib.c, p.c))
}
