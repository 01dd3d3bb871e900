package commtest

import (
	"testing"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

func TestWrong(t *testing.T) {
	f := func(v ...float32) []byte { return comm.HostOf(v).Host() }
	sum := comm.Call{Kind: comm.AllReduce, DType: npu.F32}
	largest := comm.Call{Kind: comm.AllReduce, DType: npu.F32, Op: comm.Max}
	whole := comm.Call{Kind: comm.AllReduce, DType: npu.I32}
	near := f(1, 100.00001)
	for name, c := range map[string]struct {
		tr        Transport
		call      comm.Call
		want, got []byte
		right     bool
	}{
		"equal":                 {Transport{}, sum, f(1, 100), f(1, 100), true},
		"open":                  {Transport{}, sum, nil, f(3), true},
		"a rounding":            {Transport{}, sum, f(1, 100), near, false},
		"a rounding, loose":     {Transport{Loose: true}, sum, f(1, 100), near, true},
		"too far, loose":        {Transport{Loose: true}, sum, f(1, 100), f(1, 100.001), false},
		"not a number, loose":   {Transport{Loose: true}, sum, f(1, 100), comm.HostOf([]int32{-1, -1}).Host(), false},
		"too short, loose":      {Transport{Loose: true}, sum, f(1, 100), f(1), false},
		"maxima, loose":         {Transport{Loose: true}, largest, f(1, 100), near, false},
		"integers, loose":       {Transport{Loose: true}, whole, f(1, 100), near, false},
		"a sent copy, loose":    {Transport{Loose: true}, comm.Call{Kind: comm.AllGather, DType: npu.F32}, f(1, 100), near, false},
		"bf16, a step, loose":   {Transport{Loose: true}, comm.Call{Kind: comm.Reduce, DType: npu.BF16}, []byte{0, 0x3f}, []byte{1, 0x3f}, true},
		"bf16, ten steps,loose": {Transport{Loose: true}, comm.Call{Kind: comm.Reduce, DType: npu.BF16}, []byte{0, 0x3f}, []byte{10, 0x3f}, false},
	} {
		if why := c.tr.wrong(c.call, c.want, c.got); (why == "") != c.right {
			t.Errorf("%s: %q", name, why)
		}
	}
}
