package npu_test

import (
	"errors"
	"testing"

	"github.com/gotrain/gotrain/npu"
)

func TestCountAndNode(t *testing.T) {
	broken := errors.New("no /dev")
	n, cerr := 0, error(nil)
	open := func(npu.Options) (npu.Device, error) { return nil, broken }
	npu.Register("count-host", 1<<20, open)
	npu.Register("count-card", 1<<21, open)
	npu.RegisterCounter("count-card", func() (int, error) { return n, cerr })
	npu.RegisterLocator("count-card", func(i int) (int, error) { return 10 + i, cerr })

	if _, err := npu.Count("count-host"); !errors.Is(err, npu.ErrUncounted) {
		t.Fatal(err)
	}
	if _, err := npu.Node("count-host", 0); !errors.Is(err, npu.ErrUncounted) {
		t.Fatal(err)
	}
	if f, got, err := npu.CountBest(); f != "count-host" || got != 0 || err != nil {
		t.Fatal("a family without devices must be passed over:", f, got, err)
	}
	n = 8
	if f, got, err := npu.CountBest(); f != "count-card" || got != 8 || err != nil {
		t.Fatal(f, got, err)
	}
	if node, err := npu.Node("count-card", 3); node != 13 || err != nil {
		t.Fatal(node, err)
	}
	cerr = broken
	if f, got, err := npu.CountBest(); f != "count-host" || got != 0 || !errors.Is(err, broken) {
		t.Fatal(f, got, err)
	}
	if _, err := npu.Node("count-card", 3); !errors.Is(err, broken) {
		t.Fatal(err)
	}
}
