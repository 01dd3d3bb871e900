package train

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/internal/amount"
	"github.com/gotrain/gotrain/npu"
)

// Tensor is the value of a metric in row-major order. That of a scalar has no axes and one number.
type Tensor struct {
	Shape  []int
	Values []float64
}

// Scalar is one number.
func Scalar(x float64) Tensor { return Tensor{Values: []float64{x}} }

// Vector has one axis.
func Vector(x ...float64) Tensor { return Tensor{Shape: []int{len(x)}, Values: x} }

// Item is the number of a scalar.
func (t Tensor) Item() float64 { return t.Values[0] }

// At is the number at an index, which has as many numbers as the tensor has axes.
func (t Tensor) At(index ...int) float64 {
	at := 0
	for i, n := range t.Shape {
		at = at*n + index[i]
	}
	return t.Values[at]
}

// Row is what is at index i of the first axis. It shares the numbers.
func (t Tensor) Row(i int) Tensor {
	n := len(t.Values) / t.Shape[0]
	return Tensor{Shape: t.Shape[1:], Values: t.Values[i*n:][:n:n]}
}

// Sum adds all numbers.
func (t Tensor) Sum() (sum float64) {
	for _, v := range t.Values {
		sum += v
	}
	return sum
}

// whole reports whether there are as many numbers as the shape has places, and at least one.
func (t Tensor) whole() bool {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n > 0 && n == len(t.Values)
}

// Values are the results of a step or of an evaluation over all ranks, by name: "loss" (the mean), "items" (their number), the metrics of Outputs, those of
// Outputs.Derived, and "perplexity" if the loss is a likelihood.
type Values map[string]Tensor

// MaxMetricElems is how many numbers the metrics of a model may have together: 32 MiB to be added up.
const MaxMetricElems = 1 << 22

// metric is one of Outputs.Metrics or Outputs.Sums.
type metric struct {
	name  string
	shape npu.Shape
	total bool // reported as it was added up, not divided by the count
}

func (m metric) scalar() bool { return len(m.shape) == 0 }

// rule is one of Outputs.Derived.
type rule struct {
	name  string
	shape []int
	of    func(Values) Tensor
}

// reserved are names of results that models cannot give to their metrics.
func (n *network) reserved(name string) bool {
	return slices.Contains([]string{lossOut, countOut, weightOut, logitsOut, itemsOut}, name) || name == perplexity && n.items.Likelihood
}

// addMetrics names the metrics as outputs of the graph and checks them.
func (n *network) addMetrics(o Outputs) error {
	all := map[string]*graph.Node{}
	maps.Copy(all, o.Metrics)
	for name, node := range o.Sums {
		if _, both := o.Metrics[name]; both {
			return fmt.Errorf("train: %q is one of Outputs.Metrics and one of Outputs.Sums\nhint: give one of them another name", name)
		}
		all[name] = node
	}
	var elems int64
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if n.reserved(name) {
			return fmt.Errorf("train: the metric name %q is reserved", name)
		}
		n.b.Output(name, all[name])
		if n.b.Err() != nil {
			return n.b.Err()
		}
		_, total := o.Sums[name]
		d := n.b.Desc(all[name])
		m := metric{name: name, shape: d.Shape, total: total}
		switch elems += d.Shape.Elems(); {
		case d.DType != npu.F32:
			return fmt.Errorf("train: the metric %q is %v, want f32\nhint: use Builder.Cast", name, d)
		case d.Shape.Elems() == 0:
			return fmt.Errorf("train: the metric %q has the shape %v, which has no numbers", name, d.Shape)
		}
		n.metrics = append(n.metrics, m)
	}
	if elems > MaxMetricElems {
		big := slices.MaxFunc(n.metrics, func(a, b metric) int { return cmp.Compare(a.shape.Elems(), b.shape.Elems()) })
		return fmt.Errorf("train: the metrics have %s numbers, the most of them %q with %v; at most %s can be added up\n"+
			"hint: report sums over an axis, or look at single samples with Trainer.EvaluateSamples",
			amount.Count(elems), big.name, big.shape, amount.Count(int64(MaxMetricElems)))
	}
	return n.addDerived(o.Derived)
}

// addDerived calls each function of Outputs.Derived once, on zeros, to learn the shape of what it returns.
func (n *network) addDerived(of map[string]func(Values) Tensor) error {
	zero := newResults(n)
	for _, name := range slices.Sorted(maps.Keys(of)) {
		_, taken := zero.values[name]
		switch {
		case n.reserved(name) || taken:
			return fmt.Errorf("train: the name %q of Outputs.Derived is that of another result\nhint: give it a name of its own", name)
		case name == "" || strings.ContainsFunc(name, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == '=' }):
			return fmt.Errorf("train: the name %q of Outputs.Derived: want letters and digits, without blanks", name)
		case of[name] == nil:
			return fmt.Errorf("train: Outputs.Derived[%q] is nil", name)
		}
		t, err := try(name, of[name], zero.values)
		if err != nil {
			return err
		}
		n.derived = append(n.derived, rule{name, slices.Clone(t.Shape), of[name]})
	}
	return nil
}

// try calls a function of the user on zeros.
func try(name string, of func(Values) Tensor, zero Values) (t Tensor, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("train: Outputs.Derived[%q] panics on zeros, on which it is tried: %v\nhint: it gets the results %s", name, p,
				strings.Join(slices.Sorted(maps.Keys(zero)), ", "))
		}
	}()
	if t = of(zero); !t.whole() {
		err = fmt.Errorf("train: Outputs.Derived[%q] returned %d numbers of shape %v\nhint: use train.Scalar or train.Vector", name, len(t.Values), t.Shape)
	}
	return t, err
}

// width is how many numbers are added up besides loss and count: those of the metrics, and the weight behind them.
func (n *network) width() (w int) {
	for _, m := range n.metrics {
		w += int(m.shape.Elems())
	}
	if n.weighted {
		w++
	}
	return w
}
