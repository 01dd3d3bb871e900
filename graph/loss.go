package graph

import (
	"math"
	"slices"

	"github.com/gotrain/gotrain/npu"
)

// LossOption changes a loss, or TopK. One that a loss does not know is an error of the Builder.
type LossOption struct {
	name string
	set  func(*lossOptions)
}

type lossOptions struct {
	smoothing float64
	ignore    int
	classes   []float64
	pos       []float64
	rows      *Node
	threshold float64 // NaN: none
	sum       bool
}

// Smoothing spreads that share of the target evenly over all classes (PyTorch's label_smoothing). It is for labels; probabilities are smoothed where they are
// made.
func Smoothing(s float64) LossOption {
	return LossOption{"Smoothing", func(o *lossOptions) { o.smoothing = s }}
}

// IgnoreIndex makes rows with that label count for nothing. The default is -100.
func IgnoreIndex(i int) LossOption {
	return LossOption{"IgnoreIndex", func(o *lossOptions) { o.ignore = i }}
}

// ClassWeights weighs the loss of each class: PyTorch's CrossEntropyLoss(weight=). The count becomes the sum of the weights of the labels, so that loss divided
// by count is the weighted mean, over any number of batches and ranks. With probabilities as targets the count stays the number of rows, as in PyTorch.
func ClassWeights(w []float64) LossOption {
	return LossOption{"ClassWeights", func(o *lossOptions) { o.classes = slices.Clone(w) }}
}

// PosWeight weighs the part of BCE where the target is 1: one number, or one for each place on the last axis (PyTorch's pos_weight).
func PosWeight(w ...float64) LossOption {
	return LossOption{"PosWeight", func(o *lossOptions) { o.pos = slices.Clone(w) }}
}

// RowWeights weighs the samples: w is f32[N]. A row of weight 0 does not count, whatever its target is. The count is the sum of the weights.
func RowWeights(w *Node) LossOption {
	return LossOption{"RowWeights", func(o *lossOptions) { o.rows = w }}
}

// Threshold makes targets of BCE 1 where they are above t, and 0 elsewhere: timm's target_threshold, for mixed samples (arXiv 2110.00476).
func Threshold(t float64) LossOption {
	return LossOption{"Threshold", func(o *lossOptions) { o.threshold = t }}
}

// SumElements makes a row's loss the sum over its elements instead of their mean: timm's sum_classes. The loss is then PyTorch's of reduction="sum".
func SumElements() LossOption {
	return LossOption{"SumElements", func(o *lossOptions) { o.sum = true }}
}

// options applies those that a loss knows.
func (b *Builder) options(loss string, opts []LossOption, known ...string) lossOptions {
	o := lossOptions{ignore: -100, threshold: math.NaN()}
	for _, opt := range opts {
		if opt.set == nil {
			continue
		}
		if !slices.Contains(known, opt.name) {
			b.Failf("%s does not know the option %s", loss, opt.name)
			continue
		}
		opt.set(&o)
	}
	if !(o.smoothing >= 0 && o.smoothing < 1) {
		b.Failf("%s: smoothing is %g, want 0 … 1 (excluded)", loss, o.smoothing)
	}
	return o
}

// CrossEntropy compares logits [… C] with labels i32[…], or with probabilities f32[… C] (soft targets: of mixed samples, of a teacher). It gives the SUM of the
// losses of the valid rows, and their number, both f32 scalars. Rows with the label -100, and rows whose probabilities are all 0, are not valid. Probabilities
// get no gradient. Options: Smoothing, IgnoreIndex (labels); ClassWeights.
func (b *Builder) CrossEntropy(logits, target *Node, opts ...LossOption) (loss, count *Node) {
	o := b.options("CrossEntropy", opts, "Smoothing", "IgnoreIndex", "ClassWeights")
	if b.soft(target) {
		if o.smoothing != 0 {
			b.Failf("CrossEntropy: Smoothing is for labels, and the target is %s\nhint: smooth the probabilities where they are made", b.Desc(target))
		}
		logits, target = b.matrix(logits), b.matrix(target)
		if o.classes != nil {
			target = b.Mul(target, b.classWeights(b.Dim(logits, -1), o))
		}
		out := b.Apply(npu.SoftCrossEntropy, nil, logits, target)
		return out[0], out[1]
	}
	logits, target = b.rows(logits, target)
	if o.classes != nil {
		return b.weightedCrossEntropy(logits, target, o)
	}
	out := b.Apply(npu.CrossEntropy, npu.Attrs{"smoothing": o.smoothing, "ignore_index": o.ignore}, logits, target)
	return out[0], out[1]
}

// weightedCrossEntropy: Σ over classes of weight · smoothed target · loss of the class; the count is Σ of the weights of the labels.
func (b *Builder) weightedCrossEntropy(logits, labels *Node, o lossOptions) (loss, count *Node) {
	on, off := smoothed(o.smoothing, b.Dim(logits, -1))
	hot := b.oneHot(labels, b.Dim(logits, -1), on, off, o)
	return b.Apply(npu.SoftCrossEntropy, nil, logits, hot[0])[0], b.Sum(hot[1])
}

// smoothed are the targets of the label and of all other classes.
func smoothed(s float64, classes int) (on, off float64) {
	off = s / float64(classes)
	return 1 - s + off, off
}

// classWeights are the weights as a row f32[1 C].
func (b *Builder) classWeights(classes int, o lossOptions) *Node {
	return b.oneHot(b.Const(npu.I32, 0, 1), classes, 1, 1, o)[0]
}

func (b *Builder) oneHot(labels *Node, classes int, on, off float64, o lossOptions) []*Node {
	a := npu.Attrs{"classes": classes, "on": on, "off": off, "ignore_index": o.ignore}
	if o.classes != nil {
		a["weights"] = o.classes
	}
	return b.Apply(npu.OneHot, a, labels)
}

