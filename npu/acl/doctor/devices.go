package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/gotrain/gotrain/npu/acl/cann"
	"github.com/gotrain/gotrain/npu/acl/lower"
)

// presence finds device files, npu-smi and CANN, and so whether this is a machine with NPUs at all.
func (x *exam) presence() {
	for _, f := range x.glob("dev/davinci[0-9]*") {
		if n, err := strconv.Atoi(strings.TrimPrefix(f, "dev/davinci")); err == nil {
			x.nodes = append(x.nodes, n)
		}
	}
	slices.Sort(x.nodes)
	switch out, err := x.sys.Command(x.ctx, "npu-smi", "info"); {
	case err == nil:
		x.smi = parseSMI(out)
	case !errors.Is(err, fs.ErrNotExist):
		x.smiErr = err
	}
	x.findToolkit()
	x.r.NPUs = len(x.nodes)
	if x.smi != nil {
		x.r.NPUs = max(x.r.NPUs, len(x.smi.Chips))
		for _, c := range x.smi.Chips {
			x.family = max(x.family, familyOf(c, x.smi.Chips))
		}
	}
	x.absent = x.r.NPUs == 0 && x.root == "" && x.smi == nil && x.smiErr == nil && len(x.boards()) == 0
}

// familyOf tells the generation from npu-smi's table: an A2 is "910B3" there, an A3 "Ascend910" with two chips.
func familyOf(c chip, all []chip) lower.Family {
	name := c.Name
	if strings.HasPrefix(name, "910") {
		name = "Ascend" + name
	}
	f := lower.FamilyOf(name)
	if f == lower.A910 && slices.ContainsFunc(all, func(o chip) bool { return o.NPU == c.NPU && o.Chip > 0 }) {
		return lower.A3
	}
	return f
}

// boards are the PCI devices of Huawei's class of accelerators.
func (x *exam) boards() []string {
	var l []string
	for _, d := range x.glob("sys/bus/pci/devices/*") {
		if x.text(d+"/vendor") == "0x19e5" && strings.HasPrefix(x.text(d+"/class"), "0x1200") {
			l = append(l, d)
		}
	}
	return l
}

func (x *exam) container() bool {
	return x.exists(".dockerenv") || x.exists("run/.containerenv") || strings.Contains(x.text("proc/1/cgroup"), "kubepods")
}

func (x *exam) devices() {
	x.files()
	x.visible()
	x.table()
	x.dcmi()
	x.numa()
}

// files are what a process needs to reach a device.
func (x *exam) files() {
	if len(x.nodes) == 0 {
		s, remedy := Error, "load the driver: reinstall it (Ascend-hdk-*-npu-driver*.run) and restart the machine"
		switch {
		case x.env[cann.EnvHome] != "": // what it names may need none
			s, remedy = Note, ""
		case x.container():
			remedy = "pass the devices to the container (--device=/dev/davinci0 and so on, --device=/dev/davinci_manager, /dev/devmm_svm, /dev/hisi_hdc), or use " +
				"the Ascend container runtime"
		}
		x.add(s, "/dev", remedy, "there is no device file /dev/davinci*")
		return
	}
	x.ok("/dev", "device files %s", ranges("davinci", x.nodes))
	var denied, lack []string
	names := []string{"/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc"}
	for _, n := range x.nodes {
		names = append(names, fmt.Sprint("/dev/davinci", n))
	}
	for _, name := range names {
		switch err := x.sys.Access(name); {
		case errors.Is(err, fs.ErrNotExist):
			lack = append(lack, name)
		case err != nil:
			denied = append(denied, name)
		}
	}
	if len(lack) > 0 {
		x.add(Error, "/dev", "pass them to the container with --device, or load the driver", "%s missing: CANN needs them beside the devices",
			strings.Join(lack, ", "))
	}
	if len(denied) > 0 {
		x.add(Error, denied[0], fmt.Sprintf("add the user to the group of these files: usermod -aG %s USER, then log in again", x.group()),
			"no permission for %s", strings.Join(denied, ", "))
	}
}

