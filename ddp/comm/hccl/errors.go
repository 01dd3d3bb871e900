package hccl

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
)

// StallError reports a collective that all ranks began and that does not end.
type StallError struct {
	Call  string
	After time.Duration // since all ranks had begun
	Said  error         // what HCCL says of its links, if anything
}

func (e *StallError) Error() string {
	said := ""
	if e.Said != nil {
		said = ": " + e.Said.Error()
	}
	return fmt.Sprintf("comm: %s: all ranks have begun it, but it is not done after %v%s\n"+
		"hint: a link between devices may be down, or a device hang: npu-smi info and the links of hccn_tool show it on each machine",
		e.Call, e.After.Round(time.Millisecond), said)
}

// Unwrap makes errors.Is(err, context.DeadlineExceeded) true.
func (e *StallError) Unwrap() error { return context.DeadlineExceeded }

// codes are the codes in CANN's error text that concern HCCL, with their usual cause.
var codes = map[string]string{
	"EI0001": "a variable of HCCL has a bad value",
	"EI0002": "a collective did not end in time: a rank died, is slow, or called something else",
	"EI0003": "an argument of a collective is not allowed",
	"EI0004": "the rank table cannot be loaded",
	"EI0005": "ranks called different collectives, or have different versions of CANN",
	"EI0006": "links were not built in time: a rank came late, the network, or the TLS switch differs between machines (hccn_tool -i N -tls -g)",
	"EI0007": "resources of the device ran out",
	"EI0008": "ranks have different versions of HCCL",
	"EI0009": "a transport could not be set up",
	"EI0011": "the device has no memory left for queues",
	"EI0012": "a copy engine of a device failed",
	"EI0013": "the RoCE network failed",
	"EI0014": "the description of the cluster does not fit the devices",
	"EI0015": "the ranks did not find each other in time: a rank is missing, a firewall, or HCCL_SOCKET_IFNAME chooses another network",
	"EI0019": "a port is in use: another job uses HCCL on this machine; HCCL_HOST_SOCKET_PORT_RANGE=auto lets the system choose",
	"EJ0003": "a port is in use: another job uses HCCL on this machine; HCCL_HOST_SOCKET_PORT_RANGE=auto lets the system choose",
	"EL0004": "the device has no memory left; HCCL_BUFFSIZE sets the size of HCCL's buffers",
}

var codeOf = regexp.MustCompile(`\bE[IJL][0-9]{4}\b`)

// explain adds what a code in CANN's text means.
func explain(err error) error {
	if err == nil {
		return nil
	}
	code := codeOf.FindString(err.Error())
	if meaning := codes[code]; meaning != "" {
		return fmt.Errorf("%s (%s): %w", meaning, code, err)
	}
	return err
}

// failed is an error of this rank's device or of HCCL during a call.
func failed(rank int, call string, err error) error {
	return fmt.Errorf("comm: hccl: rank %d: %s: %w", rank, call, explain(err))
}

// renamed turns an error of the agreement on a call into one of the call itself.
func renamed(rank int, call string, err error) error {
	var late *comm.TimeoutError
	var gone *comm.PeerError
	switch {
	case errors.As(err, &late):
		e := *late
		e.Call = call
		return &e
	case errors.As(err, &gone):
		e := *gone
		e.Call = call
		return &e
	}
	return fmt.Errorf("comm: hccl: rank %d: %s: %w", rank, call, err)
}
