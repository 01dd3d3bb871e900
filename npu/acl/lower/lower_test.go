package lower_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/acl/abi"
	"github.com/gotrain/gotrain/npu/acl/lower"
	"github.com/gotrain/gotrain/npu/nputest"
)

// machines are the devices and releases that are supported.
var machines = []lower.Caps{
	{SoC: "Ascend910B3", Family: lower.A2, Version: lower.Version{Major: 8, Minor: 1}},
	{SoC: "Ascend910_9391", Family: lower.A3, Version: lower.Version{Major: 8, Minor: 1}, Exact: true},
	{SoC: "Ascend910B3", Family: lower.A2, Version: lower.Version{Major: 9}, Symbols: every},
	{SoC: "Ascend910_9391", Family: lower.A3, Version: lower.Version{Major: 9}, Symbols: every, Logits: 4096},
	{SoC: "Ascend950", Family: lower.A950, Version: lower.Version{Major: 9}, Symbols: every},
}

func every(string) bool { return true }

// eachProgram lowers the ops of all cases of the kernel suite.
func eachProgram(t *testing.T, fn func(t *testing.T, op npu.Op, p *lower.Program)) {
	for _, c := range machines {
		t.Run(fmt.Sprintf("%v %v", c.Family, c.Version), func(t *testing.T) {
			for _, kind := range nputest.Kinds() {
				for _, dt := range []npu.DType{npu.F32, npu.BF16, npu.F16} {
					for _, cs := range nputest.Cases(kind, dt) {
						for i := range cs.Calls {
							op := cs.Op(i)
							if !lower.Has(op.Kind, op.Attrs, c) {
								if op.Kind != npu.Dropout {
									t.Errorf("%s: not there: %s", cs, op)
								}
								continue
							}
							op, err := lower.Choose(op, c)
							if err != nil {
								t.Fatalf("%s: %v", cs, err)
							}
							p, err := lower.Lower(op, c)
							if err != nil {
								t.Errorf("%s: %v", cs, err)
								continue
							}
							fn(t, op, p)
						}
					}
				}
			}
		})
	}
}

func TestEveryCaseIsLowered(t *testing.T) {
	seen := map[string]bool{}
	eachProgram(t, func(t *testing.T, op npu.Op, p *lower.Program) {
		seen[op.Kind] = true
		if p.Kind != op.Kind || len(p.Spare) != len(op.Out) {
			t.Fatalf("%s: a program of %q with %d spare outputs", op, p.Kind, len(p.Spare))
		}
		if err := check(op, p); err != nil {
			t.Errorf("%s: %v\n%s", op, err, p)
		}
	})
	for _, k := range nputest.Kinds() {
		if !seen[k] {
			t.Errorf("%s: never lowered", k)
		}
	}
}

// check finds views outside of their memory, temporaries that are read before they are written, and outputs that are never written.
func check(op npu.Op, p *lower.Program) error {
	written := map[lower.Ref]bool{}
	for _, c := range p.Calls {
		row, ok := abi.Find(c.Op)
		if !ok || len(row.Args) != len(c.Args) {
			return fmt.Errorf("%s does not fit the table", c)
		}
		var out []lower.Tensor
		for i, a := range c.Args {
			if a.Code != row.Args[i].Code {
				return fmt.Errorf("%s: argument %d has code %s, want %s", c, i, a.Code, row.Args[i].Code)
			}
			list := a.List
			if (a.Code == "T" || a.Code == "To") && !a.Null {
				list = append(list, a.Tensor)
			}
			for _, x := range list {
				if err := inside(op, p, x); err != nil {
					return fmt.Errorf("%s: %w", c, err)
				}
				switch name := row.Args[i].Name; {
				case x.Base.Space == lower.Temp && !written[x.Base] && !isOutput(row.Args[i]) && !onlyShape(c.Op, name):
					return fmt.Errorf("%s reads %v, which was not written", c, x.Base)
				case x.Base.Space == lower.In && isOutput(row.Args[i]) && !(c.Op == "BatchNorm" && c.Args[5].Int == 0):
					return fmt.Errorf("%s writes to an input", c)
				case isOutput(row.Args[i]):
					out = append(out, x)
				}
			}
		}
		for _, x := range out {
			written[x.Base] = true
		}
	}
	for i, d := range op.Out {
		if !written[lower.Ref{Space: lower.Out, Index: i}] && d.Shape.Elems() > 0 {
			return fmt.Errorf("output %d is not written", i)
		}
	}
	return nil
}

// isOutput tells whether an operator writes an argument. The C types do not always say.
func isOutput(a abi.Arg) bool {
	return a.Code == "To" || a.Name == "out" || strings.HasSuffix(a.Name, "Out") && a.Name != "gradOut" || strings.HasSuffix(a.Name, "Ref")
}

// onlyShape are arguments whose contents do not matter.
func onlyShape(op, name string) bool {
	return op == "AvgPool2dBackward" && name == "self" || name == "indices" && op == "MaxPool2dWithIndices"
}

