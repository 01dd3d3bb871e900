package kind

import "github.com/gotrain/gotrain/npu"

// window is the geometry that convolution and pooling share.
type window struct {
	kernel, stride, dilation [2]int
	pad                      [4]int // top, left, bottom, right
}

// window reads stride, pad and dilation, with the defaults 1, 0 and 1.
func (c *checker) window(kh, kw int) window {
	w := window{kernel: [2]int{kh, kw}, stride: [2]int{1, 1}, dilation: [2]int{1, 1}}
	copy(w.stride[:], c.a.Ints("stride"))
	copy(w.dilation[:], c.a.Ints("dilation"))
	copy(w.pad[:], c.a.Ints("pad"))
	for i := range 2 {
		if w.stride[i] < 1 || w.dilation[i] < 1 || w.kernel[i] < 1 {
			c.failf("kernel %v, stride %v and dilation %v must be at least 1", w.kernel, w.stride, w.dilation)
		}
	}
	for _, p := range w.pad {
		if p < 0 {
			c.failf("pad %v is negative", w.pad)
		}
	}
	return w
}

// poolWindow is window with the kernel from the attributes. A window must not fit into the padding.
func (c *checker) poolWindow() window {
	k, ok := c.a["kernel"].([]int)
	if !ok || len(k) != 2 {
		c.failf("lacks the attribute kernel")
		return window{}
	}
	w := c.window(k[0], k[1])
	for i, p := range w.pad {
		if ext := w.dilation[i%2]*(w.kernel[i%2]-1) + 1; c.ok() && p >= ext {
			c.failf("pad %v is not smaller than the kernel %v: a window would see only padding", w.pad, w.kernel)
		}
	}
	return w
}

// out is the spatial extent of the result over an input of h times w.
func (c *checker) out(w window, h, wd int) (int, int) {
	if !c.ok() {
		return 1, 1
	}
	in, o := [2]int{h, wd}, [2]int{}
	for i := range 2 {
		ext := w.dilation[i]*(w.kernel[i]-1) + 1
		free := in[i] + w.pad[i] + w.pad[i+2] - ext
		if free < 0 {
			c.failf("the kernel %v with dilation %v does not fit into an input of %dx%d with pad %v", w.kernel, w.dilation, h, wd, w.pad)
			return 1, 1
		}
		o[i] = free/w.stride[i] + 1
	}
	return o[0], o[1]
}

// nchw reads a shape attribute of rank 4.
func (c *checker) nchw(key string) npu.Shape {
	s := c.shape(key)
	if c.ok() && len(s) != 4 {
		c.failf("attribute %s is %v, want rank 4", key, s)
	}
	if !c.ok() {
		return npu.Shape{1, 1, 1, 1}
	}
	return s
}
