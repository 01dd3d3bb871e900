//go:build cgo && linux

package dnnl

// #include "lib.h"
import "C"

import (
	"fmt"
	"runtime"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unsafe"
)

// DType is the library's number of an element type.
type DType int

// The element types that gotrain uses.
const (
	F16  DType = 1
	BF16 DType = 2
	F32  DType = 3
	S32  DType = 4
	S8   DType = 5
	U8   DType = 6
)

// MD describes a tensor's memory. It is immutable, and freed by the garbage collector.
type MD struct {
	lib *Lib
	c   unsafe.Pointer
}

func (l *Lib) wrap(p unsafe.Pointer) *MD {
	if p == nil {
		return nil
	}
	m := &MD{lib: l, c: p}
	runtime.SetFinalizer(m, func(m *MD) { C.gt_md_free(m.lib.c, m.c) })
	return m
}

func ptr(v []int64) *C.int64_t { return (*C.int64_t)(unsafe.SliceData(v)) }

func checkDims(dims []int64) error {
	if len(dims) == 0 || len(dims) > C.GT_DIMS {
		return fmt.Errorf("dnnl: a tensor has %d dimensions (1 to %d are supported)", len(dims), C.GT_DIMS)
	}
	return nil
}

// Strided describes a tensor with the given strides in elements; nil means row-major.
func (l *Lib) Strided(t DType, dims, strides []int64) (*MD, error) {
	if err := checkDims(dims); err != nil {
		return nil, err
	}
	if strides == nil {
		strides = make([]int64, len(dims))
		n := int64(1)
		for i := len(dims) - 1; i >= 0; i-- {
			strides[i], n = n, n*dims[i]
		}
	}
	if len(strides) != len(dims) {
		return nil, fmt.Errorf("dnnl: %d strides for %d dimensions", len(strides), len(dims))
	}
	var st C.int
	p := C.gt_md_strides(l.c, C.int(t), C.int(len(dims)), ptr(dims), ptr(strides), &st)
	if st != 0 {
		return nil, statusErr(fmt.Sprintf("descriptor of %v with strides %v", dims, strides), st)
	}
	return l.wrap(p), nil
}

// NHWC describes a 4-d tensor, given as N C H W, whose channels are innermost in memory.
func (l *Lib) NHWC(t DType, dims []int64) (*MD, error) {
	if len(dims) != 4 {
		return nil, fmt.Errorf("dnnl: nhwc needs 4 dimensions, not %v", dims)
	}
	c, h, w := dims[1], dims[2], dims[3]
	return l.Strided(t, dims, []int64{c * h * w, 1, w * c, c})
}

// Any describes a tensor whose layout the primitive chooses.
func (l *Lib) Any(t DType, dims []int64) (*MD, error) { return l.tagged(t, dims, 1) }

// Blocked describes a 4-d tensor N C H W stored as N C/block H W block, where block is 8 or 16; channels are padded with zeros.
func (l *Lib) Blocked(t DType, dims []int64, block int) (*MD, error) {
	if len(dims) != 4 {
		return nil, fmt.Errorf("dnnl: blocks of channels need 4 dimensions, not %v", dims)
	}
	switch block {
	case 16:
		return l.tagged(t, dims, l.c.tag_16c)
	case 8:
		return l.tagged(t, dims, l.c.tag_8c)
	}
	return nil, fmt.Errorf("dnnl: blocks of %d channels", block)
}

// Named describes a tensor in the layout that Tag named, if the library knows a format tag for it.
func (l *Lib) Named(t DType, dims []int64, tag string) (*MD, error) {
	// The library's name may order dimensions of extent 1 differently, so every tag with the same blocks is tried.
	blocks := tag[strings.IndexFunc(tag+"0", unicode.IsDigit):]
	for i := C.int(2); ; i++ {
		c := C.gt_tag_name(l.c, i)
		if c == nil {
			return nil, fmt.Errorf("%w: a layout named %q", ErrUnsupported, tag)
		}
		name := C.GoString(c)
		if len(name) != len(tag) || !strings.HasSuffix(name, blocks) || !strings.EqualFold(sorted(name), sorted(tag)) {
			continue
		}
		if m, err := l.tagged(t, dims, i); err == nil && m.Tag() == tag {
			return m, nil
		}
	}
}

func sorted(s string) string {
	b := []byte(s)
	slices.Sort(b)
	return string(b)
}

func (l *Lib) tagged(t DType, dims []int64, tag C.int) (*MD, error) {
	if err := checkDims(dims); err != nil {
		return nil, err
	}
	var st C.int
	p := C.gt_md_tag(l.c, C.int(t), C.int(len(dims)), ptr(dims), tag, &st)
	if st != 0 {
		return nil, statusErr(fmt.Sprintf("descriptor of %v", dims), st)
	}
	return l.wrap(p), nil
}

