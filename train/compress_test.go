package train

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/nn"
	"github.com/gotrain/gotrain/optim"
	"github.com/gotrain/gotrain/train/checkpoint"
)

// wideNet has a matrix of several blocks, and a norm and biases that travel as float32.
func wideNet(b *graph.Builder, in Inputs) Outputs {
	x := nn.Conv2D{Out: 16, Kernel: 3, Pad: 1}.Apply(b, "conv1", in["image"])
	x = b.GlobalAvgPool(b.Relu(nn.BatchNorm{}.Apply(b, "bn1", x)))
	x = b.Relu(nn.Linear{Out: 48}.Apply(b, "hidden", x))
	loss, n := b.CrossEntropy(nn.Linear{Out: 4}.Apply(b, "fc", x), in["label"])
	return Outputs{Loss: loss, Count: n}
}

func compressing(t *testing.T, codec string, rows int, more ...Option) []Option {
	return append([]Option{WithModel(wideNet), WithData(images(t, 96), rows), WithSteps(12), WithLR(0.1), WithDevice("ref", 1), WithSeed(7),
		WithOptimizer(optim.Default(optim.SGD, 1e-3)), WithCompress(codec, 2), func(c *Config) { c.Compress.Block = 32 }}, more...)
}

// Losses with a codec stay close to those of float32; every option works together with it. The bounds: about the rounding of a gradient, times 12 steps.
func TestCompressedLoss(t *testing.T) {
	for _, c := range []struct {
		codec string
		bound float64
		more  Option
	}{
		{"bf16", 5e-3, nil}, {"f16", 1e-3, nil}, {"int8", 5e-3, nil}, {"int8", 5e-3, func(c *Config) { c.Compress.NoFeedback = true }},
		{"int8", 5e-3, func(c *Config) { c.Batch, c.Accumulate = 4, 2 }}, {"int8", 5e-3, func(c *Config) { c.BucketMB, c.FirstMB = 0.002, 0.001 }},
	} {
		opts, plain := compressing(t, c.codec, 8), compressing(t, "none", 8)
		if c.more != nil {
			opts, plain = append(opts, c.more), append(plain, c.more)
		}
		want := runRanks(t, 2, func(int) []Option { return plain })
		got := runRanks(t, 2, func(int) []Option { return slices.Clone(opts) })
		differs := false
		for i := range want {
			if d := math.Abs(got[i] - want[i]); !(d <= c.bound) {
				t.Errorf("%s step %d: loss %.6g, with float32 %.6g", c.codec, i+1, got[i], want[i])
			}
			differs = differs || i > 2 && got[i] != want[i]
			if i <= 2 && got[i] != want[i] {
				t.Errorf("%s: step %d is compressed", c.codec, i+1)
			}
		}
		if !differs {
			t.Errorf("%s changes nothing", c.codec)
		}
	}
}

// A run with residuals continues bit by bit where it stopped.
func TestStoppedAndResumedWithResiduals(t *testing.T) {
	for _, ranks := range []int{2, 3} {
		for _, stopAt := range []int{1, 5, 9} {
			resumesAlike(t, ranks, stopAt, func() []Option { return compressing(t, "int8", 6) })
		}
	}
}

// A run that died between two checkpoints repeats the lost steps bit by bit.
func TestKilledAndResumedWithResiduals(t *testing.T) {
	dir := t.TempDir()
	want := runRanks(t, 2, func(int) []Option { return compressing(t, "int8", 6) })
	opts := compressing(t, "int8", 6, WithCheckpoints(dir, 4))
	first, _, errs := ranksWith(t, 2, opts, func(tr *Trainer, rank int) {
		tr.within = func(s stage) {
			if tr.step == 6 && s == reduced && rank == 1 {
				tr.comm.Abort(errors.New("killed by the test"))
			}
		}
	})
	if errs[0] == nil || errs[1] == nil || len(first.v) > 7 {
		t.Fatalf("nobody was killed: %v, %d steps", errs, len(first.v))
	}
	if rest := runRanks(t, 2, func(int) []Option { return slices.Clone(opts) }); !slices.Equal(rest, want[4:]) {
		t.Errorf("after the checkpoint of step 4: %v\nwant %v", rest, want[4:])
	}
}

// owedOf sums the residuals of all ranks, by parameter, at the first step of a run.
type owedOf struct {
	mu   sync.Mutex
	sums map[string][]float64
}

