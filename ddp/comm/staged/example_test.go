package staged_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/shm"
	_ "github.com/gotrain/gotrain/ddp/comm/staged"
	"github.com/gotrain/gotrain/npu"
	_ "github.com/gotrain/gotrain/npu/ref"
)

// Two ranks sum a number that lies in device memory, behind the copy that brings it there.
func Example() {
	control, err := shm.NewLocal(2)
	if err != nil {
		fmt.Println(err)
		return
	}
	var wg sync.WaitGroup
	for _, ctl := range control {
		wg.Go(func() {
			defer ctl.Close()
			v, err := sum(context.Background(), ctl, float32(ctl.Rank()+1))
			if ctl.Rank() == 0 {
				fmt.Println(v, err)
			}
		})
	}
	wg.Wait()
	// Output: 3 <nil>
}

func sum(ctx context.Context, control comm.Communicator, v float32) (float32, error) {
	dev, err := npu.Open("ref", npu.Options{Extra: map[string]string{"memory": "separate"}})
	if err != nil {
		return 0, err
	}
	defer dev.Close()
	data, err := comm.ForDevice(ctx, comm.Opening{Control: control, Device: dev})
	if err != nil {
		return 0, err
	}
	defer data.Close()
	stream, err1 := dev.NewStream("compute")
	buf, err2 := dev.Alloc(4)
	host, err3 := npu.AllocHost(dev, 4)
	written, err4 := dev.NewEvent()
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil {
			return 0, err
		}
	}
	number := comm.Host(host.Host(), npu.F32)
	comm.View[float32](number)[0] = v
	at := npu.Ptr{Buf: buf}
	if err := stream.CopyIn(at, host.Host()); err != nil {
		return 0, err
	}
	if err := stream.Record(written); err != nil {
		return 0, err
	}
	h, err := data.(comm.Ordered).AllReduceAfter(ctx, written, comm.Mem{Ptr: at, Elems: 1, DType: npu.F32}, comm.Sum)
	if err != nil {
		return 0, err
	}
	if err := stream.Wait(h.(comm.OnDevice).Event()); err != nil { // the stream waits, not the host
		return 0, err
	}
	if err := stream.CopyOut(host.Host(), at); err != nil {
		return 0, err
	}
	if err := stream.Sync(ctx); err != nil {
		return 0, err
	}
	return comm.View[float32](number)[0], h.Wait(ctx)
}