// OneHot makes labels i32[N] probabilities f32[N classes]: 1 at the label, with Smoothing and ClassWeights if these are given, and 0 for rows that do not
// count. weights, f32[N], is 1 for rows that count (the weight of the label's class with ClassWeights) and 0 for others: see RowWeights.
func (b *Builder) OneHot(labels *Node, classes int, opts ...LossOption) (target, weights *Node) {
	o := b.options("OneHot", opts, "Smoothing", "IgnoreIndex", "ClassWeights")
	on, off := smoothed(o.smoothing, max(classes, 1))
	out := b.oneHot(labels, classes, on, off, o)
	return out[0], out[1]
}

// BCE is the binary cross-entropy of logits [N …], each with its target, f32 of the same shape, between 0 and 1 (PyTorch's BCEWithLogitsLoss); or of logits
// [… C] with labels i32[…], which are 1 for the label's class and 0 for others. It gives the sum over the rows of the MEAN over a row's elements, and the
// number of rows, both f32 scalars, so that loss divided by count is the mean. Options: SumElements, PosWeight, Threshold; RowWeights (targets); Smoothing,
// IgnoreIndex, ClassWeights (labels: the weight of a row). Smoothing, Threshold and SumElements make it timm's BinaryCrossEntropy. Targets get no gradient.
func (b *Builder) BCE(logits, target *Node, opts ...LossOption) (loss, count *Node) {
	o := b.options("BCE", opts, "SumElements", "PosWeight", "Threshold", "RowWeights", "Smoothing", "IgnoreIndex", "ClassWeights")
	if !b.soft(target) {
		if o.rows != nil {
			b.Failf("BCE: RowWeights is for targets f32[N …]\nhint: with labels, use IgnoreIndex or ClassWeights")
		}
		return b.labelledBCE(logits, target, o)
	}
	if o.smoothing != 0 || o.classes != nil {
		b.Failf("BCE: Smoothing and ClassWeights are for labels, and the target is %s\nhint: smooth the target where it is made; use RowWeights or PosWeight",
			b.Desc(target))
	}
	if o.threshold == o.threshold {
		target = b.Greater(target, b.Const(npu.F32, o.threshold))
	}
	return b.elements(npu.BCE, logits, target, o)
}

func (b *Builder) labelledBCE(logits, labels *Node, o lossOptions) (loss, count *Node) {
	logits, labels = b.rows(logits, labels)
	c := b.Dim(logits, -1)
	on, off := smoothed(o.smoothing, c)
	if t := o.threshold; t == t {
		on, off = above(on, t), above(off, t)
	}
	weights := o.classes
	o.classes = nil
	hot := b.oneHot(labels, c, on, off, o)
	if o.rows = hot[1]; weights != nil {
		o.classes = weights
		o.rows = b.oneHot(labels, c, 1, 0, o)[1]
	}
	return b.elements(npu.BCE, logits, hot[0], o)
}

func above(v, t float64) float64 {
	if v > t {
		return 1
	}
	return 0
}

// MSE is the squared error of x [N …] and a target, f32 of the same shape. It gives the sum over the rows of the MEAN over a row's elements, and the number of
// rows, both f32 scalars, so that loss divided by count is PyTorch's MSELoss. Options: SumElements (the loss is then that of reduction="sum"), RowWeights. The
// target has a gradient, too.
func (b *Builder) MSE(x, target *Node, opts ...LossOption) (loss, count *Node) {
	return b.elements(npu.MSE, x, target, b.options("MSE", opts, "SumElements", "RowWeights"))
}

// elements adds a loss of single elements.
func (b *Builder) elements(kind string, x, target *Node, o lossOptions) (loss, count *Node) {
	a, in := npu.Attrs{"weighted": o.rows != nil}, []*Node{x, target}
	if o.rows != nil {
		in = append(in, o.rows)
	}
	if o.pos != nil {
		a["pos_weight"] = o.pos
	}
	out := b.Apply(kind, a, in...)
	loss, count = out[0], out[1]
	if s := b.Desc(x).Shape; b.err == nil && !o.sum && s.Elems() != int64(s[0]) {
		loss = b.Affine(loss, float64(s[0])/float64(s.Elems()), 0)
	}
	return loss, count
}

// TopK counts the rows of logits [… C] whose label is among the k largest: an f32 scalar without gradient.
func (b *Builder) TopK(logits, labels *Node, k int, opts ...LossOption) *Node {
	o := b.options("TopK", opts, "IgnoreIndex")
	logits, labels = b.rows(logits, labels)
	return b.apply(npu.TopK, npu.Attrs{"ignore_index": o.ignore, "k": k}, []*Node{logits, labels})
}

// soft reports whether a target is floats: probabilities, not labels.
func (b *Builder) soft(target *Node) bool {
	return b.err == nil && target != nil && b.Desc(target).DType.IsFloat()
}

// rows makes logits [… C] and labels […] two- and one-dimensional.
func (b *Builder) rows(logits, labels *Node) (*Node, *Node) {
	if b.err != nil || logits == nil || labels == nil || len(b.Desc(logits).Shape) <= 2 {
		return logits, labels
	}
	logits = b.matrix(logits)
	return logits, b.Reshape(labels, b.Dim(logits, 0))
}

// matrix makes x [… C] two-dimensional.
func (b *Builder) matrix(x *Node) *Node {
	if b.err != nil || x == nil {
		return x
	}
	s := b.Desc(x).Shape
	if len(s) <= 2 {
		return x
	}
	return b.Reshape(x, int(s[:len(s)-1].Elems()), s[len(s)-1])
}
