package train

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gotrain/gotrain/internal/usercache"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/tune"
	"github.com/gotrain/gotrain/optim"
)

// twoWays is the plain-Go device with a second algorithm for convolutions, which computes the same.
type twoWays struct{ npu.Device }

// noChoice could have several algorithms, but has one for each of these convolutions.
type noChoice struct{ twoWays }

func (noChoice) Algorithms(npu.Op) []string { return []string{npu.Direct} }

func (d noChoice) Choose(op npu.Op) (npu.Op, error) {
	if err := npu.CheckAlgorithm(op); err != nil {
		return op, err
	}
	return d.twoWays.Choose(op)
}

// earlierWays has the name that an earlier version had for the second algorithm.
type earlierWays struct{ twoWays }

const earlier = "winograd4"

func (d earlierWays) Algorithms(op npu.Op) (list []string) {
	for _, a := range d.twoWays.Algorithms(op) {
		list = append(list, strings.ReplaceAll(a, npu.Winograd4, earlier))
	}
	return list
}

// pairWays has Pairs for weight gradients, which an earlier version did not have: oneWeights.
type pairWays struct{ twoWays }

func (d pairWays) Algorithms(op npu.Op) []string {
	if op.Kind == npu.Conv2DBwdWeights {
		return []string{npu.Direct, npu.Pairs}
	}
	return d.twoWays.Algorithms(op)
}

type oneWeights struct{ twoWays }

func (d oneWeights) Algorithms(op npu.Op) []string {
	if op.Kind == npu.Conv2DBwdWeights {
		return []string{npu.Direct}
	}
	return d.twoWays.Algorithms(op)
}

func init() {
	for name, wrap := range map[string]func(npu.Device) npu.Device{
		"two-ways":  func(d npu.Device) npu.Device { return twoWays{d} },
		"no-choice": func(d npu.Device) npu.Device { return noChoice{twoWays{d}} },
		"earlier":   func(d npu.Device) npu.Device { return earlierWays{twoWays{d}} },
		"pairs":     func(d npu.Device) npu.Device { return pairWays{twoWays{d}} },
		"no-pairs":  func(d npu.Device) npu.Device { return oneWeights{twoWays{d}} },
		"one-way":   func(d npu.Device) npu.Device { return d },
	} {
		npu.Register(name, -1, func(o npu.Options) (npu.Device, error) {
			o.Extra = nil // without calibration
			d, err := npu.Open("ref", o)
			if err != nil {
				return nil, err
			}
			return wrap(d), nil
		})
	}
}

// multiplier is the plain-Go device with a choice of products, which computes the same. Its first option decides what it finds faster.
type multiplier struct {
	npu.Device
	products npu.Products
	fixed    bool
}

func (m *multiplier) Products() (npu.Products, bool)   { return m.products, m.fixed }
func (m *multiplier) UseProducts(p npu.Products) error { m.products = p; return nil }

func init() {
	for _, faster := range []npu.Products{npu.NativeProducts, npu.WideProducts, ""} {
		npu.Register("multiplier-"+string(faster), -1, func(o npu.Options) (npu.Device, error) {
			d, err := npu.Open("ref", npu.Options{Threads: o.Threads})
			m := &multiplier{Device: d, products: faster}
			if p := o.Extra["bf16"]; p != "" {
				m.products, m.fixed = npu.Products(p), true
			}
			return m, err
		})
	}
}

func (twoWays) Algorithms(op npu.Op) []string {
	if op.Kind == npu.Conv2D || op.Kind == npu.Conv2DBwdWeights {
		return []string{npu.Direct, npu.Winograd4}
	}
	return []string{npu.Direct}
}

func (d twoWays) Choose(op npu.Op) (npu.Op, error) {
	got, err := d.Device.Choose(op.WithAlgorithm(npu.Direct))
	got.Attrs = op.Attrs
	return got, err
}

func (d twoWays) Compile(op npu.Op) (npu.Kernel, error) {
	return d.Device.Compile(op.WithAlgorithm(npu.Direct))
}

// cache is a user's cache with a stopwatch by which this algorithm is the fastest. It counts the contests.
type cache struct {
	mu    sync.Mutex
	place usercache.Place
	fast  string
	held  int
}

