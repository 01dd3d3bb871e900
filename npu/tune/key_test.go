package tune

import (
	"testing"

	"github.com/gotrain/gotrain/npu"
)

// Layouts and the algorithm do not count, nor does the number of pictures from a point on; everything else does.
func TestKey(t *testing.T) {
	keys := map[string]bool{}
	for i, op := range conv(8, 4, 6) {
		key := Key(op)
		keys[key] = true
		if other := Key(conv(2, 4, 6)[i]); other == key {
			t.Errorf("fewer pictures have the same key %s", key)
		}
		if some, many := Key(conv(9, 64, 56)[i]), Key(conv(1000, 64, 56)[i]); some != many {
			t.Errorf("many pictures are %s, not %s", many, some)
		}
		if Key(withBatch(op, 2)) != Key(conv(2, 4, 6)[i]) {
			t.Errorf("two pictures are %s, not %s", Key(withBatch(op, 2)), Key(conv(2, 4, 6)[i]))
		}
		other := op.WithAlgorithm(npu.Winograd4)
		other.In[0].Layout, other.Out[0].Layout = own, own
		if Key(other) != key {
			t.Errorf("in other layouts: %s, not %s", Key(other), key)
		}
		if other := Key(conv(8, 4, 7)[i]); other == key {
			t.Errorf("other pictures have the same key %s", key)
		}
		op.Attrs = npu.Attrs{"pad": []int{0, 0, 0, 0}}
		if Key(op) == key {
			t.Errorf("without padding the key is still %s", key)
		}
	}
	if len(keys) != 3 {
		t.Errorf("three kinds have %d keys", len(keys))
	}
	a := npu.Op{Kind: npu.Relu, In: []npu.Desc{npu.D(npu.F32, 2, 3)}, Out: []npu.Desc{npu.D(npu.F32, 2, 3)}}
	b := npu.Op{Kind: npu.Relu, In: []npu.Desc{npu.D(npu.F32, 4, 3)}, Out: []npu.Desc{npu.D(npu.F32, 4, 3)}}
	if Key(a) == Key(b) {
		t.Errorf("what is no convolution has no batch: %s", Key(a))
	}
}

func TestFLOPs(t *testing.T) {
	for _, op := range conv(8, 4, 6) {
		if got, want := flops(op), int64(2*8*36*4*4*9); got != want {
			t.Errorf("%s: %d, want %d", op.Kind, got, want)
		}
	}
	if n := small(conv(1000, 64, 56)[2]).In[1].Shape[0]; n != 9 {
		t.Errorf("measured with %d pictures of 0.23 GFLOP", n)
	}
}

// Small pictures of many channels are measured as many at a time as the network has, or enough for each transformed weight to be used often; other networks
// ask another question, and all have one key.
func TestSmallPictures(t *testing.T) {
	dev, _ := open(t, "a")
	names := []string{npu.Direct, npu.Winograd4}
	for i := range 3 {
		for batch, want := range map[int]int{4: 4, 9: 9, 16: 16, 84: 84, 1000: 84} {
			op := conv(batch, 512, 7)[i]
			q := question(dev, op, names)
			if n := q.Entrants[1].Op.In[0].Shape[0]; n != want || q.op != Key(op) || q.Key != name(q.Entrants[0].Op) {
				t.Errorf("%d pictures are measured with %d, not %d, by the question %s of %s", batch, n, want, q.Key, q.op)
			}
		}
		if a, b := Key(conv(16, 512, 7)[i]), Key(conv(9, 512, 7)[i]); a != b {
			t.Errorf("two keys, %s and %s", a, b)
		}
	}
}

// What a device does in another way with many pictures is measured with so many, and is another question; in a network it is the same op.
func TestForms(t *testing.T) {
	dev, _ := open(t, "a")
	names := []string{npu.Direct, npu.Winograd4}
	for i, few := range conv(16, 64, 56) {
		many := conv(64, 64, 56)[i]
		dev.turn = 0
		if a, b := question(dev, few, names), question(dev, many, names); a.Key != b.Key || a.Key != a.op || b.Entrants[1].Op.In[0].Shape[0] != 9 {
			t.Errorf("without forms: %s and %s", a.Key, b.Key)
		}
		dev.turn = 40
		a, b := question(dev, few, names), question(dev, many, names)
		if a.Key == b.Key || a.op != b.op || a.op != Key(few) {
			t.Errorf("%s and %s of %s", a.Key, b.Key, Key(few))
		}
		for _, e := range a.Entrants {
			if n := e.Op.In[0].Shape[0]; n != 9 {
				t.Errorf("16 pictures are measured with %d", n)
			}
		}
		for _, e := range b.Entrants {
			if n := e.Op.In[0].Shape[0]; n < 40 || n > 46 || e.Op.Attrs.Str(npu.AttrAlgorithm) != e.Name {
				t.Errorf("64 pictures are measured with %d, as %s", n, e.Op)
			}
		}
	}
}
