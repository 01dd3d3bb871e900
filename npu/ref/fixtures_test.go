package ref_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/ref"
)

// fixtures are the reference values that testdata/make_fixtures.py wrote; testdata/README.md tells the format.
type fixtures struct {
	Cases []struct {
		Name, Kind string
		Attrs      map[string]json.RawMessage
		In, Out    []string
	}
	tensors map[string]tensor
}

type tensor struct {
	desc npu.Desc
	data []byte
}

func loadFixtures(t *testing.T) *fixtures {
	t.Helper()
	b, err := os.ReadFile("testdata/ops.json")
	if err != nil {
		t.Fatal(err)
	}
	f := &fixtures{tensors: map[string]tensor{}}
	if err := json.Unmarshal(b, f); err != nil {
		t.Fatal(err)
	}
	if b, err = os.ReadFile("testdata/ops.safetensors"); err != nil {
		t.Fatal(err)
	}
	n := binary.LittleEndian.Uint64(b)
	var head map[string]json.RawMessage
	if err := json.Unmarshal(b[8:8+n], &head); err != nil {
		t.Fatal(err)
	}
	delete(head, "__metadata__")
	for name, raw := range head {
		var e struct {
			DType   string
			Shape   []int
			Offsets [2]uint64 `json:"data_offsets"`
		}
		if err := json.Unmarshal(raw, &e); err != nil {
			t.Fatal(err)
		}
		dt, err := npu.ParseDType(strings.ToLower(e.DType))
		if err != nil {
			t.Fatal(err)
		}
		f.tensors[name] = tensor{npu.Desc{Shape: e.Shape, DType: dt}, b[8+n+e.Offsets[0] : 8+n+e.Offsets[1]]}
	}
	return f
}

// attrs turns JSON into the types of npu.Attrs: a number with a point or an exponent is a float64, another one an int.
func attrs(t *testing.T, in map[string]json.RawMessage) npu.Attrs {
	t.Helper()
	a := npu.Attrs{}
	for k, raw := range in {
		var v any
		switch c := raw[0]; {
		case c == '"':
			v = new(string)
		case c == '[' && strings.ContainsAny(string(raw), ".eE"):
			v = new([]float64)
		case c == '[':
			v = new([]int)
		case c == 't' || c == 'f':
			v = new(bool)
		case strings.ContainsAny(string(raw), ".eE"):
			v = new(float64)
		default:
			v = new(int)
		}
		if err := json.Unmarshal(raw, v); err != nil {
			t.Fatalf("%s: %v", k, err)
		}
		switch p := v.(type) {
		case *string:
			a[k] = *p
		case *[]int:
			a[k] = *p
		case *[]float64:
			a[k] = *p
		case *bool:
			a[k] = *p
		case *float64:
			a[k] = *p
		case *int:
			a[k] = *p
		}
	}
	return a
}

func (x tensor) at(i int) float64 {
	le := binary.LittleEndian
	switch x.desc.DType {
	case npu.F32:
		return float64(math.Float32frombits(le.Uint32(x.data[4*i:])))
	case npu.BF16:
		return float64(math.Float32frombits(uint32(le.Uint16(x.data[2*i:])) << 16))
	case npu.F64:
		return math.Float64frombits(le.Uint64(x.data[8*i:]))
	case npu.I32:
		return float64(int32(le.Uint32(x.data[4*i:])))
	}
	panic(fmt.Sprintf("dtype %v", x.desc.DType))
}

// TestPyTorch runs every case and compares with what PyTorch computed in float64. Both round once to float32, so the bound is some units in the
// last place of the tensor's largest value; far_from_zero subtracts a mean of 50 that its inputs (mean, rstd) carry only to 24 bits.
func TestPyTorch(t *testing.T) {
	f := loadFixtures(t)
	for _, c := range f.Cases {
		t.Run(c.Name, func(t *testing.T) {
			op := npu.Op{Kind: c.Kind, Attrs: attrs(t, c.Attrs)}
			var args [][]byte
			for _, n := range c.In {
				x := f.tensors[n]
				op.In = append(op.In, x.desc)
				args = append(args, x.data)
			}
			got := make([]tensor, len(c.Out))
			inplace := map[string][]int{npu.SGD: {1, 3}, npu.AdamW: {1, 3, 4}, npu.LARS: {1, 3}, npu.SumSq: {1}, npu.Scale: {1}, npu.EMA: {1}, npu.LAMB: {1},
				npu.LAMBMoments: {0, 3, 4}}[c.Kind]
			for i, n := range c.Out {
				x := f.tensors[n]
				got[i] = tensor{x.desc, make([]byte, len(x.data))}
				if inplace != nil {
					copy(got[i].data, f.tensors[c.In[inplace[i]]].data)
				}
				op.Out = append(op.Out, x.desc)
				args = append(args, got[i].data)
			}
			if err := ref.Run(op, args); err != nil {
				t.Fatal(err)
			}
			tol := 1e-6
			switch {
			case strings.HasPrefix(c.Name, "batchnorm/far_from_zero/bwd"):
				tol = 1e-4
			case c.Name == "cross_entropy/wide_range/bwd", // its lse of 180 has an ulp of 1.5e-5
				c.Name == "linear_cross_entropy/large_logits/bwd", c.Name == "attention/large_scores/bwd", // as above, with an lse of 60
				c.Name == "softmax/wide/bwd": // dy - Σ dy·y cancels where y is nearly 1
				tol = 1e-5
			}
			for i, n := range c.Out {
				compare(t, n, got[i], f.tensors[n], tol)
			}
		})
	}
}

func compare(t *testing.T, name string, got, want tensor, tol float64) {
	t.Helper()
	n := int(want.desc.Shape.Elems())
	big := 0.0
	for i := range n {
		if w := math.Abs(want.at(i)); !math.IsInf(w, 0) {
			big = max(big, w)
		}
	}
	for i := range n {
		g, w := got.at(i), want.at(i)
		if math.IsNaN(w) || g == w {
			continue
		}
		if d := math.Abs(g - w); !(d <= tol*big) {
			t.Errorf("%s[%d] = %v, PyTorch has %v: off by %.3g of the largest value %.3g", name, i, g, w, d/big, big)
			return
		}
	}
}
