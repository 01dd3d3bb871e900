// Package telemetry carries what happens in a run to where people look: typed events go to sinks, which print, append and
// export them.
//
// # In short
//
//	term := telemetry.Stdout()                                     // knows whether it is a terminal
//	slog.SetDefault(slog.New(telemetry.NewHandler(term, id)))      // rank 0: info; others: warnings, with "[rank 1] " in front
//	console := telemetry.NewConsole(term, id, telemetry.ConsoleOptions{Every: 10})
//	jsonl, err := telemetry.NewJSONL("runs/x/metrics.jsonl")       // one object a line, appended
//	tb, err := telemetry.NewTensorBoard("runs/x/tb")               // a new event file
//	trace, err := telemetry.NewTrace("runs/x/trace-rank0.json", id, telemetry.TraceOptions{})
//	bus := telemetry.NewBus(console, jsonl, tb, trace)             // is a Sink; never blocks for long, never fails
//	defer bus.Close()
//	bus.Emit(telemetry.Step{Step: 1, Total: 100, Loss: telemetry.Known(2.3), LR: telemetry.Known(0.1)})
//
// # Events
//
// RunStart, Step, Eval, Epoch, Checkpoint, Warning, RunEnd and Span (a bar in a trace) are plain structs. A number that may not be
// known is a Value; its zero value is "not known", printed as "-", null in JSON, left out of TensorBoard. So what nobody measured is never shown as 0. Units
// are seconds, bytes, items per second, and parts of 1; the console prints per cent.
//
// # Console
//
// Each step is one line that people who know the launchers of the field can read and programs can split:
//
//	[Node 0, Rank 0/2] Step 1/100: loss=2.3026 lr=0.1 npu_util=97.1% throughput=123.4 samples/s comm_time=0.012s compute_time=0.345s wait=0.001s …
//
// comm_time is the time that collectives took, wait the part of it that computing had to wait for. On a terminal the columns are aligned and
// coloured (unless NO_COLOR is set), and a line at the bottom shows progress and the time that is left; it is wiped before every other line, and not
// there at all in a pipe.
//
// # Sinks
//
// A Sink takes one event after the other. Multi calls several; Bus calls them from a goroutine of its own. A sink that fails is reported once, as a
// Warning to the others, and left alone from then on: training does not end because a disk of logs is full.
//
// # Numbers about the machine
//
// Memory reads the resident set of the process and its peak. FLOPs names the formula behind a utilisation: MFU is "-" where the peak of the device is not known.
// Window gives medians, because means keep the first slow steps for ever.
package telemetry
