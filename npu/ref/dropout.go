package ref

import "github.com/gotrain/gotrain/npu"

var dropoutKinds = map[string]body{npu.Dropout: runDropout}

// keeps reports whether dropout keeps element (or row) i of layer id: one step of splitmix64 (Steele, Lea, Flood 2014) per element.
func keeps(seed uint64, id, i int, p float64) bool {
	z := seed ^ uint64(id+1)*0xD1342543DE82EF95
	z += uint64(i+1) * 0x9E3779B97F4A7C15
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	z ^= z >> 31
	return float64(z>>40)*0x1p-24 >= p
}

func runDropout(c *call) error {
	x, y, seed := c.in(0), c.out(0), uint64(loadInt(c.rawIn(1), 0, npu.I64))
	p, id := c.op.Attrs.Float("p", 0), c.op.Attrs.Int("id", 0)
	row := 1 // elements that are kept or dropped together
	if s := c.op.In[0].Shape; c.op.Attrs.Bool("rows") && len(x) > 0 {
		row = len(x) / s[0]
	}
	c.chunks(len(x), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			if keeps(seed, id, i/row, p) {
				y[i] = x[i] / (1 - p)
			}
		}
	})
	return nil
}
