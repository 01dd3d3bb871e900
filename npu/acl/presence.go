package acl

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gotrain/gotrain/npu/acl/cann"
)

// machine tells about the devices of a machine from files and variables, without loading CANN.
type machine struct {
	root fs.FS // the file system; tests have recorded ones
	env  func(string) string
}

func here() machine { return machine{os.DirFS("/"), os.Getenv} }

var nodeName = regexp.MustCompile(`^davinci([0-9]+)$`)

// nodes lists the numbers of the device files /dev/davinciN, ascending.
func (m machine) nodes() []int {
	entries, err := fs.ReadDir(m.root, "dev")
	if err != nil {
		return nil
	}
	var l []int
	for _, e := range entries {
		if g := nodeName.FindStringSubmatch(e.Name()); g != nil {
			if n, err := strconv.Atoi(g[1]); err == nil {
				l = append(l, n)
			}
		}
	}
	slices.Sort(l)
	return l
}

// devices lists the device files that this process may use, in the order of CANN's numbers.
func (m machine) devices() ([]int, error) {
	nodes := m.nodes()
	list := m.env(cann.EnvVisible)
	if list == "" || len(nodes) == 0 && m.env(cann.EnvHome) == "" {
		return nodes, nil // without devices the list chooses from nothing, whatever it says
	}
	l, err := cann.Visible(list)
	if err != nil {
		return nil, err
	}
	if len(nodes) == 0 {
		return l, nil // a CANN without device files: its number of devices is not known, so the list counts
	}
	// In a container the files keep the numbers of the host while CANN counts from 0.
	whole := nodes[len(nodes)-1] == len(nodes)-1
	for _, n := range l {
		if whole && !slices.Contains(nodes, n) || n >= len(nodes) && !slices.Contains(nodes, n) {
			return nil, fmt.Errorf("%s=%s: there is no device %d among %d\nhint: inside of a container count from 0", cann.EnvVisible, list, n, len(nodes))
		}
	}
	return l, nil
}

// count is the number of devices that this process may use.
func (m machine) count() (int, error) {
	l, err := m.devices()
	return len(l), err
}

// plausible reports whether opening a device is worth trying: there is a device file, or the user points to a CANN. It costs a few system calls.
func (m machine) plausible() bool {
	return m.env(cann.EnvHome) != "" || len(m.nodes()) > 0 || cann.Installed()
}

var errNode = errors.New("the system does not tell")

// node is the NUMA node of a device: that of the PCI device behind its file.
func (m machine) node(index int) (int, error) {
	l, err := m.devices()
	if err != nil {
		return 0, err
	}
	if index < 0 || index >= len(l) {
		return 0, fmt.Errorf("there is no device %d among %d", index, len(l))
	}
	for _, class := range []string{"davinci_devices", "devdrv-class", "davinci_manager"} { // the drivers differ
		file := path.Join("sys/class", class, fmt.Sprintf("davinci%d", l[index]), "device/numa_node")
		if n, ok := m.number(file); ok && n >= 0 {
			return n, nil
		}
	}
	return m.pciNode(l[index])
}

// pciNode takes the PCI devices of Huawei's accelerator class in the order of their addresses, which is the order in which the driver numbers them,
// if there are as many as device files.
func (m machine) pciNode(number int) (int, error) {
	dirs, err := fs.ReadDir(m.root, "sys/bus/pci/devices")
	if err != nil {
		return 0, errNode
	}
	var nodes []int
	for _, d := range dirs {
		base := path.Join("sys/bus/pci/devices", d.Name())
		const huawei, accelerator = "0x19e5", "0x1200"
		if m.text(path.Join(base, "vendor")) != huawei || !strings.HasPrefix(m.text(path.Join(base, "class")), accelerator) {
			continue
		}
		n, ok := m.number(path.Join(base, "numa_node"))
		if !ok {
			return 0, errNode
		}
		nodes = append(nodes, n)
	}
	files := m.nodes()
	at := slices.Index(files, number)
	if at < 0 || len(nodes) != len(files) || nodes[at] < 0 {
		return 0, errNode
	}
	return nodes[at], nil
}

func (m machine) text(file string) string {
	b, err := fs.ReadFile(m.root, file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func (m machine) number(file string) (int, bool) {
	n, err := strconv.Atoi(m.text(file))
	return n, err == nil
}
