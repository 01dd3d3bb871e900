package telemetry

import (
	"slices"
	"strconv"
)

// learned remembers how good the model was at first, so that the end of a run can report the improvement.
type learned struct {
	begin, end Eval // the first evaluation of this process and the newest
	step       Step // the first step of this process
}

func (s *learned) saw(e Event) {
	switch e := e.(type) {
	case Step:
		if s.step.Step == 0 && e.Loss.Finite() {
			s.step = Step{Step: e.Step, Loss: e.Loss}
		}
	case Eval:
		e.Metrics = slices.Clone(e.Metrics) // the sender may reuse them
		if s.begin.Step == 0 {
			s.begin = e
		}
		s.end = e
	}
}

// line compares the first and the last numbers; nil if there is nothing to compare.
func (s *learned) line(l *line, t *Terminal) []byte {
	if s.step.Step == 0 || s.end.Step <= s.step.Step || !s.end.Loss.Finite() {
		return nil
	}
	from := strconv.FormatInt(s.step.Step, 10)
	l.b = t.paint(l.b[:0], green, "learned")
	l.b = append(l.b, ':')
	l.b = append(l.b, " loss "...)
	l.b = s.step.Loss.append(l.b, 'g', 3, "")
	l.b = append(l.b, " in step "+from+", "...)
	l.b = s.end.Loss.append(l.b, 'g', 3, "")
	l.b = append(l.b, " on held-out data at the end"...)
	for _, m := range s.end.Metrics {
		if !m.Value.Finite() {
			continue
		}
		l.b = append(l.b, "; "+m.Name+" "...)
		if i := slices.IndexFunc(s.begin.Metrics, func(x Metric) bool { return x.Name == m.Name }); i >= 0 && s.begin.Step < s.end.Step {
			l.b = s.begin.Metrics[i].Value.append(l.b, 'g', 3, "")
			l.b = append(l.b, " at step "+strconv.FormatInt(s.begin.Step, 10)+", "...)
		}
		l.b = m.Value.append(l.b, 'g', 3, "")
	}
	return l.end()
}
