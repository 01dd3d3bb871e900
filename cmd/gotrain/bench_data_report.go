package main

import (
	"fmt"
	"math"
	"text/tabwriter"
)

// dataReport is the result of gotrain bench data: what --json prints.
type dataReport struct {
	Version    string        `json:"version"`
	Processor  string        `json:"processor"`
	Processors int           `json:"processors"`
	Recipe     string        `json:"recipe"`
	Kind       string        `json:"kind"`
	Source     string        `json:"source"`
	Samples    int           `json:"samples"`
	Decoder    string        `json:"decoder,omitempty"`
	DType      string        `json:"dtype"`
	Batch      int           `json:"batch"`
	Accumulate int           `json:"accumulate"`
	Ranks      int           `json:"ranks"`
	Threads    int           `json:"threads"` // of a rank, that compute
	Workers    int           `json:"workers"` // of a rank, that load
	Items      string        `json:"items"`   // what rates count: pictures, tokens or samples
	Seconds    float64       `json:"seconds"` // that samples were loaded
	Rate       float64       `json:"items_per_second"`
	PerCore    float64       `json:"items_per_second_and_core"` // of the processor time that loading took
	Stages     []stageReport `json:"stages"`
	Step       float64       `json:"step_seconds,omitempty"`      // of one rank, with samples in memory
	Load       float64       `json:"load_seconds"`                // to load the samples of a step with these workers
	Part       float64       `json:"processors_part,omitempty"`   // that loading takes of all processors while all ranks compute
	Bound      string        `json:"bound,omitempty"`             // data or compute
	Verdict    string        `json:"verdict,omitempty"`           // in words
	Helpful    int           `json:"workers_suggested,omitempty"` // where more of them would help

	perSample int // items
}

// stageReport is one stage of loading.
type stageReport struct {
	Name   string  `json:"name"`
	Share  float64 `json:"share"`
	Micros float64 `json:"us_per_sample"`
}

// judge compares loading with computing. Workers run beside the threads that compute, at a lower priority: they use what is left, and all of it while a rank
// waits for them.
func (d *dataReport) judge() {
	step := float64(d.Batch * d.Accumulate * d.perSample)
	work := step / d.PerCore // processor time
	d.Load = step / d.Rate
	if d.Step == 0 {
		return
	}
	d.Part = work * float64(d.Ranks) / (d.Step * float64(d.Processors))
	atMost := max(1, d.Processors/d.Ranks) // processors of a rank
	switch {
	case d.Load <= d.Step && d.Part < 0.05:
		d.Bound = "compute"
		d.Verdict = fmt.Sprintf("compute bounds a run on this machine: the samples of a step are ready in %s of the %s that it computes, and loading takes %s of "+
			"the processors. Faster data would not help.", seconds(d.Load), seconds(d.Step), percent(d.Part))
	case d.Load <= d.Step && d.Part < 1:
		d.Bound = "compute"
		d.Verdict = fmt.Sprintf("compute bounds a run on this machine, but loading takes %s of the processors from it, if all of them compute. %s",
			percent(d.Part), d.cheaper())
	case d.Workers < atMost && work/float64(atMost) < d.Step:
		d.Bound, d.Helpful = "data", min(atMost, max(d.Workers+1, int(math.Ceil(float64(d.Workers)*d.Load/d.Step))))
		d.Verdict = fmt.Sprintf("data bound a run on this machine: the samples of a step take %s, and the step computes for %s. Set data.workers_per_rank = %d.",
			seconds(d.Load), seconds(d.Step), d.Helpful)
	default:
		d.Bound = "data"
		d.Verdict = fmt.Sprintf("data bound a run on this machine: the samples of a step take %s, and the step computes for %s. %s",
			seconds(max(d.Load, work*float64(d.Ranks)/float64(d.Processors))), seconds(d.Step), d.cheaper())
	}
}

// cheaper says how loading becomes cheaper.
func (d *dataReport) cheaper() string {
	switch {
	case d.Kind == "imagefolder" && d.Decoder == "Go":
		return "Go's JPEG decoder is used: leave data.decoder = \"auto\"."
	case d.Kind == "imagefolder":
		return "Store the pictures with fewer pixels, or ready in size (data.kind = \"packed\")."
	case d.Kind == "text":
		return "Prepare the tokens once with gotrain tokenize (data.kind = \"tokens\")."
	}
	return "Use a smaller sample, or a larger model."
}

func percent(part float64) string {
	if part < 0.001 {
		return "less than 0.1 %"
	}
	return fmt.Sprintf("%.1f %%", 100*part)
}

// seconds formats a time for a sentence.
func seconds(s float64) string {
	switch {
	case s < 1e-3:
		return fmt.Sprintf("%.0f µs", s*1e6)
	case s < 1:
		return fmt.Sprintf("%.3g ms", s*1e3)
	}
	return fmt.Sprintf("%.3g s", s)
}

func (a *app) printData(d *dataReport) error {
	fmt.Fprintf(a.out, "# gotrain %s bench data %s, %s, %s\n", d.Version, d.Recipe, d.Processor, amounts(d.Processors, "processor"))
	fmt.Fprintf(a.out, "# %s: %s", d.Source, amounts(d.Samples, "sample"))
	if d.Decoder != "" {
		fmt.Fprintf(a.out, "; JPEGs by %s", d.Decoder)
	}
	fmt.Fprintln(a.out)
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "loading\t%.0f %s/s with %s\n", d.Rate, d.Items, amounts(d.Workers, "worker"))
	fmt.Fprintf(w, "\t%.0f %s/s for each processor that is busy with it\n", d.PerCore, d.Items)
	for _, s := range d.Stages {
		fmt.Fprintf(w, "  %s\t%.1f %%\t%.1f µs a sample\n", s.Name, 100*s.Share, s.Micros)
	}
	if d.Step > 0 {
		fmt.Fprintf(w, "step\t%s for %d %s: %.0f %s/s on one rank of %d with %s, %s\n", seconds(d.Step), d.Batch*d.Accumulate*d.perSample, d.Items,
			float64(d.Batch*d.Accumulate*d.perSample)/d.Step, d.Items, d.Ranks, amounts(d.Threads, "thread"), d.DType)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if d.Verdict != "" {
		fmt.Fprintln(a.out, d.Verdict)
	}
	return nil
}
