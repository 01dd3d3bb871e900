package kernels

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/acl/lower"
	"github.com/gotrain/gotrain/npu/nputest"
)

// Mode is a way to run the suite.
type Mode struct {
	Name  string            `json:"name"`
	Extra map[string]string `json:"options,omitempty"` // of the device
	Loose bool              `json:"-"`                 // a second run may give other bits
}

// Modes are those of a family of devices.
func Modes(family string) []Mode {
	if family != "npu" {
		return []Mode{{Name: "kernels"}}
	}
	return []Mode{
		{Name: "reused"},
		{Name: "fresh", Extra: map[string]string{"reuse": "false"}},
		{Name: "not deterministic", Extra: map[string]string{"deterministic": "false"}, Loose: true},
	}
}

// Options of a run.
type Options struct {
	Open     func(extra map[string]string) (npu.Device, error)
	Modes    []Mode
	Kinds    []string                           // nil: all
	Shapes   int                                // generated for each kind, besides those that are written down
	Limit    time.Duration                      // kinds that have not begun by then are left out; 0: none
	Progress func(done, total int, what string) // before each kind; may be nil

	now   func() time.Time // for tests, as is
	check func(npu.Device, []nputest.Case, nputest.Options) ([]nputest.Result, error)
}

// Row is what became of a kind with activations of a type, in a mode.
type Row struct {
	Kind    string   `json:"kind"`
	Type    string   `json:"type"`
	Mode    string   `json:"mode"`
	Passed  int      `json:"passed"`
	Failed  int      `json:"failed"`
	Skipped int      `json:"skipped"`
	Worst   float64  `json:"worst"`             // the largest error, as a part of what is allowed
	Reasons []string `json:"reasons,omitempty"` // why cases were skipped
}

// Failure is a case that failed.
type Failure struct {
	Mode    string `json:"mode"`
	Case    string `json:"case"`
	Error   string `json:"error"`
	Program string `json:"program,omitempty"` // the calls of CANN's operators that the kind becomes
}

// Result is the outcome of a run.
type Result struct {
	Device   string        `json:"device"`
	Detail   string        `json:"detail"`
	Modes    []Mode        `json:"modes"`
	Rows     []Row         `json:"rows"`
	Failures []Failure     `json:"failures,omitempty"`
	Left     []string      `json:"left_out,omitempty"` // what was not run, and why
	Took     time.Duration `json:"nanoseconds"`
}

// OK reports whether everything that ran is right. A device that was lost is a failure; kinds for which there was no time are not.
func (r *Result) OK() bool { return len(r.Failures) == 0 }

// Run runs the suite in each mode. The error says that a device cannot be opened, or that ctx is over; kernels that are wrong are in the result.
func Run(ctx context.Context, o Options) (*Result, error) {
	if o.now == nil {
		o.now = time.Now
	}
	if o.check == nil {
		o.check = func(d npu.Device, cases []nputest.Case, no nputest.Options) ([]nputest.Result, error) {
			return nputest.Check(ctx, d, cases, no)
		}
	}
	if o.Kinds == nil {
		o.Kinds = nputest.Kinds()
	}
	r := &Result{Modes: o.Modes}
	begin := o.now()
	for i, m := range o.Modes {
		d, err := o.Open(m.Extra)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			r.Device, r.Detail = d.Info().Name, d.Info().Detail
		}
		s := &suite{o: o, mode: m, dev: d, r: r, done: i * len(o.Kinds), until: begin.Add(o.Limit)}
		err = s.all(ctx)
		if cerr := d.Close(); err == nil && cerr != nil {
			r.Failures = append(r.Failures, Failure{Mode: m.Name, Case: "closing the device", Error: cerr.Error()})
		}
		if err != nil {
			return nil, err
		}
	}
	r.Took = o.now().Sub(begin)
	return r, nil
}

// suite is a mode on a device.
type suite struct {
	o     Options
	mode  Mode
	dev   npu.Device
	r     *Result
	done  int
	until time.Time
}

func (s *suite) all(ctx context.Context) error {
	for i, kind := range s.o.Kinds {
		if err := ctx.Err(); err != nil {
			return err
		}
		if s.o.Limit > 0 && s.o.now().After(s.until) {
			s.r.Left = append(s.r.Left, fmt.Sprintf("%s: %s: the time is over", s.mode.Name, strings.Join(s.o.Kinds[i:], ", ")))
			return nil
		}
		if s.o.Progress != nil {
			s.o.Progress(s.done+i, len(s.o.Kinds)*len(s.o.Modes), kind+", "+s.mode.Name)
		}
		for _, t := range s.dev.Info().Compute {
			if err := s.kind(kind, t); err != nil {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				// CANN loses a device after some errors; only a new process gets it back.
				text, _, _ := strings.Cut(err.Error(), "\n")
				s.r.Failures = append(s.r.Failures, Failure{Mode: s.mode.Name, Case: kind + " " + t.String(), Error: err.Error()})
				s.r.Left = append(s.r.Left, fmt.Sprintf("%s: %s: the device was lost at %s: %s", s.mode.Name, strings.Join(s.o.Kinds[i:], ", "), kind, text))
				return nil
			}
		}
	}
	return nil
}

// kind runs the cases of a kind. The error is of the device as a whole.
func (s *suite) kind(kind string, t npu.DType) error {
	o := nputest.Options{N: s.o.Shapes, Loose: s.mode.Loose, Bound: s.slack(), Skip: s.skip}
	if o.N == 0 {
		o.N = -1
	}
	cases := o.Cases(kind, t)
	if len(cases) == 0 {
		return nil
	}
	results, err := s.o.check(s.dev, cases, o)
	row := Row{Kind: kind, Type: t.String(), Mode: s.mode.Name}
	for _, r := range results {
		switch r.Status {
		case nputest.Failed:
			row.Failed++
			s.r.Failures = append(s.r.Failures, Failure{s.mode.Name, r.Case.String(), r.Err.Error(), s.program(r.Case)})
		case nputest.Skipped:
			why, _, _ := strings.Cut(r.Reason, "{") // without attributes
			if row.Skipped++; !slices.Contains(row.Reasons, why) {
				row.Reasons = append(row.Reasons, why)
			}
		default:
			row.Passed++
			row.Worst = max(row.Worst, r.Worst)
		}
	}
	s.r.Rows = append(s.r.Rows, row)
	return err
}

// lowering is a device that turns ops into calls of CANN.
type lowering interface{ Caps() lower.Caps }

func (s *suite) slack() func(npu.Op, int) float64 {
	d, ok := s.dev.(lowering)
	if !ok {
		return nil
	}
	return func(op npu.Op, out int) float64 { return lower.Slack(op, out, d.Caps()) }
}

func (s *suite) skip(op npu.Op) string {
	if _, ok := s.dev.(lowering); ok && op.Kind == npu.Dropout {
		return "its bits are the device's own"
	}
	return ""
}

// program lists the calls that a failed case becomes.
func (s *suite) program(c nputest.Case) string {
	d, ok := s.dev.(lowering)
	if !ok {
		return ""
	}
	var l []string
	for i := range c.Calls {
		op, err := lower.Choose(c.Op(i), d.Caps())
		if err == nil {
			var p *lower.Program
			if p, err = lower.Lower(op, d.Caps()); err == nil {
				l = append(l, fmt.Sprint(op, ":\n", p))
				continue
			}
		}
		text, _, _ := strings.Cut(err.Error(), "\n")
		l = append(l, text)
	}
	return strings.Join(l, "\n")
}
