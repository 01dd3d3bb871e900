package kind

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gotrain/gotrain/npu"
)

// Class says what type an argument has next to activations in 16 bits.
type Class uint8

const (
	// Act follows the type of activations.
	Act Class = iota
	// Full stays float32 (float64 where everything is): statistics, losses, gradients of parameters, biases, scales.
	Full
	// Keep is of its own type and never cast: integers, indices, seeds.
	Keep
)

// Arg is an input or output of a kind.
type Arg struct {
	Name  string
	Class Class
	Nil   bool   // an output that may be bound to nil
	Saved bool   // an output that only the gradient kind reads, so a device may keep it in a form (Layout) of its own
	If    string // the bool attribute with which the argument is there; "" is always
	Maybe bool   // may be left out
	Many  bool   // the last argument, any number of times
}

// parseArgs reads "x w bias:full?bias": names with their flags (full, keep, nil, saved), and the attribute that an argument depends on behind a "?".
// Nothing behind it: the argument may be left out. A name that ends in … is for one or more arguments.
func parseArgs(list string) ([]Arg, error) {
	var args []Arg
	for _, f := range strings.Fields(list) {
		f, attr, cond := strings.Cut(f, "?")
		name, flags, _ := strings.Cut(f, ":")
		a := Arg{Name: strings.TrimSuffix(name, "…"), If: attr, Maybe: cond && attr == "", Many: strings.HasSuffix(name, "…")}
		for flag := range strings.SplitSeq(flags, ",") {
			switch flag {
			case "":
			case "full":
				a.Class = Full
			case "keep":
				a.Class = Keep
			case "nil":
				a.Nil = true
			case "saved":
				a.Saved = true
			default:
				return nil, fmt.Errorf("argument %s: unknown flag %q, want full, keep, nil, saved", name, flag)
			}
		}
		args = append(args, a)
	}
	return args, nil
}

// present are the arguments that a call with these attributes has, those that may be left out among them.
func present(args []Arg, a npu.Attrs) []Arg {
	return slices.DeleteFunc(slices.Clone(args), func(x Arg) bool { return x.If != "" && !a.Bool(x.If) })
}

// at is argument i; the last one where it repeats.
func at(args []Arg, i int) (Arg, bool) {
	if n := len(args) - 1; i > n && n >= 0 && args[n].Many {
		i = n
	}
	if i < 0 || i >= len(args) {
		return Arg{}, false
	}
	return args[i], true
}

// pair is {output, input} by name.
type pair [2]string

// parsePairs reads "y=x dx=dy".
func parsePairs(list string) (pairs []pair) {
	for _, f := range strings.Fields(list) {
		out, in, _ := strings.Cut(f, "=")
		pairs = append(pairs, pair{out, in})
	}
	return pairs
}

// places resolves pairs to positions, without those whose arguments a call does not have.
func (k *Kind) places(pairs []pair, a npu.Attrs) (list [][2]int) {
	if len(pairs) == 0 {
		return nil
	}
	ins, outs := k.Inputs(a), k.Outputs(a)
	find := func(args []Arg, name string) int {
		return slices.IndexFunc(args, func(x Arg) bool { return x.Name == name })
	}
	for _, p := range pairs {
		if out, in := find(outs, p[0]), find(ins, p[1]); out >= 0 && in >= 0 {
			list = append(list, [2]int{out, in})
		}
	}
	return list
}
