package checkpoint_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/train/checkpoint"
)

// The metrics of an evaluation are added to a committed checkpoint; whatever happens to their file, the checkpoint loads.
func TestEvaluationIsAddedAfterTheCommit(t *testing.T) {
	dir := t.TempDir()
	s := checkpoint.New(checkpoint.OS{}, dir, 2)
	c := content(7, "r")
	c.State.EvaluationDue = true
	saved, err := s.Save(ctx, c)
	must(t, err)
	load := func() checkpoint.State {
		t.Helper()
		ck, _, err := s.Latest(ctx)
		must(t, err)
		defer ck.Close()
		return ck.State
	}
	if st := load(); !st.EvaluationDue || st.Metrics != nil {
		t.Errorf("before the evaluation: due %v, metrics %v", st.EvaluationDue, st.Metrics)
	}
	third := 1.0 / 3
	must(t, s.Evaluated(ctx, saved.Name, map[string]float64{"loss": third, "perplexity": math.Inf(1)},
		map[string]checkpoint.Array{"confusion": {Shape: []int{2}, Values: []byte("0123456789abcdef")}}))
	if st := load(); len(st.Metrics) != 1 || st.Metrics["loss"] != third || string(st.Arrays["confusion"].Values) != "0123456789abcdef" {
		t.Errorf("metrics are %v and %v", st.Metrics, st.Arrays)
	}

	path := filepath.Join(saved.Path, checkpoint.EvaluationFile)
	raw, err := os.ReadFile(path)
	must(t, err)
	if !json.Valid(raw) {
		t.Fatalf("%s", raw)
	}
	for name, bad := range map[string]string{
		"empty":           "",
		"torn":            string(raw[:len(raw)/2]),
		"of another":      strings.Replace(string(raw), `"of": "`, `"of": "0`, 1),
		"of a new format": strings.Replace(string(raw), `"format": 1`, `"format": 99`, 1),
	} {
		must(t, os.WriteFile(path, []byte(bad), 0o666))
		if st := load(); st.Metrics != nil || st.Step != 7 {
			t.Errorf("%s: metrics are %v", name, st.Metrics)
		}
	}
	if err := s.Evaluated(ctx, "step-00000099", nil, nil); err == nil || !strings.Contains(err.Error(), "step-00000099") {
		t.Errorf("a checkpoint that is not there: %v", err)
	}
}
