package telemetry

import "time"

// Event is one of the event types of this package. A zero Time means now.
type Event interface {
	// Kind is the name of the event in files: "step", "eval", ….
	Kind() string
}

// Identity is the rank that emits events.
type Identity struct {
	Node  int `json:"node"`
	Rank  int `json:"rank"`
	World int `json:"world"`
}

// Fact is a line in the header of a run.
type Fact struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// RunStart is the first event.
type RunStart struct {
	Time    time.Time `json:"time"`
	Name    string    `json:"name"`
	Version string    `json:"version"`
	// Step is the number of steps done as the run starts: 0, or that of the checkpoint it resumes from. Events of later steps from earlier runs no
	// longer count.
	Step int64 `json:"step"`
	Identity
	Host   string `json:"host"`
	Facts  []Fact `json:"facts,omitempty"`  // in the order to print: device, parameters, batch, schedule, formula and peak of MFU, …
	Recipe string `json:"recipe,omitempty"` // fully resolved
}

// Step is one optimizer step, of all ranks unless a field says otherwise.
type Step struct {
	Time    time.Time `json:"time"`
	Step    int64     `json:"step"` // 1 is the first
	Total   int64     `json:"total"`
	Epoch   Value     `json:"epoch"` // passes over the data so far, with a fraction
	Loss    Value     `json:"loss"`
	LR      Value     `json:"lr"`
	Norm    Value     `json:"grad_norm"` // before clipping
	Scale   Value     `json:"loss_scale"`
	Skipped bool      `json:"skipped,omitempty"` // gradients were not finite

	Throughput Value  `json:"throughput"` // items per second
	Unit       string `json:"unit"`       // of Throughput: "samples/s" ("" means that), "tok/s"
	Took       Value  `json:"step_time"`
	Compute    Value  `json:"compute_time"` // seconds in which this rank's device computed
	Comm       Value  `json:"comm_time"`    // seconds in collectives, hidden or not
	Wait       Value  `json:"wait_time"`    // the part of Comm during which compute stood still
	Data       Value  `json:"data_time"`    // seconds spent waiting for samples
	Util       Value  `json:"npu_util"`     // fraction of the step in which the device computed
	MFU        Value  `json:"mfu"`
	Memory     Value  `json:"memory"` // bytes held by this rank

	// Metrics are further metrics of the model, such as top1.
	Metrics []Metric `json:"metrics,omitempty"`
	Tensors []Tensor `json:"tensors,omitempty"`
}

// Metric is a named number.
type Metric struct {
	Name  string `json:"name"`
	Value Value  `json:"value"`
}

// Eval is one pass over held-out data.
type Eval struct {
	Time    time.Time `json:"time"`
	Name    string    `json:"name"` // name of the data; "" means "eval"
	Step    int64     `json:"step"`
	Epoch   Value     `json:"epoch"`
	Loss    Value     `json:"loss"`
	Metrics []Metric  `json:"metrics,omitempty"`
	Tensors []Tensor  `json:"tensors,omitempty"`
	Items   int64     `json:"items"`          // evaluated over all ranks, each once
	Of      int64     `json:"of"`             // items in the data set; 0 if they are not its samples
	Unit    string    `json:"unit"`           // unit of Items; "" means "samples"
	Best    bool      `json:"best,omitempty"` // better than all evaluations of the run before
	Took    Value     `json:"time_s"`
}

// Epoch is the end of a pass over the data.
type Epoch struct {
	Time    time.Time `json:"time"`
	Epoch   int64     `json:"epoch"` // passes done
	Step    int64     `json:"step"`
	Loss    Value     `json:"loss"` // mean over the epoch
	Metrics []Metric  `json:"metrics,omitempty"`
	Samples int64     `json:"samples"`
	Took    Value     `json:"time_s"`
}

// Checkpoint reports a checkpoint that was written, or failed to be written.
type Checkpoint struct {
	Time    time.Time `json:"time"`
	Step    int64     `json:"step"`
	Path    string    `json:"path"`
	Bytes   int64     `json:"bytes"`
	Took    Value     `json:"time_s"`
	Removed []string  `json:"removed,omitempty"`
	Error   string    `json:"error,omitempty"` // why it was not written; training continues
}

// Warning is a message for the user.
type Warning struct {
	Time time.Time `json:"time"`
	Step int64     `json:"step,omitempty"`
	Text string    `json:"text"`
}

// RunEnd is the last event.
type RunEnd struct {
	Time       time.Time `json:"time"`
	Step       int64     `json:"step"`
	Reason     string    `json:"reason"` // "done", "stopped early at step …", "stopped on request …", "failed"
	Error      string    `json:"error,omitempty"`
	Took       Value     `json:"time_s"`
	Throughput Value     `json:"throughput"` // median over recent steps
	Unit       string    `json:"unit"`
	PeakMemory Value     `json:"peak_memory"`
}

// Span is a bar in a trace. Only Trace uses it.
type Span struct {
	Name  string
	Cat   string // "forward", "allreduce", …; determines colours and filters
	Track string // "host", "compute", "comm", "io": a row of the trace
	Begin time.Time
	Dur   time.Duration
	Args  []Fact
}

// Kind is "run_start".
func (RunStart) Kind() string { return "run_start" }

// Kind is "step".
func (Step) Kind() string { return "step" }

// Kind is "eval".
func (Eval) Kind() string { return "eval" }

// Kind is "epoch".
func (Epoch) Kind() string { return "epoch" }

// Kind is "checkpoint".
func (Checkpoint) Kind() string { return "checkpoint" }

// Kind is "warning".
func (Warning) Kind() string { return "warning" }

// Kind is "run_end".
func (RunEnd) Kind() string { return "run_end" }

// Kind is "span".
func (Span) Kind() string { return "span" }

func orNow(t time.Time) time.Time {
	if t.IsZero() {
		return time.Now()
	}
	return t
}
