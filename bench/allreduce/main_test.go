// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync"
	"testing"

	"github.com/gotrain/gotrain/ddp/comm/shm"
)

// TestTimeOne checks that a measurement ends, sums rightly (timeOne looks itself) and that all ranks report the slowest one's time.
func TestTimeOne(t *testing.T) {
	for _, staged := range []bool{false, true} {
		group, err := shm.NewLocal(2)
		if err != nil {
			t.Fatal(err)
		}
		us := make([]float64, 2)
		var wg sync.WaitGroup
		for i, c := range group {
			wg.Go(func() {
				defer c.Close()
				var err error
				if us[i], err = timeOne(context.Background(), c, 1<<16, staged); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if us[0] <= 0 || us[0] != us[1] {
			t.Errorf("staged=%t: times %v, want two equal ones", staged, us)
		}
	}
}
