package hccl

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// place is where a rank runs.
type place struct{ host, device, pid string }

// wrongPlaces finds ranks on several hosts, and two ranks on one device.
func wrongPlaces(places []place) error {
	for r, p := range places {
		if p.host != places[0].host {
			return fmt.Errorf("rank %d runs on another host than rank 0: this version exchanges gradients of NPUs within one host only\n"+
				"hint: start all ranks on one host", r)
		}
		if p.device == "" {
			continue // the device does not tell
		}
		for s, o := range places[:r] {
			if o.device == p.device {
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

// hostID identifies this host until its next boot; containers on it have the same.
func hostID() string {
	if id, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		return strings.TrimSpace(string(id))
	}
	name, _ := os.Hostname()
	return name
}
