package doctor

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gotrain/gotrain/ddp/comm/hccl/settings"
	"github.com/gotrain/gotrain/npu/acl/lower"
)

// environment checks variables of CANN and HCCL.
func (x *exam) environment() {
	x.hccl()
	x.others()
	x.ports()
}

// hccl reads the variables as a run on all devices would.
func (x *exam) hccl() {
	soc := ""
	if x.family == lower.A2 || x.family == lower.A3 {
		soc = x.family.String()
	}
	s, err := settings.Read(settings.Input{Env: x.env, Ranks: max(1, x.r.NPUs), SoC: soc})
	for _, e := range joined(err) {
		var p *settings.Problem
		if errors.As(e, &p) {
			x.add(Error, "environment", p.Hint, "%s: %s", p.Subject, p.Text)
		} else {
			x.add(Error, "environment", "", "%v", e)
		}
	}
	if err != nil {
		return
	}
	set := 0
	for _, l := range s.Lines {
		if !strings.HasPrefix(l.By, "environment") {
			continue
		}
		set++
		severity := OK
		if strings.Contains(l.By, "no effect") || strings.Contains(l.By, "unknown") {
			severity = Note
		}
		x.add(severity, "environment", "", "%s is %s (%s)", l.What, l.Value, l.By)
	}
	if set == 0 {
		x.ok("environment", "no variable of HCCL is set: gotrain's defaults hold (docs/hccl.md)")
	}
}

func joined(err error) []error {
	var l interface{ Unwrap() []error }
	switch {
	case err == nil:
		return nil
	case errors.As(err, &l):
		return l.Unwrap()
	}
	return []error{err}
}

// meanings are variables that do something else than people expect, or nothing.
var meanings = map[string]string{
	"ASCEND_LAUNCH_BLOCKING":  "only torch_npu reads it; use train.device_options = \"debug_sync=true\"",
	"TASK_QUEUE_ENABLE":       "only torch_npu reads it",
	"ACL_DEVICE_SYNC_TIMEOUT": "only torch_npu reads it",
	"INF_NAN_MODE_ENABLE":     "only torch_npu reads it; gotrain always asks for infinities and NaN",
	"PYTORCH_NPU_ALLOC_CONF":  "only torch_npu reads it",
	"P2P_HCCL_BUFFSIZE":       "only torch_npu reads it",
	"RANK_TABLE_FILE":         "HCCL's C interface does not read it, nor does gotrain: ranks exchange their addresses themselves",
	"ASCEND_VISIBLE_DEVICES":  "the container runtime reads it; a process chooses devices by ASCEND_RT_VISIBLE_DEVICES",
	"CUDA_VISIBLE_DEVICES":    "CANN does not read it; use ASCEND_RT_VISIBLE_DEVICES",
	"ASCEND_DEVICE_ID":        "gotrain does not read it; use ASCEND_RT_VISIBLE_DEVICES",
	"NPU_VISIBLE_DEVICES":     "CANN does not read it; use ASCEND_RT_VISIBLE_DEVICES",
	"HCCL_BLOCKING_WAIT":      "only torch_npu reads it",
}

func (x *exam) others() {
	for _, name := range slices.Sorted(maps.Keys(meanings)) {
		if v, ok := x.env[name]; ok && !strings.HasPrefix(name, "HCCL_") {
			x.note("environment", "%s=%s: %s", name, v, meanings[name])
		}
	}
	switch x.env["ASCEND_GLOBAL_LOG_LEVEL"] {
	case "0", "1":
		x.add(Warning, "environment", "unset it, or set it to 3, for training",
			"ASCEND_GLOBAL_LOG_LEVEL=%s: CANN writes a log that slows it down and fills ~/ascend/log",
			x.env["ASCEND_GLOBAL_LOG_LEVEL"])
	}
	if x.env["LD_PRELOAD"] != "" {
		x.note("environment", "LD_PRELOAD=%s is loaded before CANN", x.env["LD_PRELOAD"])
	}
}

// portsTaken lists the ports of this network namespace on which something listens.
func (x *exam) portsTaken() map[int]bool {
	taken := map[int]bool{}
	for _, file := range []string{"proc/net/tcp", "proc/net/tcp6"} {
		for line := range strings.Lines(x.text(file)) {
			f := strings.Fields(line)
			if len(f) < 4 || f[3] != "0A" { // listening
				continue
			}
			if _, hex, ok := strings.Cut(f[1], ":"); ok {
				if p, err := strconv.ParseUint(hex, 16, 16); err == nil {
					taken[int(p)] = true
				}
			}
		}
	}
	return taken
}

// ports checks those where HCCL of rank 0 listens. Without a variable gotrain has the system choose; a CANN that does not know HCCL_HOST_SOCKET_PORT_RANGE
// takes 60000 to 60031.
func (x *exam) ports() {
	const count = 32
	from, s, by := 60000, Note, "the ports that a CANN takes that does not know HCCL_HOST_SOCKET_PORT_RANGE"
	if v, ok := x.env["HCCL_IF_BASE_PORT"]; ok {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1024 || n > 65520 {
			return // hccl has said so
		}
		from, s, by = n, Error, "HCCL_IF_BASE_PORT"
	} else if _, ok := x.env["HCCL_HOST_SOCKET_PORT_RANGE"]; ok {
		return
	}
	span := fmt.Sprintf("ports %d to %d", from, from+count-1)
	var used []string
	taken := x.portsTaken()
	for p := from; p < from+count; p++ {
		if taken[p] {
			used = append(used, strconv.Itoa(p))
		}
	}
	if len(used) > 0 {
		x.add(s, "/proc/net/tcp", "another job may use them: ss -ltnp; choose others by HCCL_IF_BASE_PORT, or unset it", "%s (%s): in use are %s", span, by,
			strings.Join(used, ", "))
		return
	}
	x.ok("/proc/net/tcp", "%s are free (%s)", span, by)
	if r := strings.Fields(x.text("proc/sys/net/ipv4/ip_local_port_range")); len(r) == 2 && s == Error {
		lo, _ := strconv.Atoi(r[0])
		hi, _ := strconv.Atoi(r[1])
		if from+count > lo && from <= hi && x.text("proc/sys/net/ipv4/ip_local_reserved_ports") == "" {
			x.add(Note, "/proc/sys/net/ipv4/ip_local_port_range", fmt.Sprintf("sysctl -w net.ipv4.ip_local_reserved_ports=%d-%d", from, from+count-1),
				"the system may give %s to other connections", span)
		}
	}
}
