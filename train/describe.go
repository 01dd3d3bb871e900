package train

import (
	"encoding/json"

	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/data"
)

// describe is what a checkpoint says of the network, for programs that use it without the training (package train/predict).
func (c *Config) describe() *checkpoint.Network {
	n := checkpoint.Network{}
	if c.Network != nil {
		n = *c.Network
	}
	n.Compute = c.Compute.String()
	if n.Inputs == nil {
		n.Inputs = inputsOf(c.Data.Fields())
	}
	for _, src := range []data.Source{c.Eval, c.Data} { // the evaluation has the transform that nothing augments
		if p, ok := src.(data.Preparing); ok && n.Prepare == nil {
			n.Prepare = p.Preparation()
		}
	}
	if !json.Valid(n.Prepare) { // a source's mistake must not cost the checkpoint
		n.Prepare = nil
	}
	return &n
}

func inputsOf(fields []data.Field) []checkpoint.Input {
	var out []checkpoint.Input
	for _, f := range fields {
		out = append(out, checkpoint.Input{Name: f.Name, DType: f.DType.String(), Shape: f.Shape, Target: f.Target})
	}
	return out
}
