package main

import "testing"

func TestAutoencoderLearns(t *testing.T) {
	res, err := run(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	// Every held-out picture counts once, though 500 is no multiple of the batch of 48; the data are normalised, so spread is about 1.
	e := res.Eval
	if explained := 1 - e["loss"]/e["spread"]; e["items"] != 500 || !(e["spread"] > 0.8 && e["spread"] < 1.3) || !(explained > 0.55 && explained < 0.95) {
		t.Errorf("%v: %.3f of the variance", e, explained)
	}
}
