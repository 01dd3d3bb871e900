package acl

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gotrain/gotrain/npu/acl/cann"
)

// board is a machine with device files and variables.
func board(files fstest.MapFS, env ...string) machine {
	m := map[string]string{}
	for i := 0; i < len(env); i += 2 {
		m[env[i]] = env[i+1]
	}
	return machine{root: files, env: func(k string) string { return m[k] }}
}

func nodes(names ...string) fstest.MapFS {
	f := fstest.MapFS{"dev/null": {}, "dev/davinci_manager": {}}
	for _, n := range names {
		f["dev/davinci"+n] = &fstest.MapFile{}
	}
	return f
}

func TestDevicesOfAMachine(t *testing.T) {
	four := nodes("0", "1", "2", "3")
	for _, c := range []struct {
		m    machine
		want []int
		err  string
	}{
		{board(fstest.MapFS{}), nil, ""},
		{board(four), []int{0, 1, 2, 3}, ""},
		{board(nodes("10", "9", "x")), []int{9, 10}, ""},
		{board(four, cann.EnvVisible, "1,3"), []int{1, 3}, ""},
		{board(four, cann.EnvVisible, "3,1"), nil, "ascend"},
		{board(four, cann.EnvVisible, "1,1"), nil, "ascend"},
		{board(four, cann.EnvVisible, "0, 1"), nil, "blanks"},
		{board(four, cann.EnvVisible, "4"), nil, "no device 4 among 4"},
		{board(four, cann.EnvVisible, "a"), nil, "not the number"},
		{board(nodes("4", "5"), cann.EnvVisible, "0,1"), []int{0, 1}, ""}, // a container, which counts from 0
		{board(nodes("4", "5"), cann.EnvVisible, "2"), nil, "no device 2"},
		{board(fstest.MapFS{}, cann.EnvVisible, "0,1"), nil, ""}, // a machine without devices: what is left of a variable is no mistake
		{board(fstest.MapFS{}, cann.EnvVisible, "a,-3"), nil, ""},
		{board(fstest.MapFS{}, cann.EnvVisible, "0,1", cann.EnvHome, "/fake"), []int{0, 1}, ""},
	} {
		got, err := c.m.devices()
		if !slices.Equal(got, c.want) || (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, %v; want %v, %q", c.m.env(cann.EnvVisible), got, err, c.want, c.err)
		}
	}
}

func FuzzVisible(f *testing.F) {
	for _, s := range []string{"0,1", "1,0", "", ",", "-1", "+1", "00", "99999999999999999999", "0,1\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, list string) {
		l, err := cann.Visible(list)
		if err == nil && (len(l) == 0 || !slices.IsSorted(l) || l[0] < 0) {
			t.Errorf("%q gives %v", list, l)
		}
	})
}

func pci(f fstest.MapFS, at, vendor, class, node string) {
	base := "sys/bus/pci/devices/" + at + "/"
	f[base+"vendor"] = &fstest.MapFile{Data: []byte(vendor + "\n")}
	f[base+"class"] = &fstest.MapFile{Data: []byte(class + "\n")}
	f[base+"numa_node"] = &fstest.MapFile{Data: []byte(node + "\n")}
}

func TestNode(t *testing.T) {
	f := nodes("0", "1")
	if _, err := board(f).node(0); err == nil {
		t.Error("a machine without sysfs has nodes")
	}
	pci(f, "0000:01:00.0", "0x8086", "0x120000", "0")
	pci(f, "0000:81:00.0", "0x19e5", "0x120000", "1")
	if _, err := board(f).node(0); err == nil {
		t.Error("one board for two files")
	}
	pci(f, "0000:c1:00.0", "0x19e5", "0x120000", "3")
	pci(f, "0000:c2:00.0", "0x19e5", "0x020000", "2") // a network card
	for i, want := range []int{1, 3} {
		if got, err := board(f).node(i); err != nil || got != want {
			t.Errorf("device %d: node %d, %v", i, got, err)
		}
	}
	if got, err := board(f, cann.EnvVisible, "1").node(0); err != nil || got != 3 {
		t.Errorf("the only visible device: node %d, %v", got, err)
	}
	if _, err := board(f).node(2); err == nil || !strings.Contains(err.Error(), "no device 2") {
		t.Errorf("device 2: %v", err)
	}
	f["sys/class/davinci_devices/davinci0/device/numa_node"] = &fstest.MapFile{Data: []byte("5\n")}
	if got, err := board(f).node(0); err != nil || got != 5 {
		t.Errorf("with the driver's own file: node %d, %v", got, err)
	}
	pci(f, "0000:c1:00.0", "0x19e5", "0x120000", "-1")
	if _, err := board(f).node(1); err == nil {
		t.Error("node -1 is one")
	}
}

func TestPlausible(t *testing.T) {
	var none fs.FS = fstest.MapFS{}
	if board(nodes()).plausible() && !cann.Installed() {
		t.Error("a machine without device files is worth trying")
	}
	if !board(nodes("0")).plausible() || !(machine{none, func(k string) string { return map[string]string{cann.EnvHome: "/x"}[k] }}).plausible() {
		t.Error("a machine with a device, or where the user names a CANN, is not worth trying")
	}
}

// What a machine without NPUs pays at each start.
func BenchmarkPlausible(b *testing.B) {
	for b.Loop() {
		here().plausible()
	}
}
