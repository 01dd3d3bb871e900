package telemetry

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

var at = time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)

func full() Step {
	return Step{Time: at, Step: 1, Total: 100, Epoch: Known(0.0123), Loss: Known(2.302585), LR: Known(0.1), Norm: Known(1.25), Took: Known(0.4),
		Throughput: Known(123.44), Compute: Known(0.3451), Comm: Known(0.012), Wait: Known(0.001), Data: Known(0), Util: Known(0.9712),
		MFU: Known(0.41), Memory: Known(1.5 * (1 << 30)), Metrics: []Metric{{"top1", Known(0.25)}}}
}

// The line that readers of launcher articles look for is a prefix of ours, byte for byte.
func TestConsoleLines(t *testing.T) {
	var out bytes.Buffer
	c := NewConsole(NewTerminal(&out, 0, true), Identity{Node: 0, Rank: 0, World: 2}, ConsoleOptions{})
	skipped := full()
	skipped.Step, skipped.Skipped, skipped.Scale, skipped.Loss = 2, true, Known(65536), Known(math.NaN())
	for _, e := range []Event{
		RunStart{Name: "resnet50", Version: "1.0", Facts: []Fact{{"device", "cpu, 2 threads"}, {"batch", "32"}}},
		full(),
		skipped,
		Step{Step: 3, Total: 100, Unit: "tok/s"},
		Eval{Step: 2, Loss: Known(2), Items: 3, Unit: "tokens"},
		Eval{Name: "val", Step: 3, Loss: Known(1.5), Metrics: []Metric{{"top1", Known(0.5)}}, Items: 500, Of: 500, Took: Known(3.21)},
		Epoch{Epoch: 1, Step: 3, Loss: Known(2), Samples: 96, Took: Known(60)},
		Checkpoint{Step: 3, Path: "runs/x/step-00000003", Bytes: 204 << 20, Took: Known(0.5)},
		Checkpoint{Step: 4, Error: "checkpoint: step 4 was not saved: no space left"},
		Warning{Text: "the disk is slow"},
		Span{Name: "conv"},
		RunEnd{Reason: "done", Step: 100, Took: Known(3725), Throughput: Known(120), PeakMemory: Known(2 << 30)},
		RunEnd{Reason: "failed", Step: 7, Error: "rank 1 is gone"},
	} {
		if err := c.Emit(e); err != nil {
			t.Fatal(err)
		}
	}
	want := `gotrain 1.0: resnet50
  device  cpu, 2 threads
  batch   32
[Node 0, Rank 0/2] Step 1/100: loss=2.3026 lr=0.1 npu_util=97.1% throughput=123.4 samples/s comm_time=0.012s compute_time=0.345s wait=0.001s data_time=0.000s step_time=0.400s mem=1.5GiB mfu=41.0% grad_norm=1.25 epoch=0.01 top1=0.25
[Node 0, Rank 0/2] Step 2/100: loss=NaN lr=0.1 npu_util=97.1% throughput=123.4 samples/s comm_time=0.012s compute_time=0.345s wait=0.001s data_time=0.000s step_time=0.400s mem=1.5GiB mfu=41.0% grad_norm=1.25 scale=65536 epoch=0.01 top1=0.25 skipped=true
[Node 0, Rank 0/2] Step 3/100: loss=- lr=- npu_util=- throughput=- comm_time=- compute_time=- wait=- data_time=- step_time=- mem=- mfu=- grad_norm=- epoch=-
[Node 0, Rank 0/2] Eval after step 2: loss=2 tokens=3 time=-
[Node 0, Rank 0/2] Eval val after step 3: loss=1.5 top1=0.5 items=500/500 time=3.2s
[Node 0, Rank 0/2] Epoch 1 done at step 3: loss=2 samples=96 time=60.0s
[Node 0, Rank 0/2] Checkpoint of step 3: path=runs/x/step-00000003 size=204.0MiB time=0.50s
warning: checkpoint: step 4 was not saved: no space left
warning: the disk is slow
done: steps=100 time=1h02m throughput=120.0 samples/s peak_mem=2.0GiB
learned: loss 2.3 in step 1, 1.5 on held-out data at the end; top1 0.5
failed after step 7
`
	if got := out.String(); got != want {
		t.Errorf("printed\n%s\nwant\n%s", got, want)
	}
}