// inside checks that a view lies in its memory.
func inside(op npu.Op, p *lower.Program, x lower.Tensor) error {
	var bytes int64
	var err error
	switch i := x.Base.Index; x.Base.Space {
	case lower.In:
		bytes, err = lower.Bytes(op.In[i])
	case lower.Out:
		bytes, err = lower.Bytes(op.Out[i])
	case lower.Temp:
		if bytes = p.Temps[i].Bytes; p.Temps[i].Offset+bytes > p.Scratch || p.Temps[i].Offset%512 != 0 {
			err = fmt.Errorf("%v is at %d of %d bytes", x.Base, p.Temps[i].Offset, p.Scratch)
		}
	case lower.Fixed:
		bytes = p.Consts[i].Bytes
	}
	if err != nil {
		return err
	}
	last := x.Offset
	for i, d := range x.Dims {
		if d > 0 {
			last += (d - 1) * x.Strides[i]
		}
	}
	if x.Elems() > 0 && last >= x.Storage || x.Storage*x.DType.Size() > bytes || len(x.Dims) > 8 {
		return fmt.Errorf("%v reaches element %d of %d in %d bytes", x, last, x.Storage, bytes)
	}
	return nil
}

// TestTemporariesThatLiveTogether: no two of them overlap.
func TestTemporariesThatLiveTogether(t *testing.T) {
	eachProgram(t, func(t *testing.T, op npu.Op, p *lower.Program) {
		first, last := map[int]int{}, map[int]int{}
		for at, c := range p.Calls {
			for _, a := range c.Args {
				if x := a.Tensor; x.Base.Space == lower.Temp && x.Dims != nil {
					if _, ok := first[x.Base.Index]; !ok {
						first[x.Base.Index] = at
					}
					last[x.Base.Index] = at
				}
			}
		}
		for i, x := range p.Temps {
			for j, y := range p.Temps[:i] {
				together := x.Bytes > 0 && y.Bytes > 0 && first[i] <= last[j] && first[j] <= last[i]
				if together && x.Offset < y.Offset+y.Bytes && y.Offset < x.Offset+x.Bytes {
					t.Fatalf("%s: temporaries %d and %d overlap: %+v\n%s", op, j, i, p.Temps, p)
				}
			}
		}
	})
}

// TestRefusals: what cannot be lowered is said with the kind, the reason and what to do.
func TestRefusals(t *testing.T) {
	x := npu.D(npu.BF16, 2, 4)
	old := lower.Caps{Family: lower.A2, Version: lower.Version{Major: 8, Minor: 1}}
	bare := old
	bare.Symbols = func(op string) bool { return op != "LogSumExp" }
	for _, c := range []struct {
		op   npu.Op
		caps lower.Caps
		want []string
	}{
		{npu.Op{Kind: "mystery"}, old, []string{`no kernel for kind "mystery"`}},
		{npu.Op{Kind: npu.Dropout, Attrs: npu.Attrs{"p": 0.5}, In: []npu.Desc{x, npu.D(npu.I64)}, Out: []npu.Desc{x}}, old,
			[]string{"dropout", "CANN 8.1", "hint: dropout needs CANN 9.0"}},
		{npu.Op{Kind: npu.Unary, Attrs: npu.Attrs{"fn": "cosh"}, In: []npu.Desc{x}, Out: []npu.Desc{x}}, old, []string{"unary", "fn=cosh", "hint: "}},
		{npu.Op{Kind: npu.CrossEntropy, In: []npu.Desc{x, npu.D(npu.I32, 2)}, Out: []npu.Desc{npu.D(npu.F32)}}, bare,
			[]string{"cross_entropy needs aclnnLogSumExp", "hint: "}},
		{npu.Op{Kind: npu.Relu, In: []npu.Desc{x}, Out: []npu.Desc{npu.D(npu.BF16, 2, 5)}}, old, []string{"relu"}},
		{npu.Op{Kind: npu.Relu, In: []npu.Desc{x.With("nhwc")}, Out: []npu.Desc{x}}, old, []string{"layouts are not those that Choose returns"}},
		{npu.Op{Kind: npu.Convert, In: []npu.Desc{npu.D(npu.F32, 4).With(lower.Var)}, Out: []npu.Desc{npu.D(npu.F32, 4)}}, old,
			[]string{"no conversion", "hint: "}},
		{npu.Op{Kind: npu.Attention, Attrs: npu.Attrs{"scale": 1.0}, In: []npu.Desc{npu.D(npu.BF16, 1, 2, 1, 1024), npu.D(npu.BF16, 1, 2, 1, 1024),
			npu.D(npu.BF16, 1, 2, 1, 1024)}, Out: []npu.Desc{npu.D(npu.BF16, 1, 2, 1, 1024)}}, old, []string{"width 1024", "hint: "}},
	} {
		_, err := lower.Lower(c.op, c.caps)
		if err == nil {
			t.Errorf("%s: lowered", c.op)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v\nmust say %q", c.op, err, w)
			}
		}
	}
}
