package train

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/ddp/comm/nodes"
	"github.com/gotrain/gotrain/ddp/comm/shm"
	"github.com/gotrain/gotrain/train/checkpoint"
)

// onHosts runs ranks on hosts that share this process; with all of them on one host they meet as ranks of one machine do. It returns the losses of rank 0.
func onHosts(t *testing.T, nodeOf []int, opts []Option, change func(tr *Trainer, rank int)) ([]float64, []error) {
	t.Helper()
	g, err := nodes.NewLocal(nodeOf, nil)
	if slices.Max(nodeOf) == 0 {
		g, err = shm.NewLocal(len(nodeOf))
	}
	if err != nil {
		t.Fatal(err)
	}
	out := make([]losses, len(g))
	_, errs := runAll(t, g, func(r int) []Option { return append(slices.Clone(opts), WithSinks(&out[r])) }, change)
	for r := range out {
		if errors.Join(errs...) == nil && !slices.Equal(out[r].v, out[0].v) {
			t.Errorf("ranks 0 and %d tell different losses:\n%v\n%v", r, out[0].v, out[r].v)
		}
	}
	return out[0].v, errs
}

var (
	twoByTwo = []int{0, 0, 1, 1}
	mixed    = []int{0, 1, 0, 1} // the same number of ranks in other places
)

// Between hosts of several ranks, losses with a codec stay as close to those of float32 as between ranks (TestCompressedLoss).
func TestCompressedLossBetweenHosts(t *testing.T) {
	want, errs := onHosts(t, twoByTwo, compressing(t, "none", 4), nil)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for codec, bound := range map[string]float64{"bf16": 5e-3, "f16": 1e-3, "int8": 5e-3} {
		got, errs := onHosts(t, twoByTwo, compressing(t, codec, 4), func(tr *Trainer, _ int) {
			tr.within = func(stage) {
				if hosts, each := tr.eng.CodecHosts(); hosts != 2 || each != 2 {
					t.Errorf("%s works between %d hosts of %d ranks", codec, hosts, each)
				}
			}
		})
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if d := math.Abs(got[i] - want[i]); !(d <= bound) || i <= 2 && d != 0 {
				t.Errorf("%s step %d: loss %.6g, with float32 %.6g", codec, i+1, got[i], want[i])
			}
		}
		if slices.Equal(got, want) {
			t.Errorf("%s changes nothing", codec)
		}
	}
}

// A run on two hosts that is stopped, or killed, goes on bit by bit.
func TestResumedBetweenHosts(t *testing.T) {
	run := func(dir string, change func(tr *Trainer, rank int)) ([]float64, error) {
		opts := compressing(t, "int8", 4)
		if dir != "" {
			opts = append(opts, WithCheckpoints(dir, 4))
		}
		v, errs := onHosts(t, twoByTwo, opts, change)
		return v, errors.Join(errs...)
	}
	want, err := run("", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{3, 7} {
		dir := t.TempDir()
		first, err := run(dir, func(tr *Trainer, rank int) {
			tr.afterStep = func(step int) {
				if step == at && rank == 3 {
					tr.Stop()
				}
			}
		})
		rest, more := run(dir, nil)
		if got := append(first, rest...); !errors.Is(err, ErrStopped) || more != nil || !slices.Equal(got, want) {
			t.Errorf("stopped after step %d: %v, %v\n%v\nwant\n%v", at, err, more, got, want)
		}
	}
	dir := t.TempDir()
	first, err := run(dir, func(tr *Trainer, rank int) {
		tr.within = func(s stage) {
			if tr.step == 6 && s == reduced && rank == 1 {
				tr.comm.Abort(errors.New("killed by the test"))
			}
		}
	})
	if err == nil || len(first) > 7 {
		t.Fatalf("nobody was killed: %d steps", len(first))
	}
	if rest, err := run(dir, nil); err != nil || !slices.Equal(rest, want[4:]) {
		t.Errorf("after the checkpoint of step 4: %v, %v\nwant %v", err, rest, want[4:])
	}
}

// owedIn sums the residuals in the newest checkpoint, by parameter, and counts the tensors.
func owedIn(t *testing.T, dir string) (sums map[string][]float64, tensors []string) {
	t.Helper()
	ck, _, err := checkpoint.New(checkpoint.OS{}, dir, 2).Latest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer ck.Close()
	sums = map[string][]float64{}
	for _, x := range ck.File(ResidualFile).Tensors() {
		v, err := ck.File(ResidualFile).Float32s(x.Name)
		if err != nil {
			t.Fatal(err)
		}
		tensors = append(tensors, x.Name)
		_, name, _ := strings.Cut(x.Name, "/")
		if sums[name] == nil {
			sums[name] = make([]float64, len(v))
		}
		for j, f := range v {
			sums[name][j] += float64(f)
		}
	}
	return sums, tensors
}

// A checkpoint of two hosts has a residual of each parameter for each host. On other hosts, and with another number of ranks, the sum stays what it was, in
// relation to the items of a step, and losses stay near those of float32.
func TestResidualsOnOtherHosts(t *testing.T) {
	flat := []int{0, 0, 0, 0}
	for _, c := range []struct {
		name     string
		from, to []int
	}{
		{"2x2 to 1x2", twoByTwo, []int{0, 0}}, {"2x2 to other places", twoByTwo, mixed}, {"2x2 to one host", twoByTwo, flat}, {"one host to 2x2", flat, twoByTwo},
		{"1x2 to 2x2", []int{0, 0}, twoByTwo}, {"2x2 to 3x2", twoByTwo, []int{0, 0, 1, 1, 2, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			_, errs := onHosts(t, c.from, compressing(t, "int8", 4, WithSteps(6), WithCheckpoints(dir, 0)), nil)
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			want, tensors := owedIn(t, dir)
			each := len(c.from) // tensors of a parameter
			if slices.Max(c.from) > 0 {
				each = 2
				for _, s := range tensors {
					if !strings.HasPrefix(s, "rank0/") && !strings.HasPrefix(s, "rank2/") {
						t.Errorf("tensor %s", s)
					}
				}
			}
			if len(want) != 3 || len(tensors) != 3*each {
				t.Fatalf("residuals of %d parameters in %d tensors: %v", len(want), len(tensors), tensors)
			}
			got := owedOf{sums: map[string][]float64{}}
			v, errs := onHosts(t, c.to, compressing(t, "int8", 4, WithCheckpoints(dir, 0)), func(tr *Trainer, _ int) { got.watch(tr) })
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			grow := float64(len(c.to)) / float64(len(c.from))
			for name, w := range want {
				most := 0.0
				for _, v := range w {
					most = max(most, math.Abs(v*grow))
				}
				if most == 0 {
					t.Errorf("%s owes nothing", name)
				}
				for j := range w {
					if d := math.Abs(got.sums[name][j] - w[j]*grow); d > most*1e-4 { // 16 bits of the largest of a block
						t.Fatalf("%s[%d]: now owes %g, before %g times %g", name, j, got.sums[name][j], w[j], grow)
					}
				}
			}
			exact := WithCheckpoints(t.TempDir(), 0)
			onHosts(t, c.from, compressing(t, "none", 4, WithSteps(6), exact), nil)
			f, _ := onHosts(t, c.to, compressing(t, "none", 4, exact), nil)
			for i := range f {
				if d := math.Abs(v[i] - f[i]); !(d <= 5e-3) {
					t.Errorf("step %d: loss %g, with float32 %g", i+7, v[i], f[i])
				}
			}
		})
	}
}
