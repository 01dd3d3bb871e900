package kern

import "github.com/gotrain/gotrain/npu"

// strides returns those of a plain tensor, in elements.
func strides(s npu.Shape) []int64 {
	st := make([]int64, len(s))
	for i, n := len(s)-1, int64(1); i >= 0; i-- {
		st[i] = n
		n *= int64(s[i])
	}
	return st
}

// broadcastStrides returns the strides to read plain x in the order of y: 0 along repeated axes.
func broadcastStrides(x, y npu.Shape) []int64 {
	st, r := make([]int64, len(y)), strides(x)
	for i, n := range x {
		if j := len(y) - len(x) + i; n == y[j] && n > 1 {
			st[j] = r[i]
		}
	}
	return st
}

// merge drops axes of extent 1 and merges adjacent axes if all strides allow it. At least one axis remains.
func merge(s npu.Shape, st ...[]int64) (dims []int64, out [][]int64) {
	out = make([][]int64, len(st))
	for i, n := range s {
		if n == 1 {
			continue
		}
		last, joins := len(dims)-1, len(dims) > 0
		for k := range st {
			joins = joins && out[k][last] == st[k][i]*int64(n)
		}
		if !joins {
			dims = append(dims, int64(n))
			for k := range st {
				out[k] = append(out[k], st[k][i])
			}
			continue
		}
		dims[last] *= int64(n)
		for k := range st {
			out[k][last] = st[k][i]
		}
	}
	if len(dims) == 0 {
		dims = []int64{1}
		for k := range st {
			out[k] = []int64{1}
		}
	}
	return dims, out
}