func (c *cache) option(tr *Trainer) {
	tr.tuner = tune.Tuner{Places: []usercache.Place{c.place}, Time: func(_ context.Context, q tune.Contest) ([]tune.Timing, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.held++
		var ts []tune.Timing
		for _, e := range q.Entrants {
			took := 2 * time.Millisecond
			if e.Name == c.fast {
				took = time.Millisecond
			}
			ts = append(ts, tune.Timing{Name: e.Name, Best: took})
		}
		return ts, nil
	}}
}

func newCache(t *testing.T, fast string) *cache {
	return &cache{place: usercache.Place{Base: t.TempDir(), Own: []string{"gotrain"}}, fast: fast}
}

// algorithms are those of the convolutions in a rank's plan.
func algorithms(tr *Trainer) string {
	var list []string
	for _, p := range []*pass{tr.train, tr.eval} {
		for _, s := range p.prog.Plan().Steps {
			if strings.HasPrefix(s.Op.Kind, npu.Conv2D) {
				list = append(list, tune.Name(s.Op.Attrs.Str(npu.AttrAlgorithm)))
			}
		}
	}
	return strings.Join(list, " ")
}

// convolving runs ranks, each with a cache of its own, and returns the algorithms of each.
func convolving(t *testing.T, caches []*cache, more ...Option) (got []string, err error) {
	t.Helper()
	got = make([]string, len(caches))
	_, errs := together(t, len(caches), func(r int) []Option {
		return append([]Option{WithModel(bnNet), WithData(images(t, 50), 6), WithEval(images(t, 21), 4), WithSteps(4), WithLR(0.01), WithDevice("two-ways", 1),
			WithOptimizer(optim.Default(optim.SGD, 0)), func(c *Config) { c.EvalBatch = 3 }, func(c *Config) { c.opened = caches[r].option }}, more...)
	}, func(tr *Trainer, r, _ int) { got[r] = algorithms(tr) })
	return got, errors.Join(errs...)
}

const (
	allDirect   = "direct direct direct"
	allWinograd = npu.Winograd4 + " " + npu.Winograd4 + " " + npu.Winograd4
)

// Rank 0's measurement decides, also where other ranks have measured, or would measure, something else. The held-out network, with another batch, has a
// contest of its own.
func TestRankZeroDecidesTheAlgorithms(t *testing.T) {
	for fast, want := range map[string]string{npu.Winograd4: allWinograd, npu.Direct: allDirect} {
		other := npu.Direct
		if fast == npu.Direct {
			other = npu.Winograd4
		}
		caches := []*cache{newCache(t, fast), newCache(t, other)}
		got, err := convolving(t, caches)
		if err != nil || got[0] != want || got[1] != want || caches[0].held != 3 || caches[1].held != 0 {
			t.Errorf("%q: %q %v, contests %d and %d", fast, got, err, caches[0].held, caches[1].held)
		}
		if _, err := convolving(t, caches); err != nil || caches[0].held != 3 {
			t.Errorf("the second run: %v, contests %d", err, caches[0].held)
		}
	}
}

