package main

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/ddp/launch"
)

func benchedData(t *testing.T, args ...string) dataReport {
	t.Helper()
	out, errs, code := cli(t, append([]string{"bench", "data", "--json", "--seconds", "0.05", "--steps", "1"}, args...)...)
	if code != 0 {
		t.Fatalf("%v: exit code %d\n%s%s", args, code, out, errs)
	}
	var d dataReport
	dec := json.NewDecoder(strings.NewReader(out))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var share float64
	for _, s := range d.Stages {
		share += s.Share
	}
	if math.Abs(share-1) > 1e-6 || d.Rate <= 0 || d.PerCore <= 0 || d.Load <= 0 || d.Workers < 1 || d.Samples < 1 {
		t.Errorf("%v: %+v", args, d)
	}
	return d
}

// Every kind of data that the shipped recipes have is measured with the names of its stages.
func TestBenchDataKinds(t *testing.T) {
	small := []string{"--set", "train.batch_per_rank=2"}
	d := benchedData(t, append(small, "resnet50", "--no-step", "--workers", "2")...)
	if d.Items != "pictures" || d.Kind != "imagefolder" || len(d.Stages) != 3 || d.Stages[1].Name != "decode" || d.Stages[1].Share <= 0 || d.Workers != 2 ||
		d.Decoder == "" || d.Step != 0 || d.Bound != "" {
		t.Errorf("%+v", d)
	}
	d = benchedData(t, append(small, "quickstart", "--set", "model.depth=18", "--set", "model.width=4")...)
	if d.Items != "pictures" || d.Kind != "idx" || d.Step <= 0 || d.Bound == "" || d.Verdict == "" || d.Part <= 0 {
		t.Errorf("%+v", d)
	}
	d = benchedData(t, append(small, "llama-tiny", "--no-step", "--ranks", "4")...)
	if d.Items != "tokens" || d.Rate < float64(d.perSample) || d.Ranks != 4 {
		t.Errorf("%+v", d)
	}
}

func TestBenchDataRefuses(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"resnet50-imagenet"}, launch.ExitNoInput, "imagenet"},
		{[]string{"resnet50", "--set", "data.root=/nowhere"}, launch.ExitNoInput, "/nowhere"},
		{[]string{"nothing"}, launch.ExitRecipe, "nothing"},
		{[]string{"quickstart", "--seconds", "0"}, launch.ExitUsage, "--seconds"},
		{[]string{"quickstart", "--workers", "-1"}, launch.ExitUsage, "--workers"},
	} {
		_, errs, code := cli(t, append([]string{"bench", "data"}, c.args...)...)
		if code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("%v: exit code %d, %s", c.args, code, errs)
		}
	}
}

// The verdict depends on how long loading takes beside computing, and on who else needs the processors.
func TestDataVerdict(t *testing.T) {
	for _, c := range []struct {
		rate, perCore, step float64
		workers             int
		bound, says         string
		helpful             int
	}{
		{1000, 1000, 1, 1, "compute", "Faster data would not help", 0},
		{100, 100, 0.4, 1, "compute", "from it", 0},                         // 0.16 s of two processors in 0.4 s
		{10, 10, 1, 1, "data", "Set data.workers_per_rank = 2", 2},          // 1.6 s with one worker, 0.8 s with two
		{20, 10, 0.1, 2, "data", "Store the pictures with fewer pixels", 0}, // no number of workers suffices
	} {
		d := dataReport{Kind: "imagefolder", Processors: 2, Ranks: 1, Batch: 16, Accumulate: 1, perSample: 1, Rate: c.rate, PerCore: c.perCore, Step: c.step,
			Workers: c.workers}
		d.judge()
		if d.Bound != c.bound || !strings.Contains(d.Verdict, c.says) || d.Helpful != c.helpful {
			t.Errorf("%+v: %+v", c, d)
		}
	}
}
