package telemetry

import (
	"bytes"
	"os"
	"strconv"
)

// Memory is the resident set of this process in bytes, now and at its largest. A value that the system does not tell is not known.
func Memory() (now, peak Value) {
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return Value{}, Value{}
	}
	return statusKB(raw, "VmRSS:"), statusKB(raw, "VmHWM:")
}

// statusKB reads a line such as "VmRSS:     1234 kB".
func statusKB(raw []byte, key string) Value {
	for l := range bytes.Lines(raw) {
		if f := bytes.Fields(l); len(f) == 3 && string(f[0]) == key && string(f[2]) == "kB" {
			if n, err := strconv.ParseInt(string(f[1]), 10, 64); err == nil {
				return Known(float64(n << 10))
			}
		}
	}
	return Value{}
}
