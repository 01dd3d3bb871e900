package telemetry

import (
	"fmt"
	"strings"
	"time"
)

const redraw = 100 * time.Millisecond // minimum time between two drawings of the progress line

// progress makes the progress line at the bottom of a terminal.
type progress struct {
	drawn time.Time
	last  time.Time
	lastN int64
	took  Window // seconds from step to step, including evaluation and checkpoints, to estimate the time left
}

// step records a step and reports whether to draw, and what.
func (p *progress) step(e Step, columns int) (string, bool) {
	now := orNow(e.Time)
	if !p.last.IsZero() && e.Step > p.lastN {
		p.took.Add(now.Sub(p.last).Seconds() / float64(e.Step-p.lastN))
	}
	p.last, p.lastN = now, e.Step
	if now.Sub(p.drawn) < redraw && e.Step != e.Total {
		return "", false
	}
	p.drawn = now
	return p.text(e, columns), true
}

func (p *progress) text(e Step, columns int) string {
	tail := fmt.Sprintf(" step %d/%d", e.Step, e.Total)
	if e.Throughput.OK {
		tail += fmt.Sprintf("  %.1f %s", e.Throughput.X, orUnit(e.Unit))
	}
	left := "-"
	if mean, ok := p.took.Mean(); ok {
		left = short(time.Duration(mean * float64(e.Total-e.Step) * float64(time.Second)))
	}
	tail += "  left " + left
	part := 0.0
	if e.Total > 0 {
		part = min(max(float64(e.Step)/float64(e.Total), 0), 1)
	}
	tail = fmt.Sprintf(" %3.0f%%%s", 100*part, tail)
	width := min(columns-len(tail)-4, 40)
	if width < 5 {
		return strings.TrimSpace(tail)
	}
	full := int(part * float64(width))
	return "[" + strings.Repeat("=", full) + strings.Repeat(".", width-full) + "]" + tail
}

// short formats a duration in two units at most: 3h05m, 2m07s, 8.2s.
func short(d time.Duration) string {
	switch {
	case d < 0:
		return "-"
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.0fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}
