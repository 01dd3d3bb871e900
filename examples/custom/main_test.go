package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

func TestCustomModelLearns(t *testing.T) {
	var out bytes.Buffer
	res, err := run(context.Background(), &out, 2)
	if err != nil {
		t.Fatal(err)
	}
	// A linear classifier reaches about 0.75 on these 500 images; chance is 0.1.
	if res.Eval["items"] != 500 || res.Eval["top1"] < 0.70 {
		t.Errorf("after two epochs: %+v", res.Eval)
	}
	if !strings.Contains(out.String(), "[Node 0, Rank 0/1] Step 80/80: loss=") {
		t.Errorf("console:\n%s", out.String())
	}
}
