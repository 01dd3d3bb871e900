//go:build e2e

package main

import (
	"encoding/json"
	"path/filepath"
	"testing"
)

// The quickstart keeps its promise: about 80 % of 500 held-out pictures. Three standard deviations of such a sample are 5.4 points, and half
// a minute of two quiet cores is what it takes: hence the tag.
func TestQuickstartAccuracy(t *testing.T) {
	dir := t.TempDir()
	if out, err := program(t, "run", "quickstart", "--set", "run.output_dir="+dir, "--set", "log.every_steps=100").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, tail(string(out)))
	}
	raw, err := program(t, "eval", filepath.Join(dir, "checkpoints"), "--json").Output()
	var v map[string]float64
	if err != nil || json.Unmarshal(raw, &v) != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	t.Logf("top1 %.3f over %.0f pictures", v["top1"], v["items"])
	if v["items"] != 500 || v["top1"] < 0.75 {
		t.Errorf("got %v", v)
	}
}
