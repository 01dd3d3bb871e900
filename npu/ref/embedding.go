package ref

import (
	"fmt"

	"github.com/gotrain/gotrain/npu"
)

var embeddingKinds = map[string]body{
	npu.Embedding:    runEmbedding,
	npu.EmbeddingBwd: runEmbeddingBwd,
}

// tableRows reads the ids of input i and checks that each is a row of a table of v rows.
func (c *call) tableRows(i, v int) ([]int, error) {
	s := c.op.In[i].Shape
	ids := make([]int, s.Elems())
	for e := range ids {
		ids[e] = int(loadInt(c.rawIn(i), e, npu.I32))
		if ids[e] < 0 || ids[e] >= v {
			return nil, fmt.Errorf("ids%v: id %d outside 0…%d\nhint: the tokens come from a larger vocabulary than the table has rows", place(e, s), ids[e], v-1)
		}
	}
	return ids, nil
}

// place returns the index of plain element e of a tensor of shape s.
func place(e int, s npu.Shape) []int {
	at := make([]int, len(s))
	for i := len(s) - 1; i >= 0; i-- {
		at[i], e = e%s[i], e/s[i]
	}
	return at
}

// runEmbedding loads only the requested rows: a table is large.
func runEmbedding(c *call) error {
	v, d := c.op.In[1].Shape[0], c.op.In[1].Shape[1]
	ids, err := c.tableRows(0, v)
	if err != nil {
		return err
	}
	y, t := c.out(0), c.op.In[1].DType
	c.parallel(len(ids), func(r int) { load(y[r*d:][:d], c.rawIn(1), ids[r]*d, t) })
	return nil
}

func runEmbeddingBwd(c *call) error {
	s := c.op.Out[0].Shape
	ids, err := c.tableRows(1, s[0])
	if err != nil {
		return err
	}
	dy, dw, d := c.in(0), c.out(0), s[1]
	if c.op.Attrs.Bool("add") {
		copy(dw, c.in(2))
	}
	for r, id := range ids { // in row order: a row of the table may be hit many times
		for j, g := range dy[r*d:][:d] {
			dw[id*d+j] += g
		}
	}
	return nil
}
