package hccl

import (
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/gotrain/gotrain/ddp/comm"
)

// place is where a rank runs.
type place struct{ host, device, pid string }

// wrongPlaces finds two ranks on one device of a host.
func wrongPlaces(places []place) error {
	for r, p := range places {
		if p.device == "" {
			continue // the device does not tell
		}
		for s, o := range places[:r] {
			if o.host == p.host && o.device == p.device {
				return fmt.Errorf("ranks %d (pid %s) and %d (pid %s) are on the same device, %s: HCCL needs a device for each rank\n"+
					"hint: start no more ranks than there are devices (train.ranks), and let ASCEND_RT_VISIBLE_DEVICES name enough of them",
					s, o.pid, r, p.pid, p.device)
			}
		}
	}
	return nil
}

// physical is the number of the device on the host that index is among those that ASCEND_RT_VISIBLE_DEVICES leaves visible.
func physical(visible string, index int) string {
	if visible == "" {
		return strconv.Itoa(index)
	}
	if list := strings.Split(visible, ","); index >= 0 && index < len(list) {
		return strings.TrimSpace(list[index])
	}
	return ""
}

// addressOf is the address at which other hosts reach this one, by what the control communicator says of itself; the zero value on one host.
func addressOf(control comm.Communicator) netip.Addr {
	for _, l := range comm.Describe(control) {
		at, _, _ := strings.Cut(l.Address, " ")
		if a, err := netip.ParseAddrPort(at); err == nil && !a.Addr().IsLoopback() && !a.Addr().IsUnspecified() {
			return a.Addr()
		}
	}
	return netip.Addr{}
}

// hostID identifies this host until its next boot; containers on it have the same.
func hostID() string {
	if id, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		return strings.TrimSpace(string(id))
	}
	name, _ := os.Hostname()
	return name
}
