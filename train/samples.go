package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/train/data"
)

// Sample is what an evaluation says of one held-out sample.
type Sample struct {
	Index int     `json:"index"` // in the data source
	Label int     `json:"label"`
	Loss  float64 `json:"loss"` // cross-entropy of the label, not smoothed
	// Top are the likeliest classes, the likeliest first; of equal ones the smaller label comes first.
	Top []Guess `json:"top"`
}

// Guess is a class with its probability.
type Guess struct {
	Label       int     `json:"label"`
	Probability float64 `json:"probability"`
}

// EvaluateSamples is Evaluate, and returns every held-out sample too, with its k likeliest classes, in the order of the data source; on rank 0 only. It needs
// a model that sets Outputs.Logits, and samples with one label each.
func (t *Trainer) EvaluateSamples(ctx context.Context, k int) (map[string]float64, []Sample, error) {
	if k < 1 {
		return nil, nil, fmt.Errorf("train: the %d likeliest classes of a sample: at least 1", k)
	}
	t.each = &sampler{k: k}
	out, err := t.evaluateOnce(ctx)
	if err != nil {
		return nil, nil, err
	}
	return out, t.each.all, nil
}

// Outputs is the number of logits of a sample, known after EvaluateSamples.
func (t *Trainer) Outputs() int {
	if t.each == nil {
		return 0
	}
	return t.each.width
}

// logitsOut is the name of a program's output.
const logitsOut = "logits"

// errNoLogits is a wrong question, so a supervisor does not repeat it.
var errNoLogits = launch.WithCode(launch.ExitUsage, errors.New("train: the model has no outputs by sample\n"+
	"hint: a network that classifies sets train.Outputs.Logits; a language model has none"))

// sampler collects the samples of an evaluation.
type sampler struct {
	k      int
	at     npu.Ptr // logits
	host   []byte
	width  int // logits of a row
	target int // field with the labels
	mine   []float64
	all    []Sample
}

// wire finds the logits and the labels, once the evaluation network is bound.
func (s *sampler) wire(p *pass, locked *pinned, fields []data.Field) (err error) {
	at, d, ok := p.prog.Output(logitsOut)
	if !ok || len(d.Shape) != 2 || d.Shape[0] != p.rows || d.DType != npu.F32 || d.Layout != npu.Plain {
		return fmt.Errorf("train: the logits are %v, want f32[%d K]: one row for each of the batch", d, p.rows)
	}
	s.at, s.width, s.k = at, d.Shape[1], min(s.k, d.Shape[1])
	s.target = slices.IndexFunc(fields, func(f data.Field) bool { return f.Target && f.Elems() == 1 && f.DType == npu.I32 })
	if s.target < 0 {
		return fmt.Errorf("train: no field of %s is the label of a sample", fieldList(fields))
	}
	s.host, err = locked.alloc(d.PlainBytes())
	return err
}

// record is the number of values that a sample takes on its way to rank 0: index, label, loss, and label and probability of each guess.
func (s *sampler) record() int { return 3 + 2*s.k }

// add notes the samples of a batch, whose logits are on the host.
func (s *sampler) add(b *data.Batch) {
	labels := data.I32(b.Fields[s.target])
	logits := data.F32(s.host)
	for row, index := range b.Indices {
		if index < 0 || row >= b.Valid {
			continue
		}
		guesses, loss := rank(logits[row*s.width:][:s.width], int(labels[row]), s.k)
		s.mine = append(s.mine, float64(index), float64(labels[row]), loss)
		for _, g := range guesses {
			s.mine = append(s.mine, float64(g.Label), g.Probability)
		}
	}
}

// rank returns the k likeliest classes and the cross-entropy of a label, in float64.
func rank(logits []float32, label, k int) (top []Guess, loss float64) {
	if label >= 0 && label < len(logits) {
		most, sum := softmax(logits)
		loss = most + math.Log(sum) - float64(logits[label])
	}
	return Likeliest(logits, k), loss
}

// softmax returns what turns logits into probabilities: exp(logit-most) / sum.
func softmax(logits []float32) (most, sum float64) {
	most = float64(slices.Max(logits))
	for _, v := range logits {
		sum += math.Exp(float64(v) - most)
	}
	return most, sum
}

// Likeliest returns the k likeliest classes by the logits of a sample, with their probabilities (the softmax, in float64): the likeliest first, of equal ones
// the smaller label first; fewer if there are fewer classes.
func Likeliest(logits []float32, k int) (top []Guess) {
	if k < 1 || len(logits) == 0 {
		return nil
	}
	most, sum := softmax(logits)
	for i, v := range logits {
		at := len(top)
		for at > 0 && logits[top[at-1].Label] < v {
			at--
		}
		if at < k {
			if len(top) == k {
				top = top[:k-1]
			}
			top = slices.Insert(top, at, Guess{i, math.Exp(float64(v)-most) / sum})
		}
	}
	return top
}

// gatherSamples brings the samples of all ranks to rank 0.
func (t *Trainer) gatherSamples(ctx context.Context) error {
	s := t.each
	room := t.held.Sampler().Batches() * t.cfg.EvalBatch * s.record() // the same on all ranks
	mine := make([]float64, room)
	used := copy(mine, s.mine)
	for i := used; i < room; i += s.record() {
		mine[i] = -1
	}
	if room == 0 {
		return nil
	}
	all, err := t.toFirst(ctx, "what is known of each sample", unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(mine))), 8*room))
	if err != nil || t.comm.Rank() != 0 {
		return err
	}
	for _, raw := range all {
		for v := unsafe.Slice((*float64)(unsafe.Pointer(unsafe.SliceData(raw))), len(raw)/8); len(v) > 0; v = v[s.record():] {
			if v[0] < 0 {
				continue
			}
			x := Sample{Index: int(v[0]), Label: int(v[1]), Loss: v[2]}
			for i := range s.k {
				x.Top = append(x.Top, Guess{int(v[3+2*i]), v[4+2*i]})
			}
			s.all = append(s.all, x)
		}
	}
	slices.SortFunc(s.all, func(a, b Sample) int { return cmp.Compare(a.Index, b.Index) })
	return nil
}
