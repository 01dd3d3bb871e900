package npu

import (
	"fmt"
	"slices"
	"strings"
)

// Computes returns an error that names the device and what it has, unless it computes with activations of the type. The exit code is that of a device
// that is not available.
func (i Info) Computes(t DType) error {
	if slices.Contains(i.Compute, t) {
		return nil
	}
	have := make([]string, len(i.Compute))
	for k, c := range i.Compute {
		have[k] = c.String()
	}
	return &OpenError{i.Name, fmt.Errorf("device %s (%s) does not compute in %v; it has %s\nhint: choose one of these as the dtype, or another device",
		i.Name, i.Detail, t, strings.Join(have, ", "))}
}