func (o *owedOf) watch(tr *Trainer) {
	once := false
	tr.within = func(s stage) {
		if s != enqueued || once {
			return
		}
		once = true
		o.mu.Lock()
		defer o.mu.Unlock()
		for i, p := range tr.eng.Plan().Params {
			e := make([]float32, p.Elems)
			if tr.eng.Codec().(owing).Residual(i, e) {
				if o.sums[p.Name] == nil {
					o.sums[p.Name] = make([]float64, p.Elems)
				}
				for j, v := range e {
					o.sums[p.Name][j] += float64(v)
				}
			}
		}
	}
}

// With another number of ranks, the sum of residuals stays what it was, in relation to the items of a step.
func TestResidualsOfAnotherWorld(t *testing.T) {
	dir := t.TempDir()
	first := compressing(t, "int8", 4, WithSteps(6), WithCheckpoints(dir, 0))
	if _, _, errs := ranksWith(t, 4, first, nil); errors.Join(errs...) != nil {
		t.Fatal(errs)
	}
	want := map[string][]float64{}
	store := checkpoint.New(checkpoint.OS{}, dir, 2)
	ck, _, err := store.Latest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	total := 0.0
	for _, x := range ck.File(ResidualFile).Tensors() {
		v, err := ck.File(ResidualFile).Float32s(x.Name)
		if err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(x.Name, "/")
		if want[name] == nil {
			want[name] = make([]float64, len(v))
		}
		for j, f := range v {
			want[name][j] += float64(f) / 2 // two ranks of 4 rows have half as many as four
			total += math.Abs(float64(f))
		}
	}
	ck.Close()
	if len(want) != 3 || total == 0 {
		t.Fatalf("residuals of %d parameters, %g in total; want those of the three matrices", len(want), total)
	}
	got := owedOf{sums: map[string][]float64{}}
	again := compressing(t, "int8", 4, WithCheckpoints(dir, 0))
	l, _, errs := ranksWith(t, 2, again, func(tr *Trainer, _ int) { got.watch(tr) })
	if errors.Join(errs...) != nil {
		t.Fatal(errs)
	}
	for name, w := range want {
		most := 0.0
		for _, v := range w {
			most = max(most, math.Abs(v))
		}
		for j := range w {
			if d := math.Abs(got.sums[name][j] - w[j]); d > most*1e-4 { // 16 bits of the largest of a block
				t.Fatalf("%s[%d]: two ranks owe %g, four owed %g", name, j, got.sums[name][j], w[j])
			}
		}
	}
	exact := WithCheckpoints(t.TempDir(), 0)
	ranksWith(t, 4, compressing(t, "none", 4, WithSteps(6), exact), nil)
	f, _, _ := ranksWith(t, 2, compressing(t, "none", 4, exact), nil)
	for i := range l.v {
		if d := math.Abs(l.v[i] - f.v[i]); d > 5e-3 {
			t.Errorf("step %d: loss %g, with float32 %g", i+7, l.v[i], f.v[i])
		}
	}
}

// fullDisk is a disk on which residuals do not fit.
type fullDisk struct{ checkpoint.FS }

func (f fullDisk) Create(name string) (checkpoint.File, error) {
	file, err := f.FS.Create(name)
	if err == nil && filepath.Base(name) == ResidualFile {
		return fullFile{file}, nil
	}
	return file, err
}

type fullFile struct{ checkpoint.File }

func (fullFile) Write([]byte) (int, error) { return 0, os.ErrInvalid }

