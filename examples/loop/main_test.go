package main

import (
	"context"
	"math"
	"testing"
)

func TestTwoRanksEqualOne(t *testing.T) {
	one, _, err := run(context.Background(), 1, 101, 60)
	if err != nil {
		t.Fatal(err)
	}
	for _, ranks := range []int{2, 3} {
		w, loss, err := run(context.Background(), ranks, 101, 60)
		if err != nil {
			t.Fatal(err)
		}
		for i := range w { // sums of 101 float32 in another order
			if math.Abs(float64(w[i]-one[i])) > 1e-5 {
				t.Errorf("%d ranks: %v, one rank: %v", ranks, w, one)
			}
		}
		if loss > 1e-3 || math.Abs(float64(w[0])-3) > 0.05 {
			t.Errorf("%d ranks: %v, loss %g", ranks, w, loss)
		}
	}
}
