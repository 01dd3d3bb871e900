package ddp

import (
	"context"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/schedule"
	"github.com/gotrain/gotrain/npu"
)

// timedHandle is a reduction that a device ran.
type timedHandle struct{ begin, end time.Duration }

func (timedHandle) Wait(context.Context) error                       { return nil }
func (timedHandle) Done() <-chan struct{}                            { return nil }
func (timedHandle) Took() (transfer, wait time.Duration, apart bool) { return 0, 0, true }
func (h timedHandle) Times() (time.Time, time.Duration, time.Duration, bool) {
	return time.Unix(1000, 0), h.begin, h.end, h.end > 0
}

type reached struct {
	npu.Event
	at time.Duration
}

func (r reached) At() time.Duration { return r.at }

// Two buckets: the second is computed while the first is reduced, and the bars say so. Another step begins anew.
func TestBars(t *testing.T) {
	var got []Span
	var b bars
	emit := func(s Span) { got = append(got, s) }
	at := func(step int64, k int, ev npu.Event) ready {
		return ready{it: schedule.Item{Bucket: k}, step: step, event: ev}
	}
	s := func(d int) time.Duration { return time.Duration(d) * time.Second }
	b.draw(inFlight{ready: at(7, 0, reached{at: s(10)}), handle: timedHandle{s(11), s(14)}}, emit)
	b.draw(inFlight{ready: at(7, 1, reached{at: s(13)}), handle: timedHandle{s(14), s(15)}}, emit)
	b.draw(inFlight{ready: at(8, 0, reached{at: s(20)}), handle: timedHandle{s(21), s(24)}}, emit)
	b.draw(inFlight{ready: at(8, 1, nil), handle: timedHandle{}}, emit) // not on the device
	want := []Span{
		{What: "transfer", Step: 7, Bucket: 0, Begin: time.Unix(1011, 0), End: time.Unix(1014, 0)},
		{What: "transfer", Step: 7, Bucket: 1, Begin: time.Unix(1014, 0), End: time.Unix(1015, 0)},
		{What: "compute", Step: 7, Bucket: 1, Begin: time.Unix(1010, 0), End: time.Unix(1013, 0)},
		{What: "transfer", Step: 8, Bucket: 0, Begin: time.Unix(1021, 0), End: time.Unix(1024, 0)},
	}
	if len(got) != len(want) {
		t.Fatalf("%d spans, want %d: %v", len(got), len(want), got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("span %d: %v, want %v", i, got[i], want[i])
		}
	}
}
