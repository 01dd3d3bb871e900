package doctor

import (
	"flag"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

var update = flag.Bool("update", false, "rewrite golden files; look at the difference before you commit it")

// machine reads a recorded machine: files one after the other, each below a line "-- path --".
func machine(t *testing.T, name string) fstest.MapFS {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".machine"))
	if err != nil {
		t.Fatal(err)
	}
	m := fstest.MapFS{}
	var at *fstest.MapFile
	for line := range strings.Lines(string(text)) {
		if file, ok := strings.CutPrefix(line, "-- "); ok {
			at = &fstest.MapFile{Mode: 0o644}
			m[strings.TrimSuffix(file, " --\n")] = at
			continue
		}
		at.Data = append(at.Data, line...)
	}
	return m
}

// set writes a file of a recorded machine.
func set(m fstest.MapFS, file, text string) {
	m[file] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
}

// edit replaces text in a file, which must be there.
func edit(t *testing.T, m fstest.MapFS, file, old, now string) {
	t.Helper()
	f := m[file]
	if f == nil || !strings.Contains(string(f.Data), old) {
		t.Fatalf("%s has no %q", file, old)
	}
	set(m, file, strings.ReplaceAll(string(f.Data), old, now))
}

const (
	latest = "usr/local/Ascend/ascend-toolkit/latest"
	env    = "cmd/env.txt"
)

