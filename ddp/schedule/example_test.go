package schedule_test

import (
	"fmt"

	"github.com/gotrain/gotrain/ddp/schedule"
)

// Two buckets, each encoded, exchanged, summed, encoded and gathered. Phase 1 of the first does not wait for the second.
func Example() {
	p, err := schedule.New(2, 2, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	r := schedule.NewRun(p)
	r.Begin(false)
	issue := func(event string) {
		for l := range p.Lanes() {
			for it, ok := r.Next(l); ok; it, ok = r.Next(l) {
				fmt.Printf("%s: %v\n", event, it)
			}
		}
	}
	r.Ready(1) // early: it waits for bucket 0
	issue("bucket 1 ready")
	r.Ready(0)
	issue("bucket 0 ready")
	r.Done(schedule.Item{Bucket: 0, Phase: 0})
	issue("bucket 0 exchanged")
	// Output:
	// bucket 0 ready: bucket 0 phase 0
	// bucket 0 ready: bucket 1 phase 0
	// bucket 0 exchanged: bucket 0 phase 1
}