func TestConsoleEvery(t *testing.T) {
	var out bytes.Buffer
	c := NewConsole(NewTerminal(&out, 0, false), Identity{World: 1}, ConsoleOptions{Every: 4})
	for n := range int64(10) {
		c.Emit(Step{Step: n + 1, Total: 10, Skipped: n == 5})
	}
	var steps []string
	for l := range strings.Lines(out.String()) {
		steps = append(steps, strings.TrimSuffix(strings.Fields(l)[5], ":"))
	}
	if got, want := strings.Join(steps, " "), "1/10 4/10 6/10 8/10 10/10"; got != want {
		t.Errorf("printed steps %s, want %s", got, want)
	}
}

// screen interprets the bytes of a terminal and returns what a person sees.
func screen(raw string) []string {
	lines := []string{""}
	for len(raw) > 0 {
		last := &lines[len(lines)-1]
		switch {
		case strings.HasPrefix(raw, wipe):
			*last, raw = "", raw[len(wipe):]
		case strings.HasPrefix(raw, "\x1b["):
			raw = raw[strings.IndexByte(raw, 'm')+1:]
		case raw[0] == '\n':
			lines, raw = append(lines, ""), raw[1:]
		default:
			*last, raw = *last+raw[:1], raw[1:]
		}
	}
	return lines
}

func TestTerminalHasColumnsColoursAndProgress(t *testing.T) {
	var out bytes.Buffer
	term := NewTerminal(&out, 250, true)
	c := NewConsole(term, Identity{World: 1}, ConsoleOptions{})
	a, b := full(), full()
	b.Step, b.Time, b.Loss = 2, at.Add(2*time.Second), Known(2)
	c.Emit(a)
	c.Emit(b)
	if !strings.Contains(out.String(), dim+"loss="+reset) {
		t.Error("there is no colour")
	}
	lines := screen(out.String())
	if len(lines) != 3 {
		t.Fatalf("screen is %q", lines)
	}
	for _, key := range []string{"lr=", "compute_time=", "top1="} {
		if x, y := strings.Index(lines[0], key), strings.Index(lines[1], key); x < 0 || x != y {
			t.Errorf("%s stands at %d and %d:\n%s\n%s", key, x, y, lines[0], lines[1])
		}
	}
	if want := "[........................................]   2% step 2/100  123.4 samples/s  left 3m16s"; lines[2] != want {
		t.Errorf("progress is\n%q, want\n%q", lines[2], want)
	}
	term.Write([]byte("a log line\n"))
	if got := screen(out.String()); got[2] != "a log line" || got[3] != lines[2] {
		t.Errorf("a log line and progress: %q", got[2:])
	}
	c.Emit(RunEnd{Reason: "done", Step: 2})
	c.Close()
	if got := screen(out.String()); got[len(got)-1] != "" || !strings.HasPrefix(got[len(got)-2], "done:") {
		t.Errorf("the end leaves %q", got)
	}
	if s := screen(out.String()); len(s) != 5 {
		t.Errorf("screen has %d lines: %q", len(s), s)
	}
}

func TestProgressFitsTheTerminal(t *testing.T) {
	for _, columns := range []int{10, 30, 60, 200} {
		var out bytes.Buffer
		c := NewConsole(NewTerminal(&out, columns, false), Identity{World: 1}, ConsoleOptions{Every: 1000})
		for n := range int64(100) {
			s := full()
			s.Step, s.Time = n+1, at.Add(time.Duration(n)*time.Second)
			c.Emit(s)
		}
		lines := screen(out.String())
		if last := lines[len(lines)-1]; len(last) >= columns || last == "" {
			t.Errorf("%d columns: %q", columns, last)
		}
	}
}

// A step takes one row of the terminal: what matters least is left out, and what matters most stays.
func TestStepFitsTheTerminal(t *testing.T) {
	for columns, want := range map[int]string{
		60:  "loss top1",
		80:  "loss top1",
		100: "loss throughput top1",
		120: "loss lr throughput epoch top1",
		160: "loss lr throughput step_time grad_norm epoch top1",
		400: "loss lr npu_util throughput comm_time compute_time wait data_time step_time mem mfu grad_norm epoch top1",
	} {
		var out bytes.Buffer
		c := NewConsole(NewTerminal(&out, columns, true), Identity{World: 2}, ConsoleOptions{NoProgress: true})
		for n := range int64(3) {
			s := full()
			s.Step, s.LR = n+8, Known(0.1/float64(n*n*n+3)) // from a short number to long ones
			c.Emit(s)
		}
		c.Emit(RunEnd{Reason: "done", Step: 10, Throughput: Known(1)})
		if !strings.Contains(out.String(), "throughput="+reset+"1.0 samples/s") {
			t.Errorf("%d columns: the last line lacks fields", columns)
		}
		lines := screen(out.String())
		for _, l := range lines {
			if len(l) >= columns && strings.Contains(l, "Step") {
				t.Errorf("%d columns: a line takes %d: %q", columns, len(l), l)
			}
		}
		var keys []string
		for _, f := range strings.Fields(lines[1]) {
			if key, _, ok := strings.Cut(f, "="); ok {
				keys = append(keys, key)
			}
		}
		if got := strings.Join(keys, " "); got != want {
			t.Errorf("%d columns show %s, want %s", columns, got, want)
		}
	}
}

