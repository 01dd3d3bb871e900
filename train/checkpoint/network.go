package checkpoint

import (
	"encoding/json"
	"fmt"

	"github.com/gotrain/gotrain/train/foreign"
)

// Network describes the network whose weights a checkpoint holds, and what it reads, so that programs use it without knowing the training.
type Network struct {
	Family  string          `json:"family,omitempty"`  // its name in package graph/models; "": the program's own model
	Config  json.RawMessage `json:"config,omitempty"`  // of the family
	Compute string          `json:"compute,omitempty"` // dtype of activations in training: "f32", "bf16", "f16"
	Inputs  []Input         `json:"inputs,omitempty"`  // fields of a sample
	// Prepare says how a sample is made from a file, as the data source describes it (data.Preparing); for pictures an images.Preparation.
	Prepare json.RawMessage `json:"prepare,omitempty"`
}

// Input is one field of a sample, without the batch dimension.
type Input struct {
	Name   string `json:"name"`
	DType  string `json:"dtype"`
	Shape  []int  `json:"shape,omitempty"`
	Target bool   `json:"target,omitempty"` // what the network learns to predict
}

// String describes the network in a few words.
func (n *Network) String() string {
	if n == nil {
		return "unknown"
	}
	s := "a model of its own program"
	if n.Family != "" {
		s = n.Family + " " + string(compact(n.Config))
	}
	for _, in := range n.Inputs {
		if !in.Target {
			s += fmt.Sprintf(", %s %s%v", in.Name, in.DType, in.Shape)
		}
	}
	return foreign.Printable(s)
}

func compact(raw json.RawMessage) json.RawMessage {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return raw
	}
	out, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return out
}
