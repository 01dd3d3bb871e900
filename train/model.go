package train

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/gotrain/gotrain/ddp"
	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/train/data"
)

// Model adds a network to a builder and returns what to train on. It is called once for the training graph and once for the evaluation graph (see
// b.Training); it must add the same parameters both times. Errors stay in the builder.
type Model func(b *graph.Builder, in Inputs) Outputs

// Inputs are the fields of a batch by the name that the data source gave them, the batch dimension first.
type Inputs map[string]*graph.Node

// Outputs are what a model computes from one micro-batch. All are sums over its items, because the trainer divides once, by the count over all micro-batches
// and ranks: neither padding nor a short batch then biases the mean. Loss, Count and Weight are scalars, metrics may be tensors.
type Outputs struct {
	Loss  *graph.Node
	Count *graph.Node // items that the loss sums over; nil means the rows of the batch
	// Weight is what the loss is divided by instead of the count, such as the sum of the weights of the items; nil: the count.
	Weight *graph.Node
	// Items describes what Count counts. The zero value means samples, one per row.
	Items Items
	// Metrics are reported divided by the count: means over the items. An example is "top1": the number of rows whose label is the most likely class.
	Metrics map[string]*graph.Node
	// Sums are reported as they were added up: totals, such as Builder.ConfusionMatrix, or the samples of each class.
	Sums map[string]*graph.Node
	// Derived are computed on the host from the other results, once they are added up: the accuracy of each class from a confusion matrix. The functions are
	// pure; they get the same Values on all ranks, and at the start zeros, which shows the shape of what they return.
	Derived map[string]func(Values) Tensor
	// Logits [N K] are the outputs by row, of a classifier before the softmax; nil: the model has none. Training does not use them: package train/predict and
	// EvaluateSamples do.
	Logits *graph.Node
}

// Items describes what a loss is summed over.
type Items struct {
	Name      string // plural, such as "tokens"; "" is "samples"
	Short     string // for rates, such as "tok"; "" is Name
	PerSample int    // how many a full row of a batch has; 0 means 1
	// Likelihood means that the loss is a negative log-likelihood. Evaluations then report its exponential, the perplexity.
	Likelihood bool
}

func (i Items) perSample() int { return max(1, i.PerSample) }

func (i Items) name() string { return cmp.Or(i.Name, "samples") }

// rate is the unit of throughput.
func (i Items) rate() string { return cmp.Or(i.Short, i.name()) + "/s" }

// names of a program's outputs
const (
	lossOut   = "loss"
	countOut  = "count"
	weightOut = "weight"
	itemsOut  = "items" // not of a program: the count, in results
)

// network is a model built for a batch size: its graph and the names of its outputs.
type network struct {
	b       *graph.Builder
	metrics []metric // by name
	derived []rule
	// The model counts its own items, and divides the loss by something else.
	counted, weighted bool
	items             Items
	logits            *graph.Node // nil: the model has none
}

// sums are the names of the outputs that are added up besides loss and count: the metrics, and the weight behind them.
func (n *network) sums() (names []string) {
	for _, m := range n.metrics {
		names = append(names, m.name)
	}
	if n.weighted {
		names = append(names, weightOut)
	}
	return names
}

// divisor is what the sum of a verdict's losses is divided by.
func (n *network) divisor(v ddp.Verdict) float64 {
	if n.weighted && len(v.Sums) > 0 {
		return v.Sums[len(v.Sums)-1]
	}
	return v.Count
}

// build runs the model for batches with the given fields.
func build(m Model, fields []data.Field, batch int, training bool, opts []graph.Option) (*network, error) {
	opts = slices.Clone(opts)
	if !training {
		opts = append(opts, graph.ForEval())
	}
	b := graph.New(opts...)
	in := Inputs{}
	for _, f := range fields {
		in[f.Name] = b.Input(f.Name, f.DType, append([]int{batch}, f.Shape...)...)
	}
	out := m(b, in)
	if err := b.Err(); err != nil {
		if errors.Is(err, graph.ErrNil) {
			err = fmt.Errorf("%w\nhint: use the fields of a batch as the inputs of the model: %s", err, fieldList(fields))
		}
		return nil, err
	}
	if out.Loss == nil {
		return nil, fmt.Errorf("train: the model returned no loss\nhint: set Outputs.Loss to a scalar, the sum over the items of the batch")
	}
	n := &network{b: b, counted: out.Count != nil, weighted: out.Weight != nil, items: out.Items, logits: out.Logits}
	b.Loss(out.Loss) // also the output "loss"
	if n.counted {
		b.Output(countOut, out.Count)
	}
	if n.weighted {
		b.Output(weightOut, out.Weight)
	}
	if err := n.addMetrics(out); err != nil {
		return nil, err
	}
	if training {
		return n, b.Grad()
	}
	return n, b.Err()
}
