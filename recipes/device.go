package recipes

import (
	"fmt"
	"strings"
)

// Options splits device_options into keys and values; nil if there are none. Which options there are is the device's matter.
func (t Train) Options() (map[string]string, error) {
	var m map[string]string
	for _, f := range strings.Fields(t.DeviceOptions) {
		k, v, ok := strings.Cut(f, "=")
		if _, dup := m[k]; dup || !ok || k == "" || v == "" {
			why := "is not KEY=VALUE"
			if dup {
				why = "is given twice"
			}
			return nil, fmt.Errorf("train.device_options: %q %s\nhint: write for example device_options = \"deterministic=false memory_mib=4096\"", f, why)
		}
		if m == nil {
			m = map[string]string{}
		}
		m[k] = v
	}
	return m, nil
}
