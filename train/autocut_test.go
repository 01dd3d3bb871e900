package train

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/link"
	"github.com/gotrain/gotrain/ddp/comm/shm"
	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/optim"
	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/telemetry"
)

// wired is a communicator that says on which network it is.
type wired struct {
	comm.Communicator
	link  link.Link
	hosts int
}

func (w wired) Network() link.Cluster {
	return link.Cluster{Ranks: w.Size(), Hosts: w.hosts, Link: w.link}
}

// over runs ranks on a link; each rank may have another opinion of it.
func over(t *testing.T, ranks int, links func(rank int) link.Link, opts func(rank int) []Option, stop int) (
	starts []telemetry.RunStart, steps losses, trs []*Trainer, errs []error) {
	t.Helper()
	comms, err := shm.NewLocal(ranks)
	if err != nil {
		t.Fatal(err)
	}
	logs := make([]told, ranks)
	errs, trs = make([]error, ranks), make([]*Trainer, ranks)
	var wg sync.WaitGroup
	for r := range ranks {
		wg.Go(func() {
			o := append(opts(r), WithComm(wired{comms[r], links(r), ranks}), WithSinks(&logs[r]))
			if r == 0 {
				o = append(o, WithSinks(&logs[r], &steps))
			}
			tr, err := New(o...)
			if err == nil {
				trs[r] = tr
				tr.afterStep = func(step int) {
					if step == stop {
						tr.Stop()
					}
				}
				_, err = tr.Run(context.Background())
			}
			errs[r] = err
		})
	}
	wg.Wait()
	for _, c := range comms {
		c.Close()
	}
	for _, l := range logs {
		for _, e := range l.events {
			if s, ok := e.(telemetry.RunStart); ok {
				starts = append(starts, s)
			}
		}
	}
	return starts, steps, trs, errs
}

// deep is a net whose gradients are complete one after the other.
func deep(b *graph.Builder, in Inputs) Outputs {
	h := b.Linear(in["image"], b.Param("fc0.weight", []int{64, 6}, graph.KaimingNormal(graph.FanOut)), nil)
	for i := range 6 {
		h = b.Relu(b.Linear(h, b.Param(fmt.Sprintf("fc%d.weight", i+1), []int{64, 64}, graph.KaimingNormal(graph.FanOut)), nil))
	}
	loss, n := b.CrossEntropy(b.Linear(h, b.Param("last.weight", []int{4, 64}, graph.KaimingNormal(graph.FanOut)), nil), in["label"])
	return Outputs{Loss: loss, Count: n}
}

// slow is a link on which the buckets of deep take longer than its backward pass; quick one on which they cost nothing.
var (
	slow  = link.Link{Bandwidth: 1e8, Latency: time.Microsecond}
	quick = link.Link{Bandwidth: 1e12}
)

func auto(t *testing.T, dir string, more ...Option) []Option {
	return append([]Option{WithModel(deep), WithData(noise(t, 48), 6), WithSteps(6), WithLR(0.01), WithDevice("ref", 1), WithCheckpoints(dir, 0),
		WithOptimizer(optim.Default(optim.AdamW, 0)), func(c *Config) { c.PeakFLOPS, c.BucketAuto, c.Resume = 1e9, true, true }}, more...)
}

// Rank 0's link decides, also where others see another one, and the start of the run says what is expected.
func TestRankZeroDecidesTheBuckets(t *testing.T) {
	cuts, n := map[bool]int{}, 0
	for _, first := range []bool{true, false} {
		starts, _, trs, errs := over(t, 2, func(rank int) link.Link {
			if first == (rank == 0) {
				return slow
			}
			return quick
		}, func(int) []Option { return auto(t, t.TempDir()) }, 0)
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		a, b := trs[0].cfg, trs[1].cfg
		if a.BucketMB != b.BucketMB || a.FirstMB != b.FirstMB || a.LastMB != b.LastMB || !(a.BucketMB > 0) || !(a.LastMB > 0) {
			t.Errorf("rank 0 cuts %v %v %v, rank 1 %v %v %v", a.BucketMB, a.FirstMB, a.LastMB, b.BucketMB, b.FirstMB, b.LastMB)
		}
		if n = 1; !strings.HasPrefix(trs[1].auto.Why, "one bucket") {
			fmt.Sscanf(trs[1].auto.Why, "%d buckets", &n)
		}
		cuts[first] = n
		facts := fmt.Sprint(starts[0].Facts)
		if !strings.Contains(facts, "{predicted ") || !strings.Contains(facts, "exposed communication") || !strings.Contains(facts, "{compress ") {
			t.Error(facts)
		}
	}
	if cuts[true] < 2 || cuts[false] != 1 {
		t.Errorf("%d buckets for a slow link, %d for a quick one", cuts[true], cuts[false])
	}
}

