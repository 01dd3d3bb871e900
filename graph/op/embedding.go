package op

import "github.com/gotrain/gotrain/npu"

func init() {
	Register(&Kind{
		Name: npu.Embedding, Infer: inferEmbedding, Grad: gradEmbedding, FLOPs: noFLOPs,
		DiffWRT: func(npu.Attrs, int) []bool { return []bool{false, true} },
		In:      []Class{Keep, Full}, Out: []Class{Act}, Rounds: true,
	})
	Register(&Kind{
		Name: npu.EmbeddingBwd, Infer: inferEmbeddingBwd, FLOPs: perElem(1),
		In: []Class{Act, Keep, Full}, Out: []Class{Full}, InPlace: [][2]int{{0, 2}},
	})
}

func inferEmbedding(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := check(a, in, "ids w", "")
	c.isInt(0, "ids")
	c.rank(1, "w", 2)
	c.float(1, "w")
	if !c.ok() {
		return nil, c.err
	}
	return c.done(npu.Desc{Shape: append(in[0].Shape.Clone(), in[1].Shape[1]), DType: in[1].DType})
}

func gradEmbedding(t Tape, c Call) ([]Ref, error) {
	r := &rule{t: t}
	dw := r.do(npu.EmbeddingBwd, npu.Attrs{"rows": c.In[1].Desc().Shape[0], "add": false}, c.DOut, c.In[0])
	return r.done(nil, dw)
}

func inferEmbeddingBwd(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	names := "dy ids"
	if a.Bool("add") {
		names += " acc"
	}
	c := check(a, in, names, "rows:i add:b")
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