// A run that resumes follows its checkpoint, on a machine that has measured something else too; a machine that lacks the algorithm continues with a warning.
func TestResumeFollowsTheAlgorithms(t *testing.T) {
	for fast, want := range map[string]string{npu.Winograd4: allWinograd, npu.Direct: allDirect} {
		dir := t.TempDir()
		if got, err := convolving(t, []*cache{newCache(t, fast)}, WithCheckpoints(dir, 2)); err != nil || got[0] != want {
			t.Fatalf("%q %v", got, err)
		}
		other := newCache(t, npu.Winograd4)
		if fast == npu.Winograd4 {
			other.fast = npu.Direct
		}
		said := logged(t)
		got, err := convolving(t, []*cache{other}, WithCheckpoints(dir, 2), WithSteps(6))
		if err != nil || got[0] != want || other.held != 0 || !strings.Contains(said(), "convolutions: as in the checkpoint step-") {
			t.Errorf("%q: resumed with %q %v, contests %d\n%s", fast, got, err, other.held, said())
		}
		if strings.Contains(said(), "another algorithm") {
			t.Errorf("nothing has changed:\n%s", said())
		}
		for steps, device := range map[int]string{8: "one-way", 10: "no-choice"} {
			folder := t.TempDir()
			if err := os.CopyFS(folder, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			said := logged(t)
			got, err = convolving(t, []*cache{other}, WithCheckpoints(folder, 2), WithSteps(steps), WithDevice(device, 1))
			if lacks := strings.Contains(said(), "lacks the algorithm that the checkpoint"); err != nil || got[0] != allDirect || lacks != (fast == npu.Winograd4) {
				t.Errorf("%q: %s: %q %v\n%s", fast, device, got, err, said())
			}
		}
	}
}

// A checkpoint that names an algorithm of an earlier version continues with the one that has replaced it, and the run says so.
func TestResumeWithASuccessor(t *testing.T) {
	dir, before := t.TempDir(), strings.ReplaceAll(allWinograd, npu.Winograd4, earlier)
	if got, err := convolving(t, []*cache{newCache(t, earlier)}, WithCheckpoints(dir, 2), WithDevice("earlier", 1)); err != nil || got[0] != before {
		t.Fatalf("%q %v", got, err)
	}
	said := logged(t)
	got, err := convolving(t, []*cache{newCache(t, npu.Direct)}, WithCheckpoints(dir, 2), WithSteps(6))
	if want := "the run continues with " + npu.Winograd4 + " for 3 of 3"; err != nil || got[0] != allWinograd || !strings.Contains(said(), want) {
		t.Errorf("%q %v\n%s", got, err, said())
	}
}

// A checkpoint of a version that had no other algorithm for weight gradients continues with the direct one, where a new run would measure. A checkpoint of a
// version that had it continues with what was measured.
func TestResumeFromBeforePairs(t *testing.T) {
	for device, want := range map[string]string{
		"no-pairs": npu.Winograd4 + " direct " + npu.Winograd4,
		"pairs":    "direct " + npu.Pairs + " direct",
	} {
		dir, fast := t.TempDir(), map[string]string{"no-pairs": npu.Winograd4, "pairs": npu.Pairs}[device]
		if got, err := convolving(t, []*cache{newCache(t, fast)}, WithCheckpoints(dir, 2), WithDevice(device, 1)); err != nil || got[0] != want {
			t.Fatalf("%s: %q %v", device, got, err)
		}
		other := newCache(t, npu.Pairs)
		got, err := convolving(t, []*cache{other}, WithCheckpoints(dir, 2), WithSteps(6), WithDevice("pairs", 1))
		if err != nil || got[0] != want || other.held != 0 {
			t.Errorf("%s: resumed with %q %v, contests %d", device, got, err, other.held)
		}
	}
}

// A checkpoint of a run that chose nothing was trained by the direct algorithm.
func TestResumeFromBeforeThereWasAChoice(t *testing.T) {
	dir := t.TempDir()
	fast := newCache(t, npu.Winograd4)
	if got, err := convolving(t, []*cache{fast}, WithCheckpoints(dir, 2), WithConvAlgorithm(DirectConv)); err != nil || got[0] != allDirect || fast.held != 0 {
		t.Fatalf("%q %v, contests %d", got, err, fast.held)
	}
	if got, err := convolving(t, []*cache{fast}, WithCheckpoints(dir, 2), WithSteps(6)); err != nil || got[0] != allDirect || fast.held != 0 {
		t.Errorf("%q %v, contests %d", got, err, fast.held)
	}
	said := logged(t)
	got, err := convolving(t, []*cache{fast}, WithCheckpoints(dir, 2), WithSteps(8), WithConvAlgorithm(WinogradConv))
	if err != nil || got[0] != allWinograd || fast.held != 0 || !strings.Contains(said(), "3 convolutions are computed by another algorithm than before") {
		t.Errorf("%q %v, contests %d\n%s", got, err, fast.held, said())
	}
}

// What the configuration wants is in the checkpoint too, for runs that resume with another one.
func TestResumeFromWhatWasWanted(t *testing.T) {
	dir := t.TempDir()
	c := newCache(t, npu.Direct)
	for steps, setting := range []string{4: WinogradConv, 6: WinogradConv, 8: AutoConv} {
		if setting == "" {
			continue
		}
		said := logged(t)
		got, err := convolving(t, []*cache{c}, WithCheckpoints(dir, 2), WithSteps(steps), WithConvAlgorithm(setting))
		if err != nil || got[0] != allWinograd || c.held != 0 || strings.Contains(said(), "than before") {
			t.Errorf("%d steps, %s: %q %v, contests %d\n%s", steps, setting, got, err, c.held, said())
		}
	}
	said := logged(t)
	got, err := convolving(t, []*cache{c}, WithCheckpoints(dir, 2), WithSteps(10), WithConvAlgorithm(DirectConv))
	if err != nil || got[0] != allDirect || !strings.Contains(said(), "are computed by another algorithm than before") {
		t.Errorf("%q %v\n%s", got, err, said())
	}
}

// Without a place to keep results nothing is measured, and the run says so.
func TestNoPlaceForAlgorithms(t *testing.T) {
	said := logged(t)
	c := &cache{place: usercache.Place{Err: fs.ErrPermission}, fast: npu.Winograd4}
	if got, err := convolving(t, []*cache{c}); err != nil || got[0] != allDirect || c.held != 0 || !strings.Contains(said(), "cannot be kept") {
		t.Errorf("%q %v, contests %d\n%s", got, err, c.held, said())
	}
}

// An evaluation uses the algorithms of the checkpoint, and a plan shows them.
func TestAlgorithmsElsewhere(t *testing.T) {
	dir := t.TempDir()
	fast, other := newCache(t, npu.Winograd4), newCache(t, npu.Direct)
	if _, err := convolving(t, []*cache{fast}, WithCheckpoints(dir, 0)); err != nil {
		t.Fatal(err)
	}
	saved, err := filepath.Glob(filepath.Join(dir, "step-*"))
	if err != nil || len(saved) == 0 {
		t.Fatal(saved, err)
	}
	trainer := func(c *cache, more ...Option) *Trainer {
		tr, err := New(append([]Option{WithModel(bnNet), WithData(images(t, 50), 6), WithEval(images(t, 21), 4), WithSteps(4), WithLR(0.01),
			WithDevice("two-ways", 1), WithOptimizer(optim.Default(optim.SGD, 0)), func(x *Config) { x.opened = c.option }}, more...)...)
		if err != nil {
			t.Fatal(err)
		}
		return tr
	}
	tr := trainer(other, func(c *Config) { c.InitFrom = saved[0] })
	if _, err := tr.Evaluate(t.Context()); err != nil || other.held != 0 || tr.conv.kept() == nil || len(tr.conv.Algorithms) != 3 {
		t.Errorf("%v, contests %d, %+v", err, other.held, tr.conv)
	}
	tr = trainer(fast)
	defer tr.Close()
	s, err := tr.Summarise(t.Context(), 2)
	if err != nil || s.Convolutions != npu.Winograd4+" for 2 of 2 distinct convolutions with a choice" {
		t.Errorf("%v, %q", err, s.Convolutions)
	}
	untouched := newCache(t, npu.Winograd4)
	tr = trainer(untouched)
	defer tr.Close()
	s, err = tr.Summarise(t.Context(), 2)
	want := "direct in this plan; the first run on this machine will measure the fastest algorithm for 2"
	if err != nil || s.Convolutions != want || untouched.held != 0 {
		t.Errorf("a plan before any run: %v, %q, contests %d", err, s.Convolutions, untouched.held)
	}
	for name, from := range map[string]Option{
		"its own":    func(c *Config) { c.SaveDir, c.Resume = dir, true },
		"another's":  func(c *Config) { c.ResumeFrom = saved[0] },
		"a folder's": func(c *Config) { c.ResumeFrom = dir },
	} {
		tr = trainer(other, from)
		defer tr.Close()
		s, err = tr.Summarise(t.Context(), 2)
		if want := "as in the checkpoint step-00000004: " + npu.Winograd4 + " for 3 of 3 distinct convolutions with a choice"; err != nil || s.Convolutions != want {
			t.Errorf("a plan of a run that continues %s checkpoint: %v, %q", name, err, s.Convolutions)
		}
	}
	if _, err := New(WithModel(bnNet), WithConvAlgorithm("fft")); err == nil || !strings.Contains(err.Error(), "use one of auto, direct, winograd") {
		t.Errorf("an unknown algorithm: %v", err)
	}
}