// Permute describes the same memory with its dimensions reordered: dimension i of m becomes dimension perm[i].
func (m *MD) Permute(perm ...int) (*MD, error) {
	c := make([]C.int, len(perm))
	for i, p := range perm {
		c[i] = C.int(p)
	}
	var st C.int
	p := C.gt_md_permute(m.lib.c, m.c, unsafe.SliceData(c), &st)
	runtime.KeepAlive(m)
	if st != 0 {
		return nil, statusErr(fmt.Sprintf("permutation %v", perm), st)
	}
	return m.lib.wrap(p), nil
}

// Bytes is the size of the memory, including padding.
func (m *MD) Bytes() int64 {
	defer runtime.KeepAlive(m)
	return int64(C.gt_md_size(m.lib.c, m.c))
}

// Equal reports whether both describe the same memory: shape, type and layout.
func (m *MD) Equal(o *MD) bool {
	defer runtime.KeepAlive([2]*MD{m, o})
	return C.gt_md_equal(m.lib.c, m.c, o.c) != 0
}

// Info holds the fields of a descriptor. Blocked is false for opaque layouts.
type Info struct {
	DType         DType
	Dims, Padded  []int64
	Blocked       bool
	Strides       []int64 // of the outer dimensions, in elements
	Blocks, Index []int64 // sizes and dimensions of the inner blocks, outermost first
}

// Info reads the descriptor.
func (m *MD) Info() (Info, error) {
	var c C.gt_md_info
	st := C.gt_md_get(m.lib.c, m.c, &c)
	runtime.KeepAlive(m)
	if st != 0 {
		return Info{}, statusErr("descriptor", st)
	}
	cp := func(a *C.gt_dims, n C.int) []int64 {
		return slices.Clone(unsafe.Slice((*int64)(unsafe.Pointer(a)), C.GT_DIMS)[:n])
	}
	return Info{DType: DType(c.dtype), Dims: cp(&c.dims, c.ndims), Padded: cp(&c.padded, c.ndims), Blocked: c.blocked != 0,
		Strides: cp(&c.strides, c.ndims), Blocks: cp(&c.blocks, c.nblocks), Index: cp(&c.idxs, c.nblocks)}, nil
}

// Tag names the layout in the library's notation: letters of the dimensions from outermost to innermost, upper case if a dimension is also blocked, then the
// blocks, as in "ABcd16a16b". Dimensions of extent 1 come last, because their position has no effect. Strides with gaps follow after a colon. Equal tags,
// shapes and types mean equal memory; "" means a layout that cannot be named.
func (m *MD) Tag() string {
	o, ok := m.order()
	if !ok {
		return ""
	}
	var s strings.Builder
	for _, d := range o.dims {
		c := byte('a' + d)
		if slices.Contains(o.Index, int64(d)) {
			c -= 'a' - 'A'
		}
		s.WriteByte(c)
	}
	for i, d := range o.Index {
		fmt.Fprintf(&s, "%d%c", o.Blocks[i], 'a'+d)
	}
	if !o.dense {
		fmt.Fprintf(&s, ":%v", o.Strides)
	}
	return s.String()
}

// Plain reports whether the memory is row-major without gaps or padding.
func (m *MD) Plain() bool {
	o, ok := m.order()
	if !ok || !o.dense || len(o.Blocks) > 0 || !slices.Equal(o.Dims, o.Padded) {
		return false
	}
	last := -1
	for _, d := range o.dims {
		if o.Dims[d] != 1 {
			if d < last {
				return false
			}
			last = d
		}
	}
	return true
}

type order struct {
	Info
	dims  []int // from outermost to innermost
	dense bool
}

func (m *MD) order() (order, bool) {
	in, err := m.Info()
	if err != nil || !in.Blocked || len(in.Dims) == 0 {
		return order{}, false
	}
	o := order{Info: in, dense: true}
	outer := slices.Clone(in.Padded) // extent of each dimension in blocks
	block := int64(1)
	for i, d := range in.Index {
		outer[d] /= in.Blocks[i]
		block *= in.Blocks[i]
	}
	for d := range in.Dims {
		o.dims = append(o.dims, d)
	}
	sort.SliceStable(o.dims, func(i, j int) bool {
		a, b := o.dims[i], o.dims[j]
		if (outer[a] == 1) != (outer[b] == 1) {
			return outer[b] == 1
		}
		return outer[a] != 1 && in.Strides[a] > in.Strides[b]
	})
	want := block
	for i := len(o.dims) - 1; i >= 0; i-- {
		d := o.dims[i]
		o.dense = o.dense && (outer[d] == 1 || in.Strides[d] == want)
		want *= outer[d]
	}
	return o, true
}
