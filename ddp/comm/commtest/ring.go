package commtest

import (
	"bytes"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/link"
)

// ringFold is fold for an all-reduce that goes round a ring. Of w parts, whose borders are multiples of 64 bytes, part k begins at rank k+1 and ends at
// rank k; every rank on the way adds its own and rounds. Calls below link.MinCrossover bytes do not go round.
func ringFold(call comm.Call, inputs [][]byte) []byte {
	w, n := len(inputs), len(inputs[0])
	if call.Kind != comm.AllReduce || n < link.MinCrossover || w == 1 {
		return fold(call, inputs)
	}
	sum := bytes.Clone(inputs[0])
	for k := range w {
		from, to := n/64*k/w*64, n/64*(k+1)/w*64
		if k == w-1 {
			to = n
		}
		acc := inputs[(k+1)%w][from:to]
		for i := 2; i <= w; i++ {
			acc = fold(call, [][]byte{acc, inputs[(k+i)%w][from:to]})
		}
		copy(sum[from:to], acc)
	}
	return sum
}
