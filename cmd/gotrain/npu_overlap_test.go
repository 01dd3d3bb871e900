//go:build cgo && linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// traced is a bar of a trace, in microseconds.
type traced struct{ begin, end float64 }

// traceOf reads the bars of a rank's trace, by name, in the order of steps.
func traceOf(t *testing.T, dir string, rank int) map[string][]traced {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("trace-rank%d.json", rank)))
	if err != nil {
		t.Fatal(err)
	}
	var events []struct {
		Name string  `json:"name"`
		Ph   string  `json:"ph"`
		Ts   float64 `json:"ts"`
		Dur  float64 `json:"dur"`
	}
	if err := json.Unmarshal(raw, &events); err != nil {
		var in struct{ TraceEvents json.RawMessage }
		if json.Unmarshal(raw, &in) != nil || json.Unmarshal(in.TraceEvents, &events) != nil {
			t.Fatal(err)
		}
	}
	bars := map[string][]traced{}
	for _, e := range events {
		if e.Ph == "X" {
			bars[e.Name] = append(bars[e.Name], traced{e.Ts, e.Ts + e.Dur})
		}
	}
	return bars
}

// Collectives of 20 ms each and gradients of convolutions of 10 ms each: a step takes what the backward pass takes and the last bucket, not their sum. The
// host waits once in a step. It has issued the reductions before the gradients are there, and the optimizer before they are reduced.
func TestNPUOverlap(t *testing.T) {
	const steps = 3
	m := withNPUs(t, "8.1", "FAKE_CANN_DEVICES=2", "FAKE_CANN_DELAY=HcclAllReduce:20,ConvolutionBackward:10")
	args, dir := tinyRun(t, "npu", 2, steps, "log.trace=true", "train.batch_per_rank=2")
	_, stats := m.run(2, args...)
	for rank := range 2 {
		bars := traceOf(t, dir, rank)
		buckets := 0
		for len(bars[fmt.Sprint("transfer bucket ", buckets)]) == steps {
			buckets++
		}
		if buckets < 5 || len(bars["wait"]) != steps {
			t.Fatalf("rank %d: %d buckets with times of the device, %d waits of the host in %d steps", rank, buckets, len(bars["wait"]), steps)
		}
		early, ahead, behind, best := 0, 0, 0, 1.0
		for step := range steps {
			at := func(what string, k int) traced {
				b := bars[fmt.Sprintf("%s bucket %d", what, k)]
				if len(b) != steps {
					t.Fatalf("%d bars of %s of bucket %d", len(b), what, k)
				}
				return b[step]
			}
			last := at("compute", buckets-1)
			var comm, compute float64
			for k := range buckets {
				x := at("transfer", k)
				comm += x.end - x.begin
				if x.begin < last.end {
					early++
				}
				if k > 0 { // the first bucket has no traced: it begins the backward pass
					c := at("compute", k)
					compute += c.end - c.begin
					if at("reduce", k).begin < c.end {
						ahead++
					}
				}
				if at("callback", k).begin < x.end {
					behind++
				}
			}
			whole := at("transfer", buckets-1).end - at("compute", 1).begin
			t.Logf("rank %d step %d: backward %.0f ms, reductions %.0f ms, together %.0f ms", rank, step+1, compute/1e3, comm/1e3, whole/1e3)
			best = min(best, (whole-compute)/comm)
		}
		// In one step at least neither rank was late: what the reductions add to the backward pass is little of what they take.
		if best > 0.5 {
			t.Errorf("rank %d: a step takes as long as the backward pass and %.0f %% of the reductions", rank, 100*best)
		}
		if early != steps*(buckets-1) {
			t.Errorf("rank %d: %d of %d reductions begin before the backward pass ends, must be all but the last of each step", rank, early, steps*buckets)
		}
		// A starved host may be late for some.
		if ahead*2 < steps*(buckets-1) || behind*2 < steps*buckets {
			t.Errorf("rank %d: %d of %d reductions are issued before the gradients are there, %d of %d updates before the bucket is reduced", rank, ahead,
				steps*(buckets-1), behind, steps*buckets)
		}
	}
	if n := sum(stats, "aclnnConvolutionBackward"); n == 0 {
		t.Error("nothing was delayed")
	}
}
