package telemetry

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ConsoleOptions configure what is printed.
type ConsoleOptions struct {
	Every      int64 // print every n-th step, and the first and last; 0 means 1
	NoProgress bool  // no progress line, even on a terminal
}

// Console prints events for people.
type Console struct {
	t       *Terminal
	id      Identity
	opt     ConsoleOptions
	line    line
	bar     progress
	learned learned
}

// NewConsole makes a Console that prints to t.
func NewConsole(t *Terminal, id Identity, opt ConsoleOptions) *Console {
	opt.Every = max(opt.Every, 1)
	return &Console{t: t, id: id, opt: opt, line: line{t: t}}
}

// Emit prints.
func (c *Console) Emit(e Event) error {
	c.learned.saw(e)
	switch e := e.(type) {
	case RunStart:
		return c.start(e)
	case Step:
		return c.step(e)
	case Eval:
		return c.eval(e)
	case Epoch:
		return c.epoch(e)
	case Checkpoint:
		return c.checkpoint(e)
	case Warning:
		return c.print(yellow, "warning: "+e.Text)
	case RunEnd:
		return c.end(e)
	}
	return nil
}

// Close removes the progress line.
func (c *Console) Close() error {
	defer c.t.Flush()
	return c.t.Progress("")
}

func (c *Console) print(colour, text string) error {
	_, err := c.t.Write(append(c.t.paint(nil, colour, text), '\n'))
	return err
}

func (c *Console) start(e RunStart) error {
	title := strings.TrimSpace("gotrain " + e.Version)
	if e.Name != "" {
		title += ": " + e.Name
	}
	b := append(c.t.paint(nil, bold, title), '\n')
	width := 0
	for _, f := range e.Facts {
		width = max(width, len(f.Key))
	}
	for _, f := range e.Facts {
		b = append(b, "  "...)
		b = c.t.paint(b, dim, f.Key)
		b = append(b, strings.Repeat(" ", width-len(f.Key)+2)...)
		b = append(append(b, f.Value...), '\n')
	}
	_, err := c.t.Write(b)
	return err
}

func (c *Console) step(e Step) error {
	if !c.opt.NoProgress && c.t.Live() {
		if text, due := c.bar.step(e, c.t.columns); due {
			if err := c.t.Progress(text); err != nil {
				return err
			}
		}
	}
	if e.Step%c.opt.Every != 0 && e.Step != 1 && e.Step != e.Total && !e.Skipped {
		return nil
	}
	l := &c.line
	total := strconv.FormatInt(e.Total, 10)
	step := strconv.FormatInt(e.Step, 10)
	if c.t.Live() && len(step) < len(total) {
		step = strings.Repeat(" ", len(total)-len(step)) + step
	}
	l.fit(func() { c.stepFields(e, step+"/"+total) })
	_, err := c.t.Write(l.end())
	return err
}

// stepFields renders the line of a step.
func (c *Console) stepFields(e Step, step string) {
	l := &c.line
	l.start(c.id, "Step "+step)
	l.general("loss", e.Loss, 9)
	l.general("lr", e.LR, 10)
	l.percent("npu_util", e.Util)
	l.throughput(e.Throughput, e.Unit)
	l.seconds("comm_time", e.Comm)
	l.seconds("compute_time", e.Compute)
	l.seconds("wait", e.Wait)
	l.seconds("data_time", e.Data)
	l.seconds("step_time", e.Took)
	l.bytes("mem", e.Memory)
	l.percent("mfu", e.MFU)
	l.general("grad_norm", e.Norm, 9)
	if e.Scale.OK {
		l.general("scale", e.Scale, 6)
	}
	l.num("epoch", e.Epoch, 'f', 2, "", 5)
	l.metrics(e.Metrics)
	if e.Skipped {
		l.raw("skipped", "true", 0) // gradients were not finite
	}
}

// throughput puts a space before the unit, as readers of such lines expect.
func (l *line) throughput(v Value, unit string) {
	l.num("throughput", v, 'f', 1, " "+orUnit(unit), 8+len(orUnit(unit)))
}

func (l *line) metrics(m []Metric) {
	for _, x := range m {
		l.general(x.Name, x.Value, 7)
	}
}

func (c *Console) eval(e Eval) error {
	l := &c.line
	title := "Eval after step "
	if e.Name != "" {
		title = "Eval " + e.Name + " after step "
	}
	title += strconv.FormatInt(e.Step, 10)
	if e.Best {
		title += " (best)"
	}
	l.start(c.id, title)
	l.general("loss", e.Loss, 9)
	l.metrics(e.Metrics)
	if e.Of > 0 {
		l.raw("items", fmt.Sprintf("%d/%d", e.Items, e.Of), 0)
	} else {
		l.raw(cmp.Or(e.Unit, "items"), strconv.FormatInt(e.Items, 10), 0)
	}
	l.num("time", e.Took, 'f', 1, "s", 0)
	_, err := c.t.Write(l.end())
	return err
}

func (c *Console) epoch(e Epoch) error {
	l := &c.line
	l.start(c.id, "Epoch "+strconv.FormatInt(e.Epoch, 10)+" done at step "+strconv.FormatInt(e.Step, 10))
	l.general("loss", e.Loss, 9)
	l.metrics(e.Metrics)
	l.raw("samples", strconv.FormatInt(e.Samples, 10), 0)
	l.num("time", e.Took, 'f', 1, "s", 0)
	_, err := c.t.Write(l.end())
	return err
}

func (c *Console) checkpoint(e Checkpoint) error {
	if e.Error != "" {
		return c.print(yellow, "warning: "+e.Error)
	}
	l := &c.line
	l.start(c.id, "Checkpoint of step "+strconv.FormatInt(e.Step, 10))
	l.raw("path", e.Path, 0)
	l.bytes("size", Known(float64(e.Bytes)))
	l.num("time", e.Took, 'f', 2, "s", 0)
	_, err := c.t.Write(l.end())
	return err
}

func (c *Console) end(e RunEnd) error {
	if err := c.t.Progress(""); err != nil {
		return err
	}
	if e.Error != "" { // without the text: the program that gets the error prints it
		return c.print(red, fmt.Sprintf("%s after step %d", e.Reason, e.Step))
	}
	l := &c.line
	l.b = c.t.paint(l.b[:0], green, e.Reason)
	l.b = append(l.b, ':')
	l.raw("steps", strconv.FormatInt(e.Step, 10), 0)
	took := "-"
	if e.Took.Finite() {
		took = short(time.Duration(e.Took.X * float64(time.Second)))
	}
	l.raw("time", took, 0)
	l.throughput(e.Throughput, e.Unit)
	l.bytes("peak_mem", e.PeakMemory)
	if _, err := c.t.Write(l.end()); err != nil {
		return err
	}
	if b := c.learned.line(l, c.t); b != nil {
		_, err := c.t.Write(b)
		return err
	}
	return nil
}