func TestPipeHasNoEscapes(t *testing.T) {
	var out bytes.Buffer
	term := NewTerminal(&out, 0, true)
	c := NewConsole(term, Identity{World: 1}, ConsoleOptions{})
	c.Emit(full())
	c.Emit(Warning{Text: "x"})
	term.Progress("50%")
	c.Close()
	if strings.ContainsAny(out.String(), "\x1b\r") {
		t.Errorf("a pipe gets %q", out.String())
	}
}

func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-1: "-", 0: "0.0s", 1500 * time.Millisecond: "1.5s", 42 * time.Second: "42s", 127 * time.Second: "2m07s",
		3*time.Hour + 5*time.Minute: "3h05m", 50 * time.Hour: "2d02h",
	} {
		if got := short(d); got != want {
			t.Errorf("%v is %q, want %q", int64(d), got, want)
		}
	}
}

// stub is a sink that fails, panics or blocks on demand.
type stub struct {
	emit   func(Event) error
	got    []Event
	closed int
}

func (s *stub) Emit(e Event) error {
	s.got = append(s.got, e)
	if s.emit != nil {
		return s.emit(e)
	}
	return nil
}
func (s *stub) Close() error { s.closed++; return nil }

func TestFailingSinkIsToldOnce(t *testing.T) {
	fails := &stub{emit: func(Event) error { return errors.New("disk full") }}
	panics := &stub{emit: func(Event) error { panic("oh") }}
	good := &stub{}
	m := Multi(fails, nil, panics, good)
	for range 3 {
		if err := m.Emit(Step{}); err != nil {
			t.Fatal(err)
		}
	}
	var texts []string
	steps := 0
	for _, e := range good.got {
		if w, ok := e.(Warning); ok {
			texts = append(texts, w.Text)
		} else {
			steps++
		}
	}
	want := "*telemetry.stub is disabled: disk full\n*telemetry.stub is disabled: telemetry: panic at event step: oh"
	if got := strings.Join(texts, "\n"); steps != 3 || got != want {
		t.Errorf("%d steps, warnings\n%s, want 3 and\n%s", steps, got, want)
	}
	err := m.Close()
	if err == nil || !strings.Contains(err.Error(), "disk full") || fails.closed != 1 || good.closed != 1 {
		t.Errorf("close: %v, closed %d and %d times", err, fails.closed, good.closed)
	}
	if err := m.Close(); err != nil {
		t.Errorf("a second close: %v", err)
	}
}

func TestBusDeliversInOrder(t *testing.T) {
	s := &stub{}
	b := NewBus(s)
	for n := range int64(500) {
		b.Emit(Step{Step: n})
	}
	if err := b.Close(); err != nil || len(s.got) != 500 || s.closed != 1 {
		t.Fatalf("close %v, %d events, closed %d times", err, len(s.got), s.closed)
	}
	for n, e := range s.got {
		if e.(Step).Step != int64(n) {
			t.Fatalf("event %d is %v", n, e)
		}
	}
	b.Emit(Step{})
	if err := b.Close(); err != nil || len(s.got) != 500 {
		t.Errorf("after close: %v, %d events", err, len(s.got))
	}
}

func TestSlowSinkDoesNotBlock(t *testing.T) {
	gate := make(chan struct{})
	s := &stub{emit: func(e Event) error { <-gate; return nil }}
	b := NewBus(s)
	begin := time.Now()
	for range busEvents + 5000 {
		b.Emit(Span{})
	}
	b.Emit(Step{})
	b.Emit(Step{})
	if took := time.Since(begin); took > 5*time.Second { // two waits of 20 ms; the rest is a busy machine
		t.Errorf("emitting took %v", took)
	}
	lost := b.Dropped()
	if lost < 5000 {
		t.Errorf("%d dropped, want 5000 or more", lost)
	}
	close(gate)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	warned := 0
	for _, e := range s.got {
		if w, ok := e.(Warning); ok && strings.Contains(w.Text, "events dropped") {
			warned++
		}
	}
	if warned != 1 {
		t.Errorf("%d warnings about dropped events, want 1", warned)
	}
}
