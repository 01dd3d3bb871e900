package checkpoint_test

import (
	"context"
	"io"
	"testing"

	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/checkpoint/faultfs"
	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
)

// TestPulse checks that every part of a save and of a load is seen, and nothing in between.
func TestPulse(t *testing.T) {
	var p checkpoint.Pulse
	disk := faultfs.New()
	under := 0
	disk.Fault = func(faultfs.Op) error {
		first, second := p.Beats(), p.Beats()
		if first && second { // also the second time: the operation is under way
			under++
		}
		return nil
	}
	store := checkpoint.New(p.Watch(disk), "/runs", 3)
	if p.Beats() {
		t.Error("it beats before anything was done")
	}
	content := checkpoint.Content{State: checkpoint.State{Step: 1}, Files: []checkpoint.TensorFile{{
		Name: checkpoint.ModelFile, Tensors: []safetensors.Tensor{{Name: "w", DType: safetensors.F32, Shape: []int64{2}}},
		Data: func(_ safetensors.Tensor, w io.Writer) error { _, err := w.Write(make([]byte, 8)); return err },
	}}}
	if _, err := store.Save(context.Background(), content); err != nil {
		t.Fatal(err)
	}
	if under != len(disk.Trace) || under < 10 {
		t.Errorf("%d of %d operations were seen", under, len(disk.Trace))
	}
	if !p.Beats() || p.Beats() {
		t.Error("the end of the last operation is seen other than once")
	}
	ck, _, err := store.Latest(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer ck.Close()
	if !p.Beats() || p.Beats() {
		t.Error("a load is seen other than once")
	}
	if _, err := ck.File(checkpoint.ModelFile).Float32s("w"); err != nil || !p.Beats() {
		t.Error("reading a tensor is not seen: ", err)
	}
}