// group is the one that the driver was installed for.
func (x *exam) group() string {
	if g := x.install()["usergroup"]; g != "" {
		return g
	}
	return "HwHiAiUser"
}

// ranges writes davinci0…7.
func ranges(prefix string, l []int) string {
	if len(l) > 2 && l[len(l)-1]-l[0] == len(l)-1 {
		return fmt.Sprintf("%s%d…%d", prefix, l[0], l[len(l)-1])
	}
	var w []string
	for _, n := range l {
		w = append(w, fmt.Sprint(prefix, n))
	}
	return strings.Join(w, ", ")
}

// visible checks the list by which CANN chooses and numbers devices.
func (x *exam) visible() {
	v, ok := x.env[cann.EnvVisible]
	if !ok || v == "" {
		return
	}
	l, err := cann.Visible(v)
	if err != nil {
		text, hint, _ := strings.Cut(err.Error(), "\nhint: ")
		x.add(Error, "environment", hint, "%s", text)
		return
	}
	for _, n := range l {
		if len(x.nodes) > 0 && n >= len(x.nodes) && !slices.Contains(x.nodes, n) {
			x.add(Error, "environment", "count from 0 in a container, and name devices that are there", "%s=%s: there is no device %d among %d",
				cann.EnvVisible, v, n,
				len(x.nodes))
			return
		}
	}
	x.ok("environment", "%s=%s: %d of %d devices; rank 0 gets %d", cann.EnvVisible, v, len(l), x.r.NPUs, l[0])
}

// table is what npu-smi says.
func (x *exam) table() {
	const cmd = "npu-smi info"
	if x.smiErr != nil {
		x.add(Warning, cmd, "see what the driver says (dmesg); in a container, the device may be in use by another one (-8020)", "npu-smi fails: %v", x.smiErr)
		return
	}
	if x.smi == nil {
		remedy := "it comes with the driver; add /usr/local/bin or /usr/local/sbin to PATH"
		if x.container() {
			remedy = "mount /usr/local/bin/npu-smi and /usr/local/Ascend/driver from the host; training does not need it"
		}
		x.add(Note, cmd, remedy, "there is no npu-smi")
		return
	}
	if len(x.smi.Chips) == 0 {
		x.add(Warning, cmd, "run it: what it prints is the driver's own diagnosis", "npu-smi lists no device")
		return
	}
	dies := map[int]int{}
	for _, c := range x.smi.Chips {
		dies[c.NPU]++
		where, what := cmd, fmt.Sprintf("device %d (NPU %d, chip %d): %s", c.physical(), c.NPU, c.Chip, c.Name)
		if c.Temp >= 0 {
			what += fmt.Sprintf(", %.0f °C", c.Temp)
		}
		if c.Power >= 0 {
			what += fmt.Sprintf(", %.1f W", c.Power)
		}
		if c.Total >= 0 {
			what += fmt.Sprintf(", %d of %d MB used", c.Used, c.Total)
		}
		switch strings.ToLower(c.Health) {
		case "ok":
			x.ok(where, "%s, healthy", what)
		case "warning":
			x.add(Warning, where, fmt.Sprintf("npu-smi info -t health -i %d -c %d, and the driver's log (/var/log/npu)", c.NPU, c.Chip), "%s, health %s", what,
				c.Health)
		default:
			x.add(Error, where, fmt.Sprintf("npu-smi info -t health -i %d -c %d, and the driver's log (/var/log/npu); reset or replace the card", c.NPU,
				c.Chip),
				"%s, health %s", what, c.Health)
		}
		if c.Temp >= hot {
			x.add(Warning, where, "check fans and air flow: devices slow down when they are hot", "device %d has %.0f °C", c.physical(), c.Temp)
		}
	}
	for _, n := range dies {
		if n > 1 {
			x.note(cmd, "%d cards with %d dies each: each die is a device, so ranks = %d", len(dies), n, len(x.smi.Chips))
			break
		}
	}
	if n := len(x.nodes); n > 0 && n != len(x.smi.Chips) {
		x.note(cmd, "npu-smi lists %d devices, /dev has %d: the container has some of the host's", len(x.smi.Chips), n)
	}
	for _, p := range x.smi.Procs {
		x.add(Note, cmd, "two jobs on a device take each other's memory and time: end one, or choose others by "+cann.EnvVisible,
			"process %s (%s) uses NPU %d, chip %d: %s MB",
			p.PID, p.Name, p.NPU, p.Chip, p.MB)
	}
}

