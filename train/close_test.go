package train

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/comm/shm"
	"github.com/gotrain/gotrain/optim"
)

// TestCloseUnderARunningKernel closes a trainer, and the group behind it, while the device is busy and cannot be stopped. The memory that it then
// writes must still exist: gradients are memory of the transport, and a write after unmapping ends the process.
func TestCloseUnderARunningKernel(t *testing.T) {
	group, err := shm.NewLocal(2)
	if err != nil {
		t.Fatal(err)
	}
	trainers := make([]*Trainer, 2)
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for r, c := range group {
		wg.Go(func() {
			trainers[r], errs[r] = New(WithConfig(Config{Model: mlp, Data: noise(t, 64), Batch: 8, Steps: 2, Schedule: ConstantLR(0.1),
				Optim: optim.Default(optim.SGD, 0), Device: "ref", Comm: c}))
			if errs[r] == nil {
				errs[r] = trainers[r].open(context.Background())
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	tr := trainers[0]
	tr.quiesce = 20 * time.Millisecond
	running, release, wrote := make(chan struct{}), make(chan struct{}), make(chan struct{})
	grad := tr.eng.Grad(0).Host()
	err = tr.stream.Do(func() error {
		close(running)
		<-release
		for i := range grad {
			grad[i]++
		}
		close(wrote)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	<-running
	stream := tr.stream
	closed := make(chan error, 1)
	go func() { closed <- tr.Close() }()
	select {
	case err := <-closed:
		if err == nil || !strings.Contains(err.Error(), "still busy") {
			t.Errorf("got %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("Close waits for the kernel")
	}
	group[0].Close()
	close(release)
	<-wrote
	if err := errors.Join(stream.Close(), trainers[1].Close(), group[1].Close()); err != nil {
		t.Error(err)
	}
}
