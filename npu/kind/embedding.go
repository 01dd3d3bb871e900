package kind

import "github.com/gotrain/gotrain/npu"

func init() {
	Register(&Kind{
		Name: npu.Embedding,
		In:   "ids:keep w:full", Out: "y",
		Shape: inferEmbedding, Rounds: true, Plain: true,
	})
	Register(&Kind{
		Name: npu.EmbeddingBwd, Attrs: "rows:i add:b",
		In: "dy ids:keep acc:full?add", Out: "dw:full",
		InPlace: "dw=acc", Shape: inferEmbeddingBwd, Plain: true,
	})
}

func inferEmbedding(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := &checker{a: a, in: in}
	c.isInt(0, "ids")
	c.rank(1, "w", 2)
	c.float(1, "w")
	if !c.ok() {
		return nil, c.err
	}
	return c.done(npu.Desc{Shape: append(in[0].Shape.Clone(), in[1].Shape[1]), DType: in[1].DType})
}

func inferEmbeddingBwd(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := &checker{a: a, in: in}
	c.float(0, "dy")
	c.isInt(1, "ids")
	rows := a.Int("rows", 0)
	if c.ok() && rows < 1 {
		c.failf("attribute rows is %d, want the number of rows of the table", rows)
	}
	if c.ok() && (len(in[0].Shape) == 0 || !in[0].Shape[:len(in[0].Shape)-1].Equal(in[1].Shape)) {
		c.failf("dy %v is not a row for each of ids %v", in[0].Shape, in[1].Shape)
	}
	if !c.ok() {
		return nil, c.err
	}
	d := in[0].Shape[len(in[0].Shape)-1]
	if a.Bool("add") {
		c.full(2, "acc", rows, d)
	}
	return c.done(npu.D(fullType(in[0].DType), rows, d))
}
