package doctor

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gotrain/gotrain/npu/acl/cann"
)

const hccnTool = "/usr/local/Ascend/driver/tools/hccn_tool"

// physical lists the devices as hccn_tool counts them.
func (x *exam) physical() []int {
	l := slices.Clone(x.nodes)
	if x.smi != nil && len(l) == 0 {
		for _, c := range x.smi.Chips {
			l = append(l, c.physical())
		}
	}
	slices.Sort(l)
	return slices.Compact(l)
}

// network checks the RoCE port of each NPU. It is on the device; files under /sys/class/net are about network cards of the host, which HCCL does not use
// for data here.
func (x *exam) network() {
	devices := x.physical()
	if len(devices) == 0 {
		return
	}
	conf := x.config(devices)
	answers, ok := x.askAll(devices)
	if !ok {
		x.add(Note, hccnTool, "it comes with the driver; where only root may use it: sudo hccn_tool -i 0 -link -g, and so on",
			"hccn_tool cannot be used: links, TLS and counters are not known")
		return
	}
	x.links(devices, answers)
	x.addresses(devices, answers, conf)
	x.tls(devices, answers)
	x.pfc(devices, answers)
}

// config reads /etc/hccn.conf.
func (x *exam) config(devices []int) map[string]string {
	const file = "/etc/hccn.conf"
	kv := cann.ParseKeys(x.text(file))
	if len(kv) == 0 {
		x.add(Note, file, "hccn_tool -i N -ip -s address A netmask M, on the host; only several hosts need it",
			"devices have no addresses of their own network")
		return kv
	}
	by := map[string]int{}
	var lack []int
	for _, d := range devices {
		a := kv[fmt.Sprint("address_", d)]
		if a == "" {
			lack = append(lack, d)
			continue
		}
		if o, twice := by[a]; twice {
			x.add(Error, file, "give each device an address of its own: hccn_tool -i N -ip -s …", "devices %d and %d both have the address %s", o, d, a)
		}
		by[a] = d
	}
	if len(lack) > 0 {
		x.add(Note, file, "only several hosts need addresses", "no address for %s", ranges("device ", lack))
	} else {
		x.ok(file, "each of %d devices has an address", len(devices))
	}
	return kv
}

// questions are the options of hccn_tool that only read.
var questions = []string{"-ip", "-link", "-net_health", "-tls", "-optical", "-stat"}

// askAll asks all devices at once: a tool takes up to seconds. ok is false if the tool answers nothing.
func (x *exam) askAll(devices []int) (answers map[int]map[string]string, ok bool) {
	answers = map[int]map[string]string{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, d := range devices {
		answers[d] = map[string]string{}
	}
	for _, d := range devices {
		wg.Go(func() {
			for _, q := range questions {
				ctx, cancel := context.WithTimeout(x.ctx, 10*time.Second)
				out, err := x.sys.Command(ctx, hccnTool, "-i", strconv.Itoa(d), q, "-g")
				cancel()
				if err == nil {
					mu.Lock()
					answers[d][q], ok = out, true
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return answers, ok
}

// after is what follows a word in a text.
func after(text, word string) string {
	for line := range strings.Lines(text) {
		if i := strings.Index(strings.ToLower(line), word); i >= 0 {
			return strings.TrimSpace(strings.TrimLeft(line[i+len(word):], " :"))
		}
	}
	return ""
}

func (x *exam) links(devices []int, answers map[int]map[string]string) {
	var up, down []int
	for _, d := range devices {
		a := answers[d]
		switch s := after(a["-link"], "link status"); {
		case strings.EqualFold(s, "up"):
			up = append(up, d)
		case s != "":
			down = append(down, d)
		}
		if s := after(a["-net_health"], "net health status"); s != "" && !strings.EqualFold(s, "success") && !strings.EqualFold(s, "init") {
			x.add(Warning, command(d, "-net_health"), "check the gateway that netdetect pings (hccn_tool -i N -netdetect -g), switch and cable",
				"device %d: net health is %s", d, s)
		}
		if s := after(a["-optical"], "present"); s != "" && s != "present" {
			x.add(Note, command(d, "-optical"), "only several hosts need one", "device %d: optical module %s", d, s)
		}
	}
	if len(down) > 0 {
		x.add(Warning, command(down[0], "-link"), "check cable, optical module and switch port; devices of one host do not need the link, several hosts do",
			"link is down: %s",
			ranges("device ", down))
	}
	if len(up) > 0 {
		x.ok(command(up[0], "-link"), "link is up: %s", ranges("device ", up))
	}
}

func command(device int, question string) string {
	return fmt.Sprintf("hccn_tool -i %d %s -g", device, question)
}

// addresses compares what devices have with what the file says: it is applied at the start of the machine only.
func (x *exam) addresses(devices []int, answers map[int]map[string]string, conf map[string]string) {
	for _, d := range devices {
		have, want := after(answers[d]["-ip"], "ipaddr"), conf[fmt.Sprint("address_", d)]
		if have != "" && want != "" && have != want {
			x.add(Warning, command(d, "-ip"), "set it anew (hccn_tool -i N -ip -s …) or correct the file: tables of ranks that are made of it are wrong",
				"device %d has the address %s, /etc/hccn.conf says %s", d, have, want)
		}
	}
}

var tlsSwitch = regexp.MustCompile(`tls switch\[(\d)\]`)

// tls must be the same on all devices that talk to each other.
func (x *exam) tls(devices []int, answers map[int]map[string]string) {
	by := map[string][]int{}
	for _, d := range devices {
		if g := tlsSwitch.FindStringSubmatch(answers[d]["-tls"]); g != nil {
			by[g[1]] = append(by[g[1]], d)
		}
	}
	switch len(by) {
	case 0:
	case 1:
		for v := range by {
			state := map[string]string{"0": "off", "1": "on"}[v]
			x.ok(command(devices[0], "-tls"), "TLS is %s on all devices; it must be so on all hosts of a job", state)
		}
	default:
		x.add(Error, command(devices[0], "-tls"), "hccn_tool -i N -tls -s enable 0 for each device, as root: HCCL ends with EI0006 where it differs",
			"TLS differs: off on %s, on on %s",
			ranges("device ", by["0"]), ranges("device ", by["1"]))
	}
}

var pfcCount = regexp.MustCompile(`(mac_[tr]x_pfc_pkt_num)\s*:\s*(\d+)`)

// pfc are pauses that the switch and the devices asked each other for: many of them mean a congested network.
func (x *exam) pfc(devices []int, answers map[int]map[string]string) {
	sum := map[string]uint64{}
	seen := false
	for _, d := range devices {
		for _, g := range pfcCount.FindAllStringSubmatch(answers[d]["-stat"], -1) {
			n, _ := strconv.ParseUint(g[2], 10, 64)
			sum[g[1]], seen = sum[g[1]]+n, true
		}
	}
	if !seen {
		return
	}
	var l []string
	total := uint64(0)
	for _, k := range slices.Sorted(maps.Keys(sum)) {
		l = append(l, fmt.Sprintf("%s %d", k, sum[k]))
		total += sum[k]
	}
	s, remedy := OK, ""
	if total > 0 {
		s, remedy = Note, "if the numbers grow during a job between hosts: HCCL_RDMA_TC and HCCL_RDMA_SL must agree with the switches"
	}
	x.add(s, command(devices[0], "-stat"), remedy, "PFC pauses of all devices since they started: %s", strings.Join(l, ", "))
}
