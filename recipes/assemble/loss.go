package assemble

import (
	"fmt"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/data/images/augment"
)

// classLoss is the loss of pictures that are classified, and the number of samples that count. Evaluation has cross-entropy without smoothing whatever is
// trained, so that its losses are comparable. Targets of mixed samples have the smoothing in them.
func classLoss(b *graph.Builder, m *recipes.Model, logits *graph.Node, in train.Inputs) (loss, count *graph.Node) {
	label, target := in["label"], in[augment.TargetField]
	if !b.Training() {
		return b.CrossEntropy(logits, label)
	}
	var opts []graph.LossOption
	if target == nil && m.LabelSmoothing > 0 {
		opts = append(opts, graph.Smoothing(m.LabelSmoothing))
	}
	if m.Loss == "bce" {
		return classBCE(b, m, logits, label, target, opts)
	}
	if target == nil {
		target = label
	}
	return b.CrossEntropy(logits, target, opts...)
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
	if m.Loss != "bce" {
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
