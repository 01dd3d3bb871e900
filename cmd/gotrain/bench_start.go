package main

import (
	"bytes"
	"context"
	"log/slog"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/shm"
	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/ddp/meet"
	"github.com/gotrain/gotrain/npu"
)

// startTimeout is how long ranks may take to meet a second time.
const startTimeout = 20 * time.Second

// starter returns a group by which ranks that measure a network, but are on one machine, agree to begin; nil: they agree over c. Over a network on one
// machine, an agreement costs context switches, and the ranks that know early would measure how long the others take to learn of it.
func starter(ctx context.Context, id launch.Identity, c comm.Communicator) (comm.Communicator, error) {
	if c.Size() == 1 || c.Transport() == "shm" {
		return nil, nil
	}
	mine, all := make([]byte, hostText), make([]byte, hostText*c.Size())
	copy(mine, meet.Machine()+" "+id.JobID)
	if err := comm.Wait(ctx)(c.AllGather(ctx, comm.Host(all, npu.U8), comm.Host(mine, npu.U8))); err != nil {
		return nil, err
	}
	if !bytes.Equal(all, bytes.Repeat(mine, c.Size())) {
		return nil, nil
	}
	ok := []int64{1}
	soon, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	start, err := shm.Join(soon, shm.Config{Job: id.JobID + "-start", Rank: id.Rank, Size: id.World})
	if err != nil {
		slog.Debug("ranks agree to begin over the network that they measure", "because", err)
		ok[0] = 0
	}
	if err := comm.Wait(ctx)(c.AllReduce(ctx, comm.HostOf(ok), comm.Min)); err != nil || ok[0] == 0 {
		if start != nil {
			start.Close()
		}
		return nil, err
	}
	return start, nil
}
