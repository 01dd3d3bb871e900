//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/cpu/dnnl"
	"github.com/gotrain/gotrain/npu/cpu/kern"
)

// mdKey identifies a tensor type for which a layout token is defined.
type mdKey struct {
	token npu.Layout
	dtype npu.DType
	shape string
}

var dnnlTypes = map[npu.DType]dnnl.DType{npu.F32: dnnl.F32, npu.BF16: dnnl.BF16, npu.F16: dnnl.F16, npu.I32: dnnl.S32, npu.I8: dnnl.S8, npu.U8: dnnl.U8}

// dims is a shape in the library's terms; a scalar has one element.
func dims(s npu.Shape) []int64 {
	if len(s) == 0 {
		return []int64{1}
	}
	out := make([]int64, len(s))
	for i, n := range s {
		out[i] = int64(n)
	}
	return out
}

func isToken(l npu.Layout) bool {
	return strings.HasPrefix(string(l), "w:") || strings.HasPrefix(string(l), "p:")
}

// md is the library's descriptor of a tensor, in the library's shape: grouped weights have five dimensions.
func (d *Device) md(t npu.Desc) (*dnnl.MD, error) {
	dt, ok := dnnlTypes[t.DType]
	if !ok {
		return nil, fmt.Errorf("%w: %s", errNotMine, t)
	}
	switch {
	case t.Layout == npu.Plain:
		return d.lib.Strided(dt, dims(t.Shape), nil)
	case t.Layout == npu.Any:
		return d.lib.Any(dt, dims(t.Shape))
	case t.Layout == NHWC:
		return d.lib.NHWC(dt, dims(t.Shape))
	case kern.Block(t.Layout) > 0:
		return d.lib.Blocked(dt, dims(t.Shape), kern.Block(t.Layout))
	}
	return d.tokenMD(t)
}

// tokenMD looks up what remember stored. If the token is known for the shape in another dtype only, such as for master weights laid out like their bf16
// copy, the descriptor is made from the name of the layout.
func (d *Device) tokenMD(t npu.Desc) (*dnnl.MD, error) {
	d.mu.Lock()
	m := d.mds[mdKey{t.Layout, t.DType, t.Shape.String()}]
	var other *dnnl.MD
	for k, v := range d.mds {
		if k.token == t.Layout && k.shape == t.Shape.String() {
			other = v
		}
	}
	d.mu.Unlock()
	if m != nil {
		return m, nil
	}
	if other != nil && strings.HasPrefix(string(t.Layout), "w:") {
		in, err := other.Info()
		if err != nil {
			return nil, err
		}
		m, err := d.lib.Named(dnnlTypes[t.DType], in.Dims, other.Tag())
		if err == nil {
			d.remember(t.Layout, t, m)
			return m, nil
		}
	}
	return nil, fmt.Errorf(
		"layout %q is not known for %s\nhint: layouts are valid only on the device that made them; convert to plain before you move a tensor to another device",
		t.Layout,
		t.With(npu.Plain),
	)
}

// remember defines the token as m for tensors like t.
func (d *Device) remember(token npu.Layout, t npu.Desc, m *dnnl.MD) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mds[mdKey{token, t.DType, t.Shape.String()}] = m
}

// weightLayout names the layout that the library chose for weights.
func (d *Device) weightLayout(t npu.Desc, m *dnnl.MD, groups int) (npu.Layout, error) {
	if m.Plain() {
		return npu.Plain, nil
	}
	tag := m.Tag()
	if tag == "" {
		return "", fmt.Errorf("%w: weights %s in a layout without a name", dnnl.ErrUnsupported, t)
	}
	l := npu.Layout("w:" + tag)
	if groups > 1 {
		l = npu.Layout(fmt.Sprintf("w:g%d:%s", groups, tag))
	}
	d.remember(l, t, m)
	return l, nil
}

// Bytes is the size of a tensor, with the padding of its layout.
func (d *Device) Bytes(t npu.Desc) (int64, error) {
	if t.DType.Size() == 0 {
		return 0, fmt.Errorf("cpu: size of %s: unknown dtype", t)
	}
	switch {
	case t.Layout == npu.Any:
		return 0, fmt.Errorf("cpu: size of %s: the layout is not chosen yet", t)
	case t.Layout == npu.Plain || (t.Layout == NHWC && len(t.Shape) == 4):
		return t.PlainBytes(), nil
	case kern.Block(t.Layout) > 0 && len(t.Shape) == 4:
		block := kern.Block(t.Layout)
		return int64(t.Shape[0]) * int64((t.Shape[1]+block-1)/block*block) * int64(t.Shape[2]*t.Shape[3]) * int64(t.DType.Size()), nil
	case d.lib == nil || !isToken(t.Layout):
		return 0, fmt.Errorf("cpu: size of %s: layout %q does not exist for this shape", t, t.Layout)
	}
	m, err := d.tokenMD(t)
	if err != nil {
		return 0, fmt.Errorf("cpu: size of %s: %w", t, err)
	}
	return m.Bytes(), nil
}

// notMine turns the library's "unsupported" into errNotMine, so that the next maker is tried.
func notMine(err error) error {
	if errors.Is(err, dnnl.ErrUnsupported) {
		return fmt.Errorf("%w: %w", errNotMine, err)
	}
	return err
}
