package predict

import (
	"fmt"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/plan"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/train"
)

// reader reads parameters and running statistics as the kernels want them: those of convolutions that normalise their results are not the trained ones.
type reader struct {
	place   string // for messages
	weights train.Weights
	made    map[string][]float32 // what folds have made, by name
}

// read returns the values of a parameter or state.
func (r *reader) read(name string, d npu.Desc) ([]float32, error) {
	if v, ok := r.made[name]; ok {
		delete(r.made, name)
		return v, nil
	}
	shape, ok := r.weights.Shape(name)
	if !ok {
		return nil, fmt.Errorf("predict: %s lacks %s, which the network has\nhint: the weights are of another network", r.place, name)
	}
	if !npu.Shape(shape).Equal(d.Shape) {
		return nil, fmt.Errorf("predict: %s is %v in %s, %v in the network\nhint: the weights are of another network", name, shape, r.place, d.Shape)
	}
	v := make([]float32, d.Shape.Elems())
	if err := r.weights.Read(name, v); err != nil {
		return nil, fmt.Errorf("predict: %w", err)
	}
	return v, nil
}

// fold computes the weights and biases of convolutions that took in the normalisation behind them.
func (r *reader) fold(prog *graph.Program, folds []plan.Fold) error {
	descs := map[string]npu.Desc{}
	for _, x := range prog.Weights() {
		descs[x.Name] = x.Desc
	}
	for _, x := range prog.States() {
		descs[x.Name] = x.Desc
	}
	made := map[string][]float32{}
	for _, f := range folds {
		var v [6][]float32
		for i, name := range []string{f.Weight, f.Bias, f.Gamma, f.Beta, f.Mean, f.Var} {
			if name == "" {
				continue
			}
			var err error
			if v[i], err = r.read(name, descs[name]); err != nil {
				return err
			}
		}
		if err := f.Apply(v[0], v[1], v[2], v[3], v[4], v[5]); err != nil {
			return fmt.Errorf("predict: %s: %w", r.place, err)
		}
		made[f.Weight], made[f.Beta] = v[0], v[3]
	}
	r.made = made
	return nil
}
