package telemetry

import "encoding/json"

// Tensor is a metric of several numbers in row-major order. Files have it as {"name", "shape", "values"}; consoles and TensorBoard leave it out.
type Tensor struct {
	Name   string
	Shape  []int
	Values []float64 // nil: left out, because there are too many
}

// tensor is a Tensor in JSON, which has no number for NaN and infinities: see Value.
type tensor struct {
	Name   string  `json:"name"`
	Shape  []int   `json:"shape"`
	Values []Value `json:"values"`
}

// MarshalJSON writes null for values that are left out.
func (t Tensor) MarshalJSON() ([]byte, error) {
	x := tensor{Name: t.Name, Shape: t.Shape}
	if t.Values != nil {
		x.Values = make([]Value, len(t.Values))
	}
	for i, v := range t.Values {
		x.Values[i] = Known(v)
	}
	return json.Marshal(x)
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (t *Tensor) UnmarshalJSON(raw []byte) error {
	var x tensor
	if err := json.Unmarshal(raw, &x); err != nil {
		return err
	}
	*t = Tensor{Name: x.Name, Shape: x.Shape}
	if x.Values != nil {
		t.Values = make([]float64, len(x.Values))
	}
	for i, v := range x.Values {
		t.Values[i] = v.X
	}
	return nil
}
