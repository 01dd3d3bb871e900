package lower

import (
	"fmt"
	"strings"
)

// String lists the calls of the program, one a line.
func (p *Program) String() string {
	var b strings.Builder
	for _, c := range p.Calls {
		b.WriteString(c.String() + "\n")
	}
	return b.String()
}

// String prints Op(argument, …). A tensor is its memory, element type and dimensions, followed by /strides where it is not contiguous and +offset where it
// does not begin at the beginning.
func (c Call) String() string {
	args := make([]string, len(c.Args))
	for i, a := range c.Args {
		args[i] = a.String()
	}
	s := c.Op + "(" + strings.Join(args, ", ") + ")"
	if c.If != nil {
		s += map[bool]string{true: " if ", false: " unless "}[c.If.Shared] + c.If.Mem.String() + " is"
		for i, o := range c.If.Others {
			s += map[bool]string{true: " ", false: " or "}[i == 0] + o.String()
		}
	}
	if w := c.When; w != nil {
		s += fmt.Sprintf(" when %v %s %v", w.Elem, map[bool]string{false: "=", true: "≠"}[w.Not], w.Is)
	}
	return s
}

// String prints the value.
func (a Arg) String() string {
	if a.Null {
		return "-"
	}
	switch a.Code {
	case "T", "To":
		return a.Tensor.String()
	case "TL", "TLo":
		l := make([]string, len(a.List))
		for i, t := range a.List {
			l[i] = t.String()
		}
		return "{" + strings.Join(l, ", ") + "}"
	case "S":
		return fmt.Sprintf("%v:%v", a.Scalar.Value, a.Scalar.DType)
	case "IA":
		return fmt.Sprint(a.Ints)
	case "FA":
		return fmt.Sprint(a.Floats)
	case "BA":
		return fmt.Sprint(a.Bools)
	case "str":
		return fmt.Sprintf("%q", a.Str)
	case "f32", "f64":
		if a.Host != nil {
			return a.Host.String()
		}
		return fmt.Sprint(a.Float)
	case "bool":
		return fmt.Sprint(a.Int != 0)
	case "dt":
		return DType(a.Int).String()
	}
	return fmt.Sprint(a.Int)
}

// String prints in0[1].
func (e Elem) String() string { return fmt.Sprintf("in%d[%d]", e.In, e.At) }

// String prints in0, out1, tmp2 or const3.
func (r Ref) String() string {
	return fmt.Sprintf("%s%d", [...]string{In: "in", Out: "out", Temp: "tmp", Fixed: "const"}[r.Space], r.Index)
}

// String prints in0 f32[2 3].
func (t Tensor) String() string {
	s := fmt.Sprintf("%v %v", t.Base, t.DType)
	if t.Format == NCHW {
		s += " NCHW"
	}
	s += fmt.Sprint(t.Dims)
	if !t.Contiguous() {
		s += "/" + fmt.Sprint(t.Strides)
	}
	if t.Offset != 0 {
		s += fmt.Sprintf("+%d", t.Offset)
	}
	return s
}
