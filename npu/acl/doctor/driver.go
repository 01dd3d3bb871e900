package doctor

import (
	"iter"
	"maps"
	"strings"

	"github.com/gotrain/gotrain/npu/acl/cann"
)

func keys[K comparable, V any](m map[K]V) iter.Seq[K] { return maps.Keys(m) }

// install reads /etc/ascend_install.info, with names in lower case: versions differ in that.
func (x *exam) install() map[string]string {
	m := map[string]string{}
	for k, v := range cann.ParseKeys(x.text("etc/ascend_install.info")) {
		m[strings.ToLower(k)] = v
	}
	return m
}

const defaultInstall = "/usr/local/Ascend"

// driver compares the versions of driver and firmware.
func (x *exam) driver() {
	info := x.install()
	driver := x.versionInfo(info["driver_install_path_param"], "driver")
	firmware := x.versionInfo(info["firmware_install_path_param"], "firmware")
	d, f := first(driver.kv, "package_version", "Version"), driver.kv["compatible_version_fw"]
	switch {
	case d == "":
		remedy := "install the driver (Ascend-hdk-*-npu-driver*.run --full)"
		if x.container() {
			remedy = "mount /usr/local/Ascend/driver from the host"
		}
		s := Error
		if len(x.nodes) == 0 && x.env[cann.EnvHome] != "" {
			s, remedy = Note, ""
		}
		x.add(s, driver.file, remedy, "the version of the driver is not told")
		return
	default:
		x.ok(driver.file, "driver %s", d)
	}
	v := firmware.kv["Version"]
	if v == "" {
		s, remedy := Warning, "install the firmware that belongs to the driver (Ascend-hdk-*-npu-firmware*.run --full)"
		if x.container() {
			s, remedy = Note, "on the host, cat "+firmware.file
		}
		x.add(s, firmware.file, remedy, "the version of the firmware is not told")
		return
	}
	if in, known := within(v, f); known && !in {
		x.add(Error, driver.file,
			"install the firmware of the same package as the driver, then restart the machine: devices fail in odd ways otherwise (507033, errors of IPC)",
			"firmware %s does not fit the driver %s, which wants %s", v, d, f)
		return
	}
	if want := firmware.kv["compatible_version_drv"]; want != "" {
		if in, known := within(driver.kv["Version"], want); known && !in {
			x.add(Error, firmware.file, "install driver and firmware of one package, then restart the machine",
				"driver %s does not fit the firmware %s, which wants %s", d, v, want)
			return
		}
	}
	x.ok(firmware.file, "firmware %s fits the driver", v)
}

// versioned is a file of keys.
type versioned struct {
	file string
	kv   map[string]string
}

func (x *exam) versionInfo(dir, what string) versioned {
	if dir == "" {
		dir = defaultInstall
	}
	file := strings.TrimSuffix(dir, "/") + "/" + what + "/version.info"
	return versioned{file, cann.ParseKeys(x.text(file))}
}

func first(kv map[string]string, names ...string) string {
	for _, n := range names {
		if kv[n] != "" {
			return kv[n]
		}
	}
	return ""
}
