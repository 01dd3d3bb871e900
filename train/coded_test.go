package train

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/ddp"
	"github.com/gotrain/gotrain/ddp/bucket"
	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/optim"
	"github.com/gotrain/gotrain/train/telemetry"
)

// witness is a codec that encodes nothing. It writes down what the trainer tells it.
type witness struct {
	mem     []comm.Mem
	begun   []int64
	scales  []float64
	settled []bool
	spoiled bool // decoded gradients are not finite
	bucket  int
}

func (w *witness) Name() string { return "witness" }
func (w *witness) Phases() int  { return 1 }
func (w *witness) Open(_ *bucket.Plan, mem []comm.Mem, _ comm.Communicator) error {
	w.mem = mem
	return nil
}

func (w *witness) Begin(step int64, scale float64) {
	if step >= 0 {
		w.begun, w.scales = append(w.begun, step), append(w.scales, scale)
	}
}

func (w *witness) Prepare(k, _ int) (comm.Call, comm.Mem, comm.Mem, error) {
	m := w.mem[k]
	return comm.Call{Kind: comm.AllReduce, DType: m.DType, Elems: m.Elems}, m, m, nil
}
func (w *witness) Finish(int) error { return nil }
func (w *witness) Settle(ok bool)   { w.settled = append(w.settled, ok) }
func (w *witness) Close() error     { return nil }
func (w *witness) Coded() ddp.Coded {
	return ddp.Coded{Raw: 400, Sent: 100, Lost: 1, Norm: 100, Residual: 400, NonFinite: w.spoiled, Bucket: w.bucket}
}

func withCodec(c ddp.Codec, from int) Option {
	return func(cfg *Config) { cfg.Codec, cfg.CodecFrom = c, from }
}

// A step with a codec is settled once: as applied, unless the ranks skip it. The codec knows the loss scale of each step.
func TestSkippedStepsAreSettledSo(t *testing.T) {
	codecs := [2]*witness{{}, {}}
	logs := make([]scaled, 2)
	_, errs := together(t, 2, func(r int) []Option { return inHalf(t, withCodec(codecs[r], 2), WithSinks(&logs[r])) }, nil)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for r, c := range codecs {
		settled := c.settled[1:] // the first was before the first step
		if len(c.begun) != 10 || c.begun[0] != 2 || len(settled) != 10 {
			t.Fatalf("rank %d: steps %v were settled %v", r, c.begun, settled)
		}
		for i, st := range logs[r].steps[2:] {
			if settled[i] == st.Skipped || c.scales[i] != st.Scale.X {
				t.Errorf("rank %d step %d: settled %v, skipped %v; scale %g, want %g", r, i+2, settled[i], st.Skipped, c.scales[i], st.Scale.X)
			}
		}
		if !slices.Contains(settled, false) || !slices.Contains(settled, true) {
			t.Errorf("the test wants steps of both kinds: %v", settled)
		}
	}
}

// An abandoned step leaves nothing in the codec.
func TestAbandonedStepIsSettledSo(t *testing.T) {
	codecs := [2]*witness{{}, {}}
	opts := []Option{WithModel(bnNet), WithData(images(t, 50), 6), WithSteps(6), WithLR(0.01), WithDevice("ref", 1), WithOptimizer(optim.Default(optim.SGD, 0))}
	for _, at := range []stage{enqueued, reduced} { // before the vote, and before the second agreement
		for r := range codecs {
			*codecs[r] = witness{}
		}
		_, _, errs := ranksWith(t, 2, opts, func(tr *Trainer, rank int) {
			tr.cfg.Codec, tr.holdAfter = codecs[rank], 0
			tr.within = func(s stage) {
				if tr.step == 3 && s == at && rank == 1 {
					tr.Abandon()
				}
			}
		})
		for r, c := range codecs {
			var stop *StopError
			if !errors.As(errs[r], &stop) || !stop.Abandoned {
				t.Fatalf("rank %d: %v", r, errs[r])
			}
			if want := []bool{true, true, true, false}; !slices.Equal(c.settled[1:], want) {
				t.Errorf("stage %d, rank %d: settled %v, want %v", at, r, c.settled[1:], want)
			}
		}
	}
}

// Decoded gradients that are not finite end a run that does not measure them; a run that limits their norm skips by that.
func TestDecodedGradientsNotFinite(t *testing.T) {
	opts := func(r int) []Option {
		return []Option{WithModel(bnNet), WithData(images(t, 50), 6), WithSteps(3), WithLR(0.01), WithDevice("ref", 1),
			WithOptimizer(optim.Default(optim.SGD, 0)), withCodec(&witness{spoiled: true}, 1)}
	}
	_, errs := together(t, 2, opts, nil)
	for r, err := range errs {
		if launch.ExitCode(err) != launch.ExitNumerics || !strings.Contains(err.Error(), "step 1: the gradients in bucket 0 (") ||
			!strings.Contains(err.Error(), "not finite after witness") {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	_, errs = together(t, 2, func(r int) []Option { return append(opts(r), WithClipNorm(1)) }, nil)
	if err := errors.Join(errs...); err != nil {
		t.Errorf("the norm is finite: %v", err)
	}
}

// told records events.
type told struct{ events []telemetry.Event }

func (s *told) Emit(e telemetry.Event) error { s.events = append(s.events, e); return nil }
func (s *told) Close() error                 { return nil }

func TestCodedMetrics(t *testing.T) {
	logs := make([]told, 2)
	_, errs := together(t, 2, func(r int) []Option {
		return []Option{WithModel(bnNet), WithData(images(t, 50), 6), WithSteps(4), WithLR(0.01), WithDevice("ref", 1),
			WithOptimizer(optim.Default(optim.SGD, 0)), withCodec(&witness{}, 1), WithSinks(&logs[r])}
	}, nil)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	steps, warned := 0, 0
	for _, e := range logs[0].events {
		switch e := e.(type) {
		case telemetry.Step:
			got := map[string]float64{}
			for _, m := range e.Metrics {
				got[m.Name] = m.Value.X
			}
			ratio, coded := got["compress_ratio"]
			if steps++; coded != (steps > 1) || coded && (ratio != 4 || math.Abs(got["compress_error"]-0.1) > 1e-12) {
				t.Errorf("step %d: %v", e.Step, got)
			}
		case telemetry.Warning:
			if strings.Contains(e.Text, "witness left out of gradients so far is 2 times") {
				warned++
			}
		}
	}
	if steps != 4 || warned != 1 {
		t.Errorf("%d steps, %d warnings", steps, warned)
	}
}