// hot is a rule of thumb, in °C.
const hot = 90

// dcmi asks the driver's library, which also works where npu-smi is not mounted.
func (x *exam) dcmi() {
	var file string
	for _, f := range []string{x.env[cann.EnvHome] + "/lib64/libdcmi.so", "/usr/local/dcmi/libdcmi.so", "/usr/local/Ascend/driver/lib64/driver/libdcmi.so",
		"/usr/local/Ascend/driver/lib64/common/libdcmi.so", "/usr/local/Ascend/driver/lib64/libdcmi.so"} {
		if file == "" && x.exists(f) {
			file = f
		}
	}
	if file == "" {
		x.add(Note, "/usr/local/dcmi, /usr/local/Ascend/driver/lib64", "mount them in a container; without it the log lacks temperatures",
			"there is no libdcmi.so")
		return
	}
	p := x.probe(Request{Stage: StageDCMI, DCMI: file}, "asking "+file)
	switch {
	case p == nil:
	case p.Error != "":
		x.add(Note, file, "usual in containers; training does not need it", "DCMI: %s", p.Error)
	default:
		x.cards(file, p.Cards)
	}
}

func (x *exam) cards(file string, l []Card) {
	sick := 0
	for _, c := range l {
		switch {
		case c.Health > 0:
			sick++
			x.add(Warning, file, "npu-smi info -t health", "DCMI: card %d, chip %d has health %d (0 is good)", c.Card, c.Chip, c.Health)
		case x.smi == nil:
			x.ok(file, "DCMI: card %d, chip %d: %d °C, %.1f W, load %d %%, %d of %d MB used", c.Card, c.Chip, c.Temperature, c.Power, c.Load, c.UsedMB,
				c.MemoryMB)
		}
	}
	if sick == 0 {
		x.ok(file, "DCMI: %d chips, all healthy", len(l))
	}
}

// numa says to which memory a device is near.
func (x *exam) numa() {
	if x.smi == nil {
		return
	}
	allowed := list(x.status("Cpus_allowed_list"))
	nodes := map[string][]int{}
	for _, c := range x.smi.Chips {
		dirs := x.glob("sys/bus/pci/devices/" + strings.ToLower(c.Bus) + "/numa_node")
		if len(dirs) != 1 {
			continue
		}
		if n := x.text(dirs[0]); n != "" && n != "-1" {
			nodes[n] = append(nodes[n], c.physical())
		}
	}
	for _, n := range slices.Sorted(keys(nodes)) {
		where := "/sys/devices/system/node/node" + n + "/cpulist"
		cores := list(x.text(where))
		if len(cores) > 0 && len(allowed) > 0 && !slices.ContainsFunc(cores, func(c int) bool { return slices.Contains(allowed, c) }) {
			x.add(Warning, where, "allow the process cores of this node (taskset, --cpuset-cpus)", "NUMA node %s of %s has no core that this process may use",
				n, ranges("device ", nodes[n]))
			continue
		}
		x.ok(where, "NUMA node %s (%d cores): %s", n, len(cores), ranges("device ", nodes[n]))
	}
}
