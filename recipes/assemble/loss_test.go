package assemble

import (
	"math"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/graphtest"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/data/images/augment"
)

// lossOf computes the loss of logits [2 3] and its gradient by the logits.
func lossOf(t *testing.T, m recipes.Model, target []float64, labels ...float64) (loss, count float64, grad []float64) {
	t.Helper()
	b := graph.New()
	in := train.Inputs{"label": b.Input("label", npu.I32, 2)}
	if target != nil {
		in[augment.TargetField] = b.Input(augment.TargetField, npu.F32, 2, 3)
	}
	l, n, _ := classLoss(b, &m, nil, b.Param("x", npu.Shape{2, 3}, graph.Zeros()), in)
	b.Loss(l)
	b.Output("sum", l)
	b.Output("count", n)
	g, err := b.Lower()
	if err != nil {
		t.Fatal(err)
	}
	run := graphtest.NewF64(g)
	set := func(name string, v ...float64) {
		if err := run.Set(name, v...); err != nil {
			t.Fatal(err)
		}
	}
	set("x", 1, -2, 0.5, 3, 0, -1)
	set("label", labels...)
	set(graph.LossScaleInput, 1)
	if target != nil {
		set(augment.TargetField, target...)
	}
	if err := run.Run(); err != nil {
		t.Fatal(err)
	}
	value := func(name string) float64 {
		v, err := run.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		return v[0]
	}
	return value("sum"), value("count"), run.Grad("x")
}

// The losses of a recipe follow the formulas of timm's BinaryCrossEntropy and SoftTargetCrossEntropy. Package npu/ref has PyTorch's numbers.
func TestLosses(t *testing.T) {
	x := []float64{1, -2, 0.5, 3, 0, -1}
	bce := func(i int, y float64) float64 { return math.Log1p(math.Exp(x[i])) - y*x[i] }
	near := func(what string, got, want float64) {
		if math.Abs(got-want) > 1e-6 {
			t.Errorf("%s: %g, want %g", what, got, want)
		}
	}
	mixed := []float64{0.7, 0.3, 0, 0, 0.1, 0.9}
	loss, n, _ := lossOf(t, recipes.Model{Loss: "bce", BCEThreshold: 0.2, BCESum: true}, mixed, 0, 2)
	near("mixed, thresholded, summed", loss, bce(0, 1)+bce(1, 1)+bce(2, 0)+bce(3, 0)+bce(4, 0)+bce(5, 1))
	near("rows", n, 2)
	loss, n, grad := lossOf(t, recipes.Model{Loss: "bce", BCEThreshold: -1}, append([]float64{0.7, 0.3, 0}, 0, 0, 0), 0, -100)
	near("mixed, with a row that does not count", loss, (bce(0, 0.7)+bce(1, 0.3)+bce(2, 0))/3)
	near("rows that count", n, 1)
	near("gradient of the row that does not count", grad[3], 0)
	loss, _, _ = lossOf(t, recipes.Model{Loss: "bce", BCEThreshold: -1, LabelSmoothing: 0.3}, nil, 2, 0)
	near("labels, smoothed", loss, (bce(0, 0.1)+bce(1, 0.1)+bce(2, 0.8)+bce(3, 0.8)+bce(4, 0.1)+bce(5, 0.1))/3)
	lse := func(i int) float64 { return math.Log(math.Exp(x[i]) + math.Exp(x[i+1]) + math.Exp(x[i+2])) }
	loss, n, _ = lossOf(t, recipes.Model{Loss: "ce"}, mixed, 0, -100)
	near("soft cross-entropy", loss, 0.7*(lse(0)-1)+0.3*(lse(0)+2)+0.1*lse(3)+0.9*(lse(3)+1))
	near("its rows", n, 2)
}

func TestLossInWords(t *testing.T) {
	r := recipe(t, "resnet50", "model.loss=bce", "model.bce_threshold=0.2", "model.bce_sum_classes=true")
	if s := Loss(r); s != "binary cross-entropy of each class, summed; targets above 0.2 are 1, others 0" {
		t.Error(s)
	}
	if s := r.Settings(); s["model.loss"] == "" || s["model.bce_threshold"] != "0.2" {
		t.Errorf("settings of a checkpoint: %v", s)
	}
	if s := recipe(t, "resnet50").Settings(); s["model.loss"] != "" {
		t.Error("a checkpoint of plain cross-entropy keeps model.loss")
	}
	if w := recipe(t, "resnet50", "model.bce_sum_classes=true").Warnings(); !strings.Contains(strings.Join(w, "\n"), "model.bce_sum_classes") {
		t.Errorf("a key without effect is not reported: %v", w)
	}
}
