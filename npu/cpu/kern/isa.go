//go:build cgo && linux && (amd64 || arm64)

package kern

// #include "kern.h"
import "C"

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// EnvISA names the variable that limits the instruction sets: the kernels of this package, and those of oneDNN with them, run as on an older
// processor. It serves to test and measure such a processor.
const EnvISA = "GOTRAIN_MAX_ISA"

// limit describes a value of EnvISA.
type limit struct {
	name   string
	isa    int    // the best build of this package's kernels
	oneDNN string // the library's name for it
}

var limits = []limit{
	{"base", C.KERN_BASE, "SSE41"},
	{"avx2", C.KERN_V3, "AVX2"},
	{"avx512", C.KERN_V3, "AVX512_CORE"},
	{"avx512_bf16", C.KERN_V4, "AVX512_CORE_BF16"},
}

// limited looks up the limit in the environment; ok is false without one.
func limited() (l limit, ok bool) {
	i := slices.IndexFunc(limits, func(l limit) bool { return l.name == os.Getenv(EnvISA) })
	if i < 0 {
		return limit{}, false
	}
	return limits[i], true
}

// OneDNNLimit is the limit of the environment in the terms of ONEDNN_MAX_CPU_ISA, or "".
func OneDNNLimit() (string, error) {
	l, ok := limited()
	if v := os.Getenv(EnvISA); !ok && v != "" {
		var names []string
		for _, l := range limits {
			names = append(names, l.name)
		}
		return "", fmt.Errorf("unknown instruction set %q in %s\nhint: use one of %s", v, EnvISA, strings.Join(names, ", "))
	}
	return l.oneDNN, nil
}

// best is the code of the best instruction set that this processor supports and the environment allows.
func best() int {
	isa := int(C.kern_isa())
	if l, ok := limited(); ok {
		isa = min(isa, l.isa)
	}
	return isa
}

// ISA names the instruction set of this package's kernels.
func ISA() string { return isaNames[best()] }
