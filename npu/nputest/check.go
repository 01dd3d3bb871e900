package nputest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gotrain/gotrain/npu"
)

// Options of a check. The zero value is a device that has no excuse.
type Options struct {
	// Skip gives the reason why an op is not tried, or "".
	Skip func(op npu.Op) string
	// Bound gives a factor on the bound of output out; nil: 1 everywhere. For a device that is known to round once more.
	Bound func(op npu.Op, out int) float64
	// Types of activations; nil: those that the device lists in Info.Compute.
	Types []npu.DType
	// Layouts are tried for activations [N C H W], besides those that the device chooses.
	Layouts []npu.Layout
	// Loose: a second run of a launch may give other bits; it only has to be within the bound.
	Loose bool
	// Seed and N: see Generate. 0 means 1 and Generated; -1 as N means none.
	Seed uint64
	N    int
}

// Status is what became of a case.
type Status uint8

// What may become of a case.
const (
	Passed Status = iota
	Failed
	Skipped
)

// Result is what became of one case.
type Result struct {
	Case   Case
	Status Status
	Reason string   // why it was skipped
	Err    error    // what is wrong
	Impl   []string // the kernels that ran, by call
	Worst  float64  // the largest error, as a part of what is allowed
}

// String is a line of a report.
func (r Result) String() string {
	switch r.Status {
	case Failed:
		return fmt.Sprintf("FAIL %s: %v", r.Case, r.Err)
	case Skipped:
		return fmt.Sprintf("skip %s: %s", r.Case, r.Reason)
	}
	return fmt.Sprintf("ok   %s: %.2f of the bound, by %s", r.Case, r.Worst, strings.Join(r.Impl, ", "))
}

// skipped is the reason why a case is not run.
type skipped string

func (s skipped) Error() string { return string(s) }

// Check runs cases one after the other on a stream of its own. The error is of the device as a whole; cases have theirs.
func Check(ctx context.Context, dev npu.Device, cases []Case, o Options) ([]Result, error) {
	a, err := newArena(dev)
	if err != nil {
		return nil, fmt.Errorf("nputest: %w", err)
	}
	var list []Result
	for _, c := range cases {
		if err := ctx.Err(); err != nil {
			return list, errors.Join(fmt.Errorf("nputest: after %d of %d cases: %w", len(list), len(cases), err), a.free())
		}
		r := Result{Case: c}
		r.Err = (&run{ctx: ctx, arena: a, o: o, c: c, r: &r}).all()
		var s skipped
		switch {
		case errors.As(r.Err, &s):
			r.Status, r.Reason, r.Err = Skipped, string(s), nil
		case r.Err != nil:
			r.Status = Failed
		}
		list = append(list, r)
	}
	if err := a.free(); err != nil {
		return list, fmt.Errorf("nputest: %w", err)
	}
	return list, nil
}

// run is one case on a device.
type run struct {
	ctx   context.Context
	arena *arena
	o     Options
	c     Case
	r     *Result

	data   [][]byte     // by tensor: plain bytes, as package ref has them
	opaque map[int]kept // tensors that only the device has
}

// kept is a result in a form of the device's own.
type kept struct {
	desc npu.Desc
	data []byte
}

func (r *run) all() (err error) {
	if err := r.excused(); err != nil {
		return err
	}
	if r.data, err = r.c.inputs(); err != nil {
		return err
	}
	r.opaque = map[int]kept{}
	for i := range r.c.Calls {
		err := r.call(i)
		last := i == len(r.c.Calls)-1
		switch {
		case last && r.c.Fails != "":
			return r.failed(err)
		case err != nil && !last:
			return fmt.Errorf("call %d, %s: %w", i+1, r.c.Calls[i].Kind, err)
		case err != nil:
			return err
		}
	}
	return nil
}

// excused returns skipped if the device need not run the case.
func (r *run) excused() error {
	if r.c.Fails != "" && r.arena.dev.Info().Unchecked {
		return skipped("the device does not report what is out of range")
	}
	for i, call := range r.c.Calls {
		if !r.arena.dev.Has(call.Kind, call.Attrs) {
			return skipped(fmt.Sprintf("the device does not have %s{%s}", call.Kind, call.Attrs))
		}
		if r.o.Skip != nil {
			if why := r.o.Skip(r.c.Op(i)); why != "" {
				return skipped(why)
			}
		}
	}
	return nil
}

// failed judges the error of a call that must fail.
func (r *run) failed(err error) error {
	switch {
	case err == nil:
		return fmt.Errorf("no error, must fail with %q", r.c.Fails)
	case !strings.Contains(err.Error(), r.c.Fails) || !strings.Contains(err.Error(), "\nhint: "):
		return fmt.Errorf("fails with %w\nmust say %q and give a hint", err, r.c.Fails)
	}
	return nil
}

// call runs call i on the device and compares its results. Later calls read what package ref computed, but for what only the device has.
func (r *run) call(i int) error {
	want := append([][]byte{}, r.data...)
	if r.c.Fails == "" || i < len(r.c.Calls)-1 {
		if err := r.c.reference(i, want); err != nil {
			return fmt.Errorf("the case is wrong: %w", err)
		}
	}
	d := &deviceCall{run: r, call: r.c.Calls[i], want: want}
	err := d.do(r.c.Op(i))
	r.data = want
	return errors.Join(err, d.close())
}
