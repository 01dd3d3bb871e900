//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"strings"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/cpu/kern"
)

// Identity is what the speed of kernels depends on: the processor, instruction sets in force, the library, how products of bf16 are
// computed, the number of threads. It implements
// tune.Identified.
func (d *Device) Identity() string {
	parts := []string{here().processor(), d.library(), d.team(), "kernels " + kern.ISA()}
	if p, _ := d.Products(); p == npu.WideProducts {
		parts = append(parts, "bf16 products in f32")
	}
	return strings.Join(parts, ", ")
}

// processor names the model of the first processor: by its name, or on arm64 by the numbers of its maker and part.
func (m machine) processor() string {
	text := m.read("proc/cpuinfo")
	if end := strings.Index(text, "\n\n"); end >= 0 {
		text = text[:end]
	}
	var parts []string
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(key) {
		case "model name":
			return strings.TrimSpace(value)
		case "CPU implementer", "CPU part", "CPU variant":
			parts = append(parts, strings.TrimSpace(value))
		}
	}
	if len(parts) == 0 {
		return "unknown processor"
	}
	return "arm " + strings.Join(parts, " ")
}
