package assemble

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/data/images/augment"
)

// classLoss is the loss of pictures that are classified, and the number of samples that count. Evaluation has cross-entropy without smoothing whatever is
// trained, so that its losses are comparable. Targets of mixed samples have the smoothing in them. weights are those of the classes, nil for none; where labels
// are weighted, the loss is divided by weight.
func classLoss(b *graph.Builder, m *recipes.Model, weights []float64, logits *graph.Node, in train.Inputs) (loss, count, weight *graph.Node) {
	label, target := in["label"], in[augment.TargetField]
	if !b.Training() {
		loss, count = b.CrossEntropy(logits, label)
		return loss, count, nil
	}
	var opts []graph.LossOption
	if target == nil && m.LabelSmoothing > 0 {
		opts = append(opts, graph.Smoothing(m.LabelSmoothing))
	}
	if m.Loss == "bce" {
		loss, count = classBCE(b, m, logits, label, target, opts)
		return loss, count, nil
	}
	if weights != nil {
		opts = append(opts, graph.ClassWeights(weights))
	}
	if target != nil {
		loss, count = b.CrossEntropy(logits, target, opts...)
		return loss, count, nil
	}
	loss, count = b.CrossEntropy(logits, label, opts...)
	if weights != nil {
		_, valid := b.OneHot(label, b.Dim(logits, -1))
		weight, count = count, b.Sum(valid)
	}
	return loss, count, weight
}

// classWeights are the weights of the classes, nil for none.
func classWeights(r *recipes.Recipe, src data.Source, classes int) ([]float64, error) {
	m := &r.Model
	if n := len(m.ClassWeights); n > 0 {
		if n != classes {
			hint := "one number a class"
			if names := src.Classes(); len(names) > 0 && len(names) <= 20 { // more would hide the error
				hint += ", in the order of the classes " + strings.Join(names, ", ")
			}
			return nil, fmt.Errorf("recipes: model.class_weights has %d numbers, but %s has %d classes\nhint: %s", n, src.Name(), classes, hint)
		}
		return m.ClassWeights, nil
	}
	if m.ClassWeighting != "balanced" {
		return nil, nil
	}
	if mixed, ok := src.(*augment.Mixed); ok {
		src = mixed.Unwrap()
	}
	l, ok := src.(data.Labelled)
	if !ok {
		return slices.Repeat([]float64{1}, classes), nil // random samples, for a plan
	}
	samples := make([]int, classes)
	for i := range l.Len() {
		if c := l.Label(i); c >= 0 && c < classes {
			samples[c]++
		}
	}
	w := make([]float64, classes)
	for c, n := range samples {
		if n == 0 {
			return nil, fmt.Errorf("recipes: model.class_weighting = \"balanced\", but class %d of %s has no training samples\n"+
				"hint: set model.class_weights instead, or remove the class", c, src.Name())
		}
		w[c] = float64(l.Len()) / float64(classes*n)
	}
	return w, nil
}

func classBCE(b *graph.Builder, m *recipes.Model, logits, label, target *graph.Node, opts []graph.LossOption) (loss, count *graph.Node) {
	if m.BCEThreshold >= 0 {
		opts = append(opts, graph.Threshold(m.BCEThreshold))
	}
	if m.BCESum {
		opts = append(opts, graph.SumElements())
	}
	if target == nil {
		return b.BCE(logits, label, opts...)
	}
	_, valid := b.OneHot(label, b.Dim(logits, -1)) // rows that do not count have targets of 0, which are targets like others here
	return b.BCE(logits, target, append(opts, graph.RowWeights(valid))...)
}

// Loss describes in words what training minimises; "" is plain cross-entropy, or the loss of a language model.
func Loss(r *recipes.Recipe) string {
	m := &r.Model
	switch {
	case m.Loss != "bce" && m.ClassWeighting == "balanced":
		return "cross-entropy, classes weighted by their number of samples"
	case m.Loss != "bce" && len(m.ClassWeights) > 0:
		return fmt.Sprintf("cross-entropy, classes weighted by %v", m.ClassWeights)
	case m.Loss != "bce":
		return ""
	}
	s := "binary cross-entropy of each class"
	if m.BCESum {
		s += ", summed"
	}
	if m.BCEThreshold >= 0 {
		s += fmt.Sprintf("; targets above %g are 1, others 0", m.BCEThreshold)
	}
	return s
}
