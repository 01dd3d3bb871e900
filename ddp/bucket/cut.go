package bucket

import (
	"slices"

	"github.com/gotrain/gotrain/npu"
)

// cut groups the indices of params into buckets. Each dtype has separate buckets, in ready order. The caps of the first and the last
// bucket apply to the dtype that begins and ends the ready order.
func cut(params []Param, cfg Config) [][]int {
	if len(params) == 0 {
		return nil
	}
	var order []npu.DType
	byType := map[npu.DType][]int{}
	for i, p := range params {
		if byType[p.DType] == nil {
			order = append(order, p.DType)
		}
		byType[p.DType] = append(byType[p.DType], i)
	}
	first, last := params[0].DType, params[len(params)-1].DType
	size := func(i int) int64 { return align(params[i].Bytes, cfg.AlignBytes) }

	var all [][]int
	for _, t := range order {
		var out [][]int
		list, tail := byType[t], []int(nil)
		if t == last {
			n := len(list)
			at := n - fill(reversed(list), cfg.LastBytes, size)
			// One bucket in all is both first and last; it is not split to make both ends small.
			if at > 0 {
				list, tail = list[:at], list[at:]
			}
		}
		limit := cfg.CapBytes
		if t == first {
			limit = cfg.FirstBytes
		}
		for len(list) > 0 {
			n := fill(list, limit, size)
			out, list, limit = append(out, list[:n]), list[n:], cfg.CapBytes
		}
		if tail != nil {
			out = append(out, tail)
		}
		all = append(all, absorb(out, cfg, size)...)
	}
	return all
}

// small is the part of the cap below which a bucket is not worth a collective of its own.
const small = 64

// absorb joins a small bucket to the next one, if that is a single parameter above the cap: such as the scale of a norm between the matrices of a large
// model. The cap is exceeded in any case, and both are complete at nearly the same time.
func absorb(buckets [][]int, cfg Config, size func(int) int64) (out [][]int) {
	for _, b := range buckets {
		if n := len(out); n > 0 && len(b) == 1 && size(b[0]) > cfg.CapBytes {
			sum := int64(0)
			for _, i := range out[n-1] {
				sum += size(i)
			}
			if sum <= cfg.CapBytes/small {
				out[n-1] = append(slices.Clip(out[n-1]), b...)
				continue
			}
		}
		out = append(out, b)
	}
	return out
}

// fill returns how many of list fit under the limit: at least one.
func fill(list []int, limit int64, size func(int) int64) int {
	sum := int64(0)
	for n, i := range list {
		if sum += size(i); sum > limit && n > 0 {
			return n
		}
	}
	return len(list)
}

func reversed(s []int) []int {
	r := make([]int, len(s))
	for i, v := range s {
		r[len(s)-1-i] = v
	}
	return r
}
