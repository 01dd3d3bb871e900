package telemetry

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

// The end of a run reports what was learned: the loss at first, and the first and last evaluation.
func TestLearned(t *testing.T) {
	eval := func(step int64, loss, top1 float64) Event {
		return Eval{Step: step, Loss: Known(loss), Metrics: []Metric{{"top1", Known(top1)}}, Items: 500, Of: 500}
	}
	end := RunEnd{Reason: "done", Step: 400, Took: Known(31)}
	for name, c := range map[string]struct {
		events []Event
		want   string
	}{
		"whole run": {[]Event{Step{Step: 1, Total: 400, Loss: Known(2.2803)}, Step{Step: 2, Total: 400, Loss: Known(9)}, eval(40, 2.05, 0.268), eval(400,
			0.48959, 0.798), end},
			"learned: loss 2.28 in step 1, 0.49 on held-out data at the end; top1 0.268 at step 40, 0.798\n"},
		"one evaluation": {[]Event{Step{Step: 1, Loss: Known(2)}, eval(4, 1.5, 0.5), end}, "learned: loss 2 in step 1, 1.5 on held-out data at the end; top1 0.5\n"},
		"none":           {[]Event{Step{Step: 1, Loss: Known(2)}, end}, ""},
		"not finite":     {[]Event{Step{Step: 1, Loss: Known(2)}, eval(4, math.NaN(), 0.5), end}, ""},
		"failed":         {[]Event{Step{Step: 1, Loss: Known(2)}, eval(4, 1.5, 0.5), RunEnd{Reason: "failed", Error: "x"}}, ""},
		"evaluated only": {[]Event{eval(4, 1.5, 0.5), end}, ""},
	} {
		var out bytes.Buffer
		con := NewConsole(NewTerminal(&out, 0, false), Identity{World: 1}, ConsoleOptions{})
		for _, e := range c.events {
			if err := con.Emit(e); err != nil {
				t.Fatal(err)
			}
		}
		_, got, _ := strings.Cut(out.String(), "learned:")
		if want := strings.TrimPrefix(c.want, "learned:"); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
