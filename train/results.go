package train

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/gotrain/gotrain/internal/amount"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/telemetry"
)

// results are the values of the last report of a pass. The memory is the same for every report.
type results struct {
	values  Values
	flat    []float64 // of the metrics, one after the other
	scalars []string  // in the order of the log
	tensors []string
}

func newResults(n *network) *results {
	r := &results{values: Values{lossOut: Scalar(0), itemsOut: Scalar(0)}, flat: make([]float64, n.width())}
	if n.items.Likelihood {
		r.values[perplexity] = Scalar(0)
	}
	at := 0
	for _, m := range n.metrics {
		end := at + int(m.shape.Elems())
		r.values[m.name] = Tensor{Shape: slices.Clone([]int(m.shape)), Values: r.flat[at:end:end]}
		r.list(m.name, m.scalar())
		at = end
	}
	for _, d := range n.derived {
		r.list(d.name, len(d.shape) == 0)
	}
	return r
}

func (r *results) list(name string, scalar bool) {
	if scalar {
		r.scalars = append(r.scalars, name)
	} else {
		r.tensors = append(r.tensors, name)
	}
}

// report divides what was added up over all ranks, and derives the rest.
func (p *pass) report(loss, count float64, sums []float64) error {
	r := p.results
	r.values[lossOut].Values[0], r.values[itemsOut].Values[0] = loss, count
	copy(r.flat, sums)
	for _, m := range p.net.metrics {
		for i, v := range r.values[m.name].Values {
			if !m.total {
				r.values[m.name].Values[i] = v / count
			}
		}
	}
	return p.derive()
}

// derive calls the functions of Outputs.Derived.
func (p *pass) derive() error {
	r := p.results
	if p.net.items.Likelihood {
		r.values[perplexity].Values[0] = math.Exp(r.values[lossOut].Item())
	}
	for _, d := range p.net.derived {
		t := d.of(r.values)
		if !t.whole() || !slices.Equal(t.Shape, d.shape) {
			return fmt.Errorf("Outputs.Derived[%q] returned %d numbers of shape %v; on zeros the shape was %v", d.name, len(t.Values), t.Shape, d.shape)
		}
		r.values[d.name] = t
	}
	return nil
}

// numbers are the results that are numbers.
func (r *results) numbers() map[string]float64 {
	out := map[string]float64{}
	for name, v := range r.values {
		if len(v.Shape) == 0 {
			out[name] = v.Item()
		}
	}
	return out
}

// Values are the results of the last evaluation, with those that are more than a number; nil: there was none. It is for after Run or Evaluate.
func (t *Trainer) Values() Values { return t.lastAll }

// keep is what a checkpoint stores of the tensors that were added up; the rest follows from it.
func (p *pass) keep() map[string]checkpoint.Array {
	var out map[string]checkpoint.Array
	for _, m := range p.net.metrics {
		if m.scalar() {
			continue
		}
		if out == nil {
			out = map[string]checkpoint.Array{}
		}
		var raw []byte
		for _, v := range p.values[m.name].Values {
			raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(v))
		}
		out[m.name] = checkpoint.Array{Shape: m.shape, Values: raw}
	}
	return out
}

// recall takes results of a checkpoint, and reports whether they are those of this model: otherwise the evaluation is repeated where one is due.
func (p *pass) recall(numbers map[string]float64, arrays map[string]checkpoint.Array) bool {
	for name, v := range p.values {
		if x, ok := numbers[name]; ok && len(v.Shape) == 0 {
			v.Values[0] = x
		}
	}
	for _, m := range p.net.metrics {
		if m.scalar() {
			continue
		}
		a, v := arrays[m.name], p.values[m.name].Values
		if !slices.Equal(a.Shape, []int(m.shape)) || len(a.Values) != 8*len(v) {
			return false
		}
		for i := range v {
			v[i] = math.Float64frombits(binary.LittleEndian.Uint64(a.Values[8*i:]))
		}
	}
	return p.derive() == nil
}

// logged are the results that the log has as numbers, and those that it has as arrays: without values where they are more than most.
func (r *results) logged(most int) (m []telemetry.Metric, t []telemetry.Tensor) {
	for _, name := range r.scalars {
		m = append(m, telemetry.Metric{Name: name, Value: telemetry.Known(r.values[name].Item())})
	}
	for _, name := range r.tensors {
		x := telemetry.Tensor{Name: name, Shape: r.values[name].Shape}
		if v := r.values[name].Values; len(v) <= most {
			x.Values = slices.Clone(v) // it is written later
		}
		t = append(t, x)
	}
	return m, t
}

// shape is that of a result, before the first one too.
func (p *pass) shape(name string) []int {
	for _, d := range p.net.derived {
		if d.name == name {
			return d.shape
		}
	}
	return p.values[name].Shape
}

// missing are the tensors that the log has without values.
func (p *pass) missing(most int) (names []string) {
	for _, name := range p.tensors {
		if n := npu.Shape(p.shape(name)).Elems(); n > int64(most) {
			names = append(names, fmt.Sprintf("%s (%s numbers)", name, amount.Count(n)))
		}
	}
	return names
}