// A run with bucket_mb = auto that is stopped and continued is equal to one that was not, although the second half sees another network: the checkpoint keeps
// the cut. With another number of ranks the cut is made anew.
func TestResumedRunKeepsItsBuckets(t *testing.T) {
	one := func(l link.Link) func(int) link.Link { return func(int) link.Link { return l } }
	dir, whole := t.TempDir(), t.TempDir()
	small := func(c *Config) { c.Compress = Compress{Codec: "int8"} } // its residuals depend on the buckets
	opts := func(dir string) func(int) []Option { return func(int) []Option { return auto(t, dir, small) } }
	_, want, all, errs := over(t, 2, one(slow), opts(whole), 0)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	_, begun, trs, errs := over(t, 2, one(slow), opts(dir), 3)
	for _, err := range errs {
		if !errors.Is(err, ErrStopped) {
			t.Fatal(err)
		}
	}
	cut := trs[0].auto.Buckets
	ck, _, err := checkpoint.New(checkpoint.OS{}, dir, 2).Latest(context.Background())
	if err != nil || ck.State.Buckets == nil || *ck.State.Buckets != cut || cut != all[0].auto.Buckets {
		t.Fatalf("the checkpoint has %+v, the run %+v: %v", ck.State.Buckets, cut, err)
	}
	ck.Close()
	_, rest, trs, errs := over(t, 2, one(quick), opts(dir), 0)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if got := trs[1].auto; got.Buckets != cut || !strings.Contains(got.Why, "as in the checkpoint step-") {
		t.Errorf("resumed with %+v, want %+v", got, cut)
	}
	if got := append(begun.v, rest.v...); !slices.Equal(got, want.v) || len(got) != 6 {
		t.Errorf("losses %v, want %v", got, want.v)
	}
	_, _, trs, errs = over(t, 4, one(quick), func(int) []Option { return auto(t, dir, small, WithSteps(7)) }, 0)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(trs[0].auto.Why, "checkpoint") {
		t.Errorf("four ranks: %s", trs[0].auto.Why)
	}
}

// Without a peak nothing can be predicted: buckets are as usual, and the run says why.
func TestBucketsWithoutAPeak(t *testing.T) {
	_, _, trs, errs := over(t, 2, func(int) link.Link { return slow }, func(int) []Option {
		return auto(t, t.TempDir(), func(c *Config) { c.PeakFLOPS = 0 })
	}, 0)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if got := trs[1].auto; got.Cap != 25<<20 || !strings.Contains(got.Why, "peak of the device is not known") {
		t.Errorf("%+v", got)
	}
}

func TestCluster(t *testing.T) {
	comms, err := shm.NewLocal(4)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range comms {
		defer c.Close()
	}
	tr := planless(t)
	for _, c := range []struct {
		data        comm.Communicator
		local       int
		hosts       int
		want, fault string
	}{
		{comms[0], 4, 1, "on one machine", ""},
		{comms[0], 2, 0, "", "transport shm does not tell its speed"},
		{wired{comms[0], slow, 2}, 2, 2, "between 2 hosts", ""},
		{wired{comms[0], slow, 4}, 1, 4, "mesh from there", ""},
		{wired{comms[0], slow, 0}, 1, 0, "", "different numbers of ranks"},
		{wired{comms[0], link.Link{}, 1}, 4, 1, "on one machine", ""},
	} {
		tr.comm, tr.data, tr.cfg.LocalSize = comms[0], c.data, c.local
		got, err := tr.cluster()
		if c.fault != "" {
			if err == nil || !strings.Contains(err.Error(), c.fault) {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if err != nil || got.Hosts != c.hosts || !strings.Contains(got.Says(), c.want) {
			t.Errorf("%+v: %+v %s: %v", c, got, got.Says(), err)
		}
		if f := c.data == comms[0]; f != (tr.network() == nil) {
			t.Errorf("%+v: its network is %v", c, tr.network())
		}
	}
}

// planless is a trainer with a device.
func planless(t *testing.T) *Trainer {
	tr, _ := planOf(t, 4, 1)
	return tr
}
