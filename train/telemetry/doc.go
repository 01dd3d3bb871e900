// Package telemetry reports what happens in a run: typed events go to sinks, which print, append and export them.
//
// # Overview
//
//	term := telemetry.Stdout()                                     // knows whether it is a terminal
//	slog.SetDefault(slog.New(telemetry.NewHandler(term, id)))      // rank 0: info; others: warnings, prefixed with "[rank 1] "
//	console := telemetry.NewConsole(term, id, telemetry.ConsoleOptions{Every: 10})
//	jsonl, err := telemetry.NewJSONL("runs/x/metrics.jsonl")       // one object per line, appended
//	tb, err := telemetry.NewTensorBoard("runs/x/tb")               // a new event file
//	trace, err := telemetry.NewTrace("runs/x/trace-rank0.json", id, telemetry.TraceOptions{})
//	bus := telemetry.NewBus(console, jsonl, tb, trace)             // is a Sink; never blocks for long, never fails
//	defer bus.Close()
//	bus.Emit(telemetry.Step{Step: 1, Total: 100, Loss: telemetry.Known(2.3), LR: telemetry.Known(0.1)})
//
// # Events
//
// RunStart, Step, Eval, Epoch, Checkpoint, Warning, RunEnd and Span (a bar in a trace) are plain structs. A number that may be unknown is a Value;
// its zero value is "not known", printed as "-", null in JSON, omitted from TensorBoard. So a number that was not measured never shows as 0. Units
// are seconds, bytes, items per second, and fractions of 1; the console prints fractions as percentages.
//
// A Metric is a number, a Tensor a metric of several: {"name", "shape", "values"} in JSON. Consoles and TensorBoard leave tensors out.
//
// # Console
//
// Each step is one line, familiar to users of the common launchers and easy for programs to split:
//
//	[Node 0, Rank 0/2] Step 1/100: loss=2.3026 lr=0.1 npu_util=97.1% throughput=123.4 samples/s comm_time=0.012s compute_time=0.345s wait=0.001s …
//
// comm_time is the time in which collectives moved data, over all buckets; where the transport cannot tell that from the time in which it waited for the last
// rank (a ring), it has both. wait is the time during which compute stood still for them. On a terminal the columns are aligned and coloured (unless NO_COLOR
// is set), and a progress line at the bottom shows the time left; it is erased before every other line, and omitted in a pipe.
//
// # Sinks
//
// A Sink receives one event after the other. Multi fans out to several; Bus calls them from its own goroutine. A sink that fails is reported once, as
// a Warning to the others, and gets no further events: training does not end because a log disk is full.
//
// # Times of kernels
//
// Once in a run, Kernels says when the device of a rank was done with what in a step; ReadKernels finds it in a metrics.jsonl. A prediction for other networks
// starts from it.
//
// # Machine metrics
//
// Memory reads the resident set of the process and its peak. FLOPs names the formula behind a utilisation: MFU is "-" if the peak of the device is
// unknown. Window gives medians, because a mean never forgets the first slow steps.
package telemetry