// broken are machines with one fault each.
var broken = map[string]func(t *testing.T, m fstest.MapFS){
	"a2": func(*testing.T, fstest.MapFS) {},
	"a3": func(*testing.T, fstest.MapFS) {},
	"container": func(_ *testing.T, m fstest.MapFS) { // four devices, without the driver's tools
		set(m, ".dockerenv", "")
		maps.DeleteFunc(m, func(f string, _ *fstest.MapFile) bool {
			return strings.HasPrefix(f, "cmd/npu-smi") || strings.HasPrefix(f, "cmd/hccn") || strings.HasPrefix(f, "usr/local/Ascend/driver") ||
				strings.HasPrefix(f, "usr/local/Ascend/firmware") || f >= "dev/davinci4" && f <= "dev/davinci7" || f == "etc/hccn.conf"
		})
		set(m, "cmd/probe_devices.txt", `{"devices":[{"index":0,"soc":"Ascend910B3","detail":"Ascend910B3 (A2)","types":["f32"]}]}`)
		set(m, "cmd/probe_dcmi.txt", `{"error":"dcmi_init: -8005 (an internal error, as in containers without the driver's files)"}`)
	},
	"firmware": func(t *testing.T, m fstest.MapFS) {
		edit(t, m, "usr/local/Ascend/firmware/version.info", "Version=7.7.0.6.236", "Version=7.8.0.1.100")
	},
	"tls": func(t *testing.T, m fstest.MapFS) {
		edit(t, m, "cmd/hccn_tool_-i_3_-tls_-g.txt", "switch[0]", "switch[1]")
	},
	"link-down": func(t *testing.T, m fstest.MapFS) {
		edit(t, m, "cmd/hccn_tool_-i_5_-link_-g.txt", "UP", "DOWN")
		edit(t, m, "cmd/hccn_tool_-i_5_-net_health_-g.txt", "Success", "Detect fault")
		edit(t, m, "cmd/hccn_tool_-i_5_-optical_-g.txt", "present : present", "present : not present")
		edit(t, m, "cmd/hccn_tool_-i_2_-ip_-g.txt", "198.51.100.12", "198.51.100.99")
		edit(t, m, "cmd/hccn_tool_-i_2_-stat_-g.txt", "mac_rx_pfc_pkt_num:0", "mac_rx_pfc_pkt_num:812")
	},
	"devlib": func(t *testing.T, m fstest.MapFS) {
		edit(t, m, env, "LD_LIBRARY_PATH=", "LD_LIBRARY_PATH=/"+latest+"/aarch64-linux/devlib:")
		set(m, latest+"/aarch64-linux/devlib/libascendcl.so", "")
	},
	"visible": func(t *testing.T, m fstest.MapFS) {
		edit(t, m, env, "PATH=/usr/bin", "PATH=/usr/bin\nASCEND_RT_VISIBLE_DEVICES=3,2,1,0")
	},
	"two-toolkits": func(t *testing.T, m fstest.MapFS) {
		for f, data := range maps.Clone(m) {
			if rest, ok := strings.CutPrefix(f, latest); ok {
				m["opt/cann"+rest] = data
			}
		}
		edit(t, m, env, "LD_LIBRARY_PATH=", "LD_LIBRARY_PATH=/opt/cann/lib64:")
	},
	"mixed": func(t *testing.T, m fstest.MapFS) {
		edit(t, m, latest+"/hccl/version.info", "Version=7.7.0.1.238\nversion_dir=8.1.RC1", "Version=7.6.0.1.220\nversion_dir=8.0.0")
		edit(t, m, latest+"/hccl/version.info", ">=7.6, <=7.7", ">=7.5, <=7.6")
	},
	"no-kernels": func(_ *testing.T, m fstest.MapFS) {
		maps.DeleteFunc(m, func(f string, _ *fstest.MapFile) bool { return strings.HasPrefix(f, latest+"/opp/built-in") })
	},
	"no-env": func(t *testing.T, m fstest.MapFS) {
		set(m, env, "PATH=/usr/bin\nHCCL_TOPOLOGY=star\nHCCL_BUFFER_SIZE=1048577\nHCCL_CONNECT_TIMEOUT=30\nRANK_TABLE_FILE=/x\nASCEND_GLOBAL_LOG_LEVEL=1\n")
		set(m, "cmd/probe_libraries.txt", `
{"libraries":[{"file":"/`+latest+`/lib64/libascendcl.so","error":"libascend_hal.so: cannot open shared object file: No such file"}]}`)
		set(m, "cmd/probe_devices.txt", `{"error":"cann: libascendcl.so of CANN cannot be loaded\nhint: source set_env.sh"}`)
	},
	"sick": func(t *testing.T, m fstest.MapFS) {
		edit(t, m, "cmd/npu-smi_info.txt",
			"| OK              | 91.3         33                   0    / 0             |\n| 0                         | 0000:80:00.0",
			"| Alarm           | 91.3         97                   0/0                  |\n| 0                         | 0000:80:00.0")
		edit(t, m, "cmd/probe_dcmi.txt", `"physical": 0, "health": 0`, `"physical": 0, "health": 2`)
		edit(t, m, "proc/self/limits", "Max locked memory         unlimited ", "Max locked memory         65536     ")
		delete(m, "dev/hisi_hdc")
		m["dev/davinci1"].Mode = 0o000
		set(m, "dev/shm/gotrain-1000/job-7", "")
		set(m, "proc/77/environ", "GOTRAIN_RANK=3\x00GOTRAIN_JOB_ID=j\x00")
		set(m, "proc/77/stat", "77 (gotrain run) S 1 77 77 0 -1 0")
		edit(t, m, "cmd/probe_devices.txt", `{"index": 1, `, `{"index": 1, "error": "npu:1: open: aclrtSetDevice: 507033", `)
		edit(t, m, env, "PATH=/usr/bin", "PATH=/usr/bin\nHCCL_IF_BASE_PORT=22")
		edit(t, m, env, "HCCL_IF_BASE_PORT=22", "HCCL_IF_BASE_PORT=50000")
		edit(t, m, "proc/net/tcp", "00000000:0016", "00000000:C355")
	},
	"host": func(*testing.T, fstest.MapFS) {},
	"driver-gone": func(_ *testing.T, m fstest.MapFS) { // the boards are there
		set(m, "sys/bus/pci/devices/0000:c1:00.0/vendor", "0x19e5\n")
		set(m, "sys/bus/pci/devices/0000:c1:00.0/class", "0x120000\n")
	},
}

// base is the machine that a variant begins as.
func base(name string) string {
	switch name {
	case "a2", "a3", "host":
		return name
	case "driver-gone":
		return "host"
	}
	return "a2"
}

func examine(t *testing.T, name string) (*Report, fs.FS) {
	t.Helper()
	m := machine(t, base(name))
	broken[name](t, m)
	return Check(t.Context(), Recorded{m}, Options{Program: "gotrain test, linux/arm64", UID: 1000, PID: 1}), m
}

func golden(t *testing.T, name, text string) {
	t.Helper()
	file := path.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != text {
		t.Errorf("%s is not up to date\nhint: go test ./npu/acl/doctor -update, and look at the difference\n%s", file, text)
	}
}
