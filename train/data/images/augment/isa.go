package augment

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// envISA limits the instruction sets of all kernels, those of devices and those of package images among them.
const envISA = "GOTRAIN_MAX_ISA"

// isaNames are the values of envISA, from old to new.
var isaNames = []string{"base", "avx2", "avx512", "avx512_bf16"}

// checkISA refuses a value of envISA that would be taken for no limit, with the words of the devices.
func checkISA() error {
	v := os.Getenv(envISA)
	if v == "" || slices.Contains(isaNames, v) {
		return nil
	}
	return fmt.Errorf("unknown instruction set %q in %s\nhint: use one of %s", v, envISA, strings.Join(isaNames, ", "))
}
