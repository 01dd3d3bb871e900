package recipes

import (
	"math"
	"slices"
)

// lossKeys say what networks of pictures minimise.
var lossKeys = []string{"model.loss", "model.bce_threshold", "model.bce_sum_classes", "model.class_weights", "model.class_weighting"}

// classWeights checks the weights of classes.
func (c *checker) classWeights() {
	m, d := &c.r.Model, &c.r.Data
	for i, w := range m.ClassWeights {
		if !(w > 0) || math.IsInf(w, 0) {
			c.bad("model.class_weights", "", "number %d must be above 0, got %g", i+1, w)
		}
	}
	balanced := m.ClassWeighting == "balanced"
	if balanced && len(m.ClassWeights) > 0 {
		c.bad("model.class_weighting", "remove one of the two", "must be \"none\" with model.class_weights")
	}
	if m.Loss == "bce" && (balanced || len(m.ClassWeights) > 0) {
		c.bad("model.loss", "use ce, or remove the weights", "must be \"ce\" with weights of classes")
	}
	if balanced && !slices.Contains(encoded, d.Kind) && d.Kind != "idx" {
		c.bad("model.class_weighting", "set model.class_weights instead",
			"\"balanced\" needs data whose labels are known before they are read, not data.kind = %q", d.Kind)
	}
}
