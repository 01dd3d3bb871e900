package kernels

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/nputest"
	_ "github.com/gotrain/gotrain/npu/ref"
)

func openRef(extra map[string]string) (npu.Device, error) {
	return npu.Open("ref", npu.Options{})
}

func TestRight(t *testing.T) {
	var said []string
	r, err := Run(t.Context(), Options{Open: openRef, Modes: Modes("ref"), Kinds: []string{npu.Relu, npu.SGD, npu.CrossEntropy}, Limit: time.Hour,
		Progress: func(done, total int, what string) { said = append(said, fmt.Sprintf("%d/%d %s", done, total, what)) }})
	if err != nil || !r.OK() || len(r.Rows) != 5 || len(said) != 3 || said[2] != "2/3 cross_entropy, kernels" {
		t.Fatalf("%v %v %+v", err, said, r)
	}
	for _, row := range r.Rows {
		if row.Passed == 0 || row.Failed != 0 || row.Worst != 0 {
			t.Errorf("%+v", row)
		}
	}
	for _, w := range []string{"kernels of ref", "relu           bf16  6 =", "sgd            f32   20 ="} {
		if !strings.Contains(r.Text(), w) {
			t.Errorf("no %q in\n%s", w, r.Text())
		}
	}
}

// A kernel that is wrong shows with its case; a device that is lost ends the mode; what is skipped says why.
func TestWrong(t *testing.T) {
	o := Options{Open: openRef, Modes: []Mode{{Name: "one"}, {Name: "two", Loose: true}}}
	o.Kinds = []string{npu.Relu, npu.Fill, npu.SGD}
	modes := map[bool]bool{}
	o.check = func(_ npu.Device, cases []nputest.Case, no nputest.Options) ([]nputest.Result, error) {
		modes[no.Loose] = true
		switch cases[0].Kind {
		case npu.Relu:
			return []nputest.Result{{Case: cases[0], Status: nputest.Failed, Err: errors.New("element 3 is 1, must be 2")},
				{Case: cases[1], Worst: 0.5}, {Case: cases[2], Status: nputest.Skipped, Reason: "the device does not have relu{x=1}"}}, nil
		case npu.Fill:
			return nil, errors.New("npu:0 is lost: 507015\nhint: start again")
		}
		t.Error("a kind was run on a device that was lost")
		return nil, nil
	}
	r, err := Run(t.Context(), o)
	if err != nil || r.OK() || !modes[true] || !modes[false] || len(r.Left) != 2 {
		t.Fatalf("%v %+v", err, r)
	}
	for _, w := range []string{"FAILED relu f32", "element 3 is 1, must be 2", "FAILED 1 of 2", "the device was lost at fill",
		"relu: the device does not have relu\n", "507015"} {
		if !strings.Contains(r.Text(), w) {
			t.Errorf("no %q in\n%s", w, r.Text())
		}
	}
}

// Kinds for which there is no time are named.
func TestLimit(t *testing.T) {
	clock := time.Time{}
	o := Options{Open: openRef, Modes: Modes("npu"), Kinds: []string{npu.Relu, npu.Fill}, Limit: time.Minute}
	o.now = func() time.Time { clock = clock.Add(40 * time.Second); return clock }
	r, err := Run(t.Context(), o)
	if err != nil || !r.OK() || len(r.Left) != 3 || !strings.Contains(r.Left[0], "fill: the time is over") || !strings.Contains(r.Text(), "not run") {
		t.Fatalf("%v %+v", err, r)
	}
}

func TestErrors(t *testing.T) {
	if _, err := Run(t.Context(), Options{Modes: Modes("npu"), Open: func(map[string]string) (npu.Device, error) {
		return nil,
			errors.New("none")
	}}); err == nil {
		t.Error("no device, no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, Options{Modes: Modes("ref"), Open: openRef}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