// A checkpoint that fails in the middle of the residuals leaves no rank behind: training continues, and the next one succeeds.
func TestResidualsDoNotFit(t *testing.T) {
	dir := t.TempDir()
	opts := compressing(t, "int8", 6, WithCheckpoints(dir, 5))
	l, _, errs := ranksWith(t, 3, opts, func(tr *Trainer, rank int) {
		if rank == 0 {
			tr.disk = fullDisk{tr.disk}
		}
	})
	for r, err := range errs {
		if launch.ExitCode(err) != launch.ExitStorage {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	if len(l.v) != 12 {
		t.Errorf("%d steps were done", len(l.v))
	}
}

// Steps whose scaled gradients overflow are skipped by all ranks, as without a codec, and a run with them resumes bit by bit.
func TestCompressedLossScaling(t *testing.T) {
	for _, codec := range []string{"f16", "bf16", "int8"} {
		opts := func(dir string) []Option {
			o := inHalf(t, WithModel(wideNet), WithCompress(codec, 0))
			if dir != "" {
				o = append(o, WithCheckpoints(dir, 0))
			}
			return o
		}
		log, _, errs := recorded(t, 2, opts(""), nil)
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		if p := log.pattern(); !strings.Contains(p, "x") || !strings.Contains(p, "..") {
			t.Fatalf("%s: the test wants steps of both kinds: %s", codec, p)
		}
		dir := t.TempDir()
		first, _, errs := recorded(t, 2, opts(dir), func(tr *Trainer, rank, step int) {
			if step == 7 && rank == 0 {
				tr.Stop()
			}
		})
		rest, _, more := recorded(t, 2, opts(dir), nil)
		if err := errors.Join(more...); err != nil {
			t.Fatal(errs, err)
		}
		if got, want := append(first.lines(), rest.lines()...), log.lines(); !slices.Equal(got, want) {
			t.Errorf("%s: %s\nwant %s", codec, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// A codec and what it takes are checked and planned before a run.
func TestCompressPlan(t *testing.T) {
	if _, err := New(compressing(t, "int4", 4)...); err == nil || !strings.Contains(err.Error(), "no codec \"int4\"") {
		t.Errorf("int4: %v", err)
	}
	sums := map[string]*Summary{}
	for _, codec := range []string{"none", "bf16", "int8"} {
		tr, err := New(compressing(t, codec, 4)...)
		if err != nil {
			t.Fatal(err)
		}
		if sums[codec], err = tr.Summarise(t.Context(), 4); err != nil {
			t.Fatal(err)
		}
		tr.Close()
	}
	rows := func(s *Summary) (out []string) {
		for _, m := range s.Memory {
			if strings.Contains(m.What, "compress") || strings.Contains(m.What, "encoded") {
				out = append(out, fmt.Sprint(m.What, " ", m.Bytes > 0))
			}
		}
		return out
	}
	if r := rows(sums["int8"]); !slices.Equal(r, []string{"encoded gradients true", "residuals of compression true"}) {
		t.Errorf("int8: %v", r)
	}
	if r := rows(sums["bf16"]); !slices.Equal(r, []string{"encoded gradients true"}) || sums["bf16"].Traffic*2 > sums["none"].Traffic {
		t.Errorf("bf16: %v, %d bytes travel, of %d", r, sums["bf16"].Traffic, sums["none"].Traffic)
	}
}

func TestUseless(t *testing.T) {
	for _, c := range []struct {
		codec        string
		local, world int
		even         bool
		want         string
	}{
		{"bf16", 4, 4, false, "has no use: all ranks share one machine"}, {"int8", 1, 4, false, ""}, {"int8", 2, 4, false, ""}, {"int8", 3, 6, false, ""},
		{"int8", 4, 7, false, "sends 1.2 times as much to the other machines as bf16"}, {"int8", 8, 15, false, "has no use with 8 ranks on this machine"},
		{"f16", 8, 15, false, ""}, {"int8", 8, 16, true, ""},
	} {
		each := 0
		if c.even {
			each = c.local
		}
		if got := useless(c.codec, c.local, c.world, each); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s, %d of %d ranks: %q", c.codec, c.local, c.world, got)
		}
	}
}

// On a device whose memory the host cannot access its kernels cast to 16 bits, and the norm is watched; int8 is refused before the first step.
func TestCompressOnDevice(t *testing.T) {
	device := func(c *Config) { c.Options = map[string]string{"memory": "strict"} }
	want := runRanks(t, 2, func(int) []Option { return compressing(t, "none", 8, device) })
	for _, codec := range []string{"f16", "bf16"} {
		got := runRanks(t, 2, func(int) []Option { return compressing(t, codec, 8, device) })
		host := runRanks(t, 2, func(int) []Option { return compressing(t, codec, 8) })
		for i := range want {
			if d := math.Abs(got[i] - want[i]); !(d <= 5e-3) || math.Abs(got[i]-host[i]) > 1e-6 {
				t.Errorf("%s step %d: loss %.6g, with float32 %.6g, with casts of the host %.6g", codec, i+1, got[i], want[i], host[i])
			}
		}
		if slices.Equal(got, want) {
			t.Errorf("%s changes nothing", codec)
		}
	}
	_, errs := together(t, 2, func(int) []Option { return compressing(t, "int8", 8, device) }, nil)
	for r, err := range errs {
		if launch.ExitCode(err) != launch.ExitRecipe || !strings.Contains(fmt.Sprint(err), "\nhint: use f16 or bf16") {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}
