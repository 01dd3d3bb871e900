package npu_test

import (
	"strings"
	"testing"

	"github.com/gotrain/gotrain/npu"
)

// The attribute is added to a copy, and Direct is the same as no attribute: both ops print, and so are cached, as one.
func TestWithAlgorithm(t *testing.T) {
	op := npu.Op{Kind: npu.Conv2D, Attrs: npu.Attrs{"groups": 1}}
	if w := op.WithAlgorithm(npu.Winograd4); w.Attrs.Str(npu.AttrAlgorithm) != npu.Winograd4 || w.WithAlgorithm(npu.Direct).String() != op.String() {
		t.Errorf("%s becomes %s, then %s", op, w, w.WithAlgorithm(npu.Direct))
	}
	if len(op.Attrs) != 1 {
		t.Errorf("the op itself has changed: %s", op)
	}
}

func TestCheckAlgorithm(t *testing.T) {
	op := npu.Op{Kind: npu.Conv2D}
	if err := npu.CheckAlgorithm(op); err != nil {
		t.Error(err)
	}
	op = op.WithAlgorithm(npu.Winograd4)
	if err := npu.CheckAlgorithm(op, npu.Direct, npu.Winograd4); err != nil {
		t.Error(err)
	}
	if err := npu.CheckAlgorithm(op, npu.Direct, npu.Winograd2); err == nil || !strings.Contains(err.Error(), "one of winograd2") {
		t.Errorf("got %v", err)
	}
	if err := npu.CheckAlgorithm(op, npu.Direct); err == nil || !strings.Contains(err.Error(), "hint: leave the attribute") {
		t.Errorf("got %v", err)
	}
}

// The plain-Go device has one algorithm for everything, and refuses others.
func TestOneAlgorithm(t *testing.T) {
	dev, err := npu.Open("ref", npu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	x := npu.D(npu.F32, 1, 4, 8, 8)
	op := npu.Op{Kind: npu.Conv2D, Attrs: npu.Attrs{"pad": []int{1, 1, 1, 1}}, In: []npu.Desc{x, npu.D(npu.F32, 4, 4, 3, 3)}, Out: []npu.Desc{x}}
	if list := npu.Algorithms(dev, op); len(list) != 1 || list[0] != npu.Direct {
		t.Errorf("ref has %q", list)
	}
	op = op.WithAlgorithm(npu.Winograd4)
	if _, err := dev.Choose(op); err == nil || !strings.Contains(err.Error(), "winograd4") {
		t.Errorf("choose: %v", err)
	}
	if _, err := dev.Compile(op); err == nil || !strings.Contains(err.Error(), "winograd4") {
		t.Errorf("compile: %v", err)
	}
}
