package ddp_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp"
	"github.com/gotrain/gotrain/ddp/bucket"
	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/commtest"
	"github.com/gotrain/gotrain/ddp/comm/link"
	"github.com/gotrain/gotrain/ddp/simulate"
)

// TestPrediction compares the simulation with the engine, over a wire of a known speed and with gradients at known times: what is exposed agrees within
// 15 %. A machine that is busy only makes steps longer, so the shortest of several attempts counts.
func TestPrediction(t *testing.T) {
	const rate, pause = 20e6, 10 * time.Millisecond // bytes a second; between gradients
	sizes := []int64{50000, 250000, 400000, 100000, 300000, 200000}
	var want simulate.Result
	got := time.Duration(1 << 62)
	for range 8 {
		took := make([]time.Duration, 2)
		succeed(t, ranks(t, group(t, 2), func(c comm.Communicator) error {
			e, err := ddp.New(context.Background(), ddp.Config{Comm: commtest.Slow(c, rate), Params: params(sizes...), BucketMB: 2, FirstBucketMB: 0.5})
			if err != nil {
				return err
			}
			defer e.Close()
			if c.Rank() == 0 {
				if want, err = predicted(e.Plan(), rate, pause); err != nil {
					return err
				}
			}
			if err := e.Begin(0, true); err != nil {
				return err
			}
			begin := time.Now()
			for i := range sizes {
				time.Sleep(time.Until(begin.Add(time.Duration(i+1) * pause)))
				if err := e.Ready(i); err != nil {
					return err
				}
			}
			st, err := e.Wait(context.Background())
			took[c.Rank()] = st.Exposed
			return err
		}))
		got = min(got, slices.Max(took))
		if off := float64(got-want.Exposed) / float64(want.Exposed); off < 0.15 {
			if off < -0.15 {
				t.Errorf("%v exposed, predicted %v", got, want.Exposed)
			}
			return
		}
	}
	t.Errorf("%v exposed at best, predicted %v", got, want.Exposed)
}

// predicted simulates the test. On its wire an all-reduce of n bytes takes n ÷ rate, as between two ranks.
func predicted(p *bucket.Plan, rate float64, pause time.Duration) (simulate.Result, error) {
	c := simulate.Compute{}
	for i := range p.Params {
		c.Ready = append(c.Ready, time.Duration(i+1)*pause)
	}
	c.End = c.Ready[len(c.Ready)-1]
	return simulate.Run(simulate.Step{Buckets: p, Compute: c, Cluster: link.Cluster{Ranks: 2, Hosts: 2, Link: link.Link{Bandwidth: rate}}})
}
